//! Creates a grading harness from the settings.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use testwright_evals::Instance;
use testwright_evals::harness::Harness;
use testwright_sandboxes::Backend;
use testwright_sandboxes::environment::{BuildSettings, SharedEnvironments};
use testwright_sandboxes::recipe;

use super::{RepositoryLocation, build_settings, open_options, open_source};
use crate::backends;
use crate::session::toolbox;
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;

/// Arguments that are not settings.
#[derive(Clone)]
pub struct HarnessArgs {
    /// Source for git, in which `{owner}` and `{name}` are substituted.
    pub repositories: String,
    /// Time limit of one test run.
    pub test_time: Duration,
    /// Folder for the results.
    pub out: PathBuf,
    /// Store of environments that other machines also use.
    pub shared: Option<Arc<dyn SharedEnvironments>>,
}

/// Creates a harness. Also returns notes, e.g. about the removed remains of killed runs.
///
/// # Errors
///
/// Fails if the backend is not available, or the harness cannot be created.
pub async fn harness(settings: &Settings, args: HarnessArgs) -> Result<(Harness, Vec<String>)> {
    if settings.run.dockerfile.is_some() {
        return Err(Error::usage("use a Dockerfile of the repository")
            .cause("this command uses many repositories")
            .hint("remove run.dockerfile from the settings, and use --image"));
    }
    let backend: Arc<dyn Backend> = Arc::from(backends::connect(settings).await?);
    let mut notes = backends::clean(backend.as_ref()).await;
    let environment = settings.named_environment().cloned();
    if environment.is_none() && settings.environment.is_some() {
        notes.push("[environment] of the testwright.toml in the current folder is ignored: it is for the code in that folder, not for the instances; use --config to set one for all of them".to_owned());
    }
    let pythons = recipe::available_pythons(backend.as_ref()).await?;
    let harness = Harness {
        backend,
        build: BuildSettings {
            shared: args.shared,
            ..build_settings(settings)
        },
        open: open_options(settings),
        repositories: args.repositories,
        python: settings.run.python.clone(),
        environment,
        image: settings.run.image.clone(),
        pythons,
        toolbox: toolbox()?.to_owned(),
        limits: settings.limits.sandbox(),
        test_time: args.test_time,
        begun: SystemTime::now(),
        purpose: format!("eval-{:x}", std::process::id()),
        cache: settings.cache.clone(),
        out: args.out,
    };
    Ok((harness, notes))
}

/// Returns the code of a repository as an instance without golden patches, and notes for the user. Its id is the
/// repository's name without the owner. A harness finds the code if its `repositories` is the same location.
///
/// # Errors
///
/// Fails if the repository cannot be read.
pub async fn instance_at(
    settings: &Settings,
    place: &RepositoryLocation,
    issue: String,
) -> Result<(Instance, Vec<String>)> {
    let source = open_source(settings, place).await?;
    let name = source.name.rsplit('/').next().unwrap_or_default();
    let instance = Instance {
        instance_id: name.to_owned(),
        // A plain folder has no commit.
        base_commit: source.commit.unwrap_or_default(),
        problem_statement: issue,
        repo: source.name,
        ..Instance::default()
    };
    Ok((instance, source.notes))
}
