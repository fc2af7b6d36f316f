//! Adoption of an environment that another machine built into this machine's cache.

use std::time::Duration;

use super::build::BuildInput;
use super::lease::Lease;
use super::log::Log;
use super::records;
use super::sharing::FetchOutcome;
use super::{Environment, eviction, surroundings};
use crate::error::SandboxError;
use crate::sandbox::{Command, Limits, Result, output};
use crate::starting::retry_start;

/// Time limit for one call of the environment's interpreter.
const CHECK_TIMEOUT: Duration = Duration::from_secs(60);

/// Fetches the environment if it is shared, and records it. The caller holds the lock on its name.
pub(super) async fn fetch_environment(input: &BuildInput<'_>) -> FetchOutcome<Environment> {
    let Some(sharing) = input.sharing.filter(|_| !input.settings.rebuild) else {
        return FetchOutcome::Missing(None);
    };
    let name = &input.plan.environment;
    let found: Environment = match sharing.fetch_or_claim(name).await {
        FetchOutcome::Fetched(found) => found,
        FetchOutcome::Missing(claim) => return FetchOutcome::Missing(claim),
    };
    match adopt(input, found).await {
        Ok(environment) => FetchOutcome::Fetched(environment),
        Err(error) => {
            tracing::warn!(%error, name, "a shared environment does not work here, so it is built");
            // A broken environment must not stay available under its name.
            if let Err(error) = input.backend.remove_saved(name).await {
                tracing::warn!(%error, name, "could not remove a broken environment");
            }
            FetchOutcome::Missing(None)
        }
    }
}

async fn adopt(input: &BuildInput<'_>, found: Environment) -> Result<Environment> {
    let (backend, plan, cache) = (input.backend, input.plan, &input.settings.cache);
    let folder = cache.join("environments");
    let path = cache.join("logs").join(format!("{}.log", plan.environment));
    let log = Log::create(path, Vec::new())?;
    let (name, seconds) = (&plan.environment, found.seconds);
    log.line(&format!(
        "{name} was fetched from the artifact store; another machine built it in {seconds:.1} s"
    ));
    let mut environment = Environment {
        saved: name.clone(),
        recipe: surroundings::merged_recipe(input.recipe, &found),
        origin: input.origin.to_owned(),
        log: log.path.clone(),
        cached: true,
        fetched: true,
        bytes: backend.saved_bytes(name).await?,
        dependencies: plan.dependencies.clone(),
        backend: backend.name().to_owned(),
        lease: None,
        ..found
    };
    check(input, &environment).await?;
    environment.lease = Some(Lease::take(&folder, name)?);
    records::write(&records::path(&folder, name), &environment).await?;
    let most = input.settings.cache_size;
    let left = eviction::evict(backend, &folder, most, &log, input.progress).await;
    environment.notes.extend(left);
    Ok(environment)
}

/// Checks that the environment's interpreter runs and has the version it was built with.
async fn check(input: &BuildInput<'_>, environment: &Environment) -> Result<()> {
    let spec = environment.tool_spec(Limits::default(), "verify");
    let sandbox = retry_start(|| input.backend.start(&spec)).await?;
    let python = environment.python_in(&sandbox.info().paths);
    let python = python.to_string_lossy();
    let question = "import sys; print('%d.%d' % sys.version_info[:2])";
    let command = Command::new([python.as_ref(), "-c", question]);
    let asked = output(sandbox.as_ref(), &command, CHECK_TIMEOUT).await;
    sandbox.stop().await?;
    let asked = asked?;
    let version = String::from_utf8_lossy(&asked.stdout);
    if asked.code == 0 && version.trim() == environment.python_version {
        return Ok(());
    }
    let text = format!(
        "it does not run Python {}: {} {}",
        environment.python_version,
        version.trim(),
        String::from_utf8_lossy(&asked.stderr).trim()
    );
    Err(SandboxError::system(text))
}
