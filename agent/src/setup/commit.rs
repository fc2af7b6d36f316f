//! Environments of several commits, not all of which can be built.

use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::repository::Source;

use super::{RepositoryLocation, Setup};
use testwright_config::error::{Error, Kind, Result};

impl Setup<'_> {
    /// Prepares the code of a commit and its environment. The inner error says why the commit has none, such as a build
    /// that fails. An interrupt leaves nothing running.
    ///
    /// # Errors
    ///
    /// Fails if the machine is at fault rather than the commit, or an interrupt arrives.
    pub async fn prepare_commit(
        &self,
        place: &RepositoryLocation,
    ) -> Result<std::result::Result<(Source, Environment), Error>> {
        let prepared = async {
            let source = match self.source(place).await {
                Err(error) if error.kind == Kind::Usage => return Ok(Err(error)),
                source => source?,
            };
            let unsuitable = [ErrorKind::Build, ErrorKind::Input];
            match self.environment(&source, &place.location).await {
                Err(error) if unsuitable.contains(&error.kind) => Ok(Err(Error::from(error))),
                environment => Ok(Ok((source, environment?))),
            }
        };
        self.or_interrupted(prepared).await
    }
}
