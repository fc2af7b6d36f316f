//! Environments of several commits, not all of which can be built.

use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::repository::Source;

use super::{RepositoryLocation, Setup, or_interrupted};
use testwright_config::error::{Error, Kind, Result};

/// Reason why a commit has no environment.
#[derive(Debug)]
pub struct UnsuitableCommit {
    /// The failure, such as that of a build.
    pub error: Error,
    /// Whether the cause is outside of the code, such as the network or a timeout. A later attempt may succeed.
    pub is_external: bool,
}

impl Setup<'_> {
    /// Prepares the code of a commit and its environment. The inner error says why the commit has none. An interrupt
    /// leaves nothing running.
    ///
    /// # Errors
    ///
    /// Fails if the machine is at fault rather than the commit, or an interrupt arrives.
    pub async fn prepare_commit(
        &self,
        place: &RepositoryLocation,
    ) -> Result<std::result::Result<(Source, Environment), UnsuitableCommit>> {
        let prepared = async {
            let source = match self.source(place).await {
                Err(error) if error.kind == Kind::Usage => {
                    return Ok(Err(UnsuitableCommit {
                        error,
                        is_external: false,
                    }));
                }
                source => source?,
            };
            let unsuitable = [ErrorKind::Build, ErrorKind::Input];
            match self.environment(&source, &place.location).await {
                Err(error) if unsuitable.contains(&error.kind) => Ok(Err(UnsuitableCommit {
                    is_external: error.is_external,
                    error: Error::from(error),
                })),
                environment => Ok(Ok((source, environment?))),
            }
        };
        or_interrupted(&*self.backend, prepared).await
    }
}
