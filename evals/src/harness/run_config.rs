//! Configuration of a toolbox that runs tests in a sandbox of an environment.

use std::time::Duration;

use testwright_sandboxes::SandboxError;
use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::sandbox::Paths;
use testwright_tools::config::{Config, Runner, RunnerKind};

/// Builds the configuration. `paths` are the paths in the sandbox.
pub(crate) fn run_config(
    environment: &Environment,
    paths: &Paths,
    test_time: Duration,
) -> Result<Config, SandboxError> {
    Ok(Config {
        workspace: paths.workspace.clone(),
        base_archive: environment.base_archive_in(paths),
        scratch: paths.temporary.join("testwright"),
        private: Some(paths.private.join("run")),
        python: environment.python_in(paths),
        env: environment.env.clone(),
        runner: runner(environment)?,
        test_seconds: test_time.as_secs(),
        processors: None,
        wanted: None,
    })
}

fn runner(environment: &Environment) -> Result<Runner, SandboxError> {
    let recipe = &environment.recipe.runner;
    let unknown = || SandboxError::input(format!("unknown runner in the recipe: {}", recipe.kind));
    let kind = RunnerKind::named(&recipe.kind).ok_or_else(unknown)?;
    Ok(Runner {
        kind,
        options: recipe.options.clone(),
        projects: environment.recipe.projects.clone(),
    })
}
