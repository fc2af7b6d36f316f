//! Guard for a container, and for the image that a fork started from.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bollard::errors::Error;
use bollard::query_parameters::RemoveContainerOptions;

use super::engine::Engine;
use super::error::{EngineResult, to_sandbox_error};
use super::images;
use crate::sandbox::Result;

/// Maximum time to wait for a removal that another request started, and the time between two checks.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A container and image that must be removed in the end. If this is dropped earlier, it tries to remove them in the
/// background, and leaves the rest to the reaper.
pub(super) struct ContainerGuard {
    pub engine: Engine,
    pub name: String,
    pub fork_image: Option<String>,
    pub removed: AtomicBool,
}

impl ContainerGuard {
    pub(super) async fn remove(&self) -> Result<()> {
        if !self.removed.load(Ordering::Acquire) {
            remove_both(&self.engine, &self.name, self.fork_image.as_deref()).await?;
            self.removed.store(true, Ordering::Release);
        }
        Ok(())
    }
}

impl Drop for ContainerGuard {
    fn drop(&mut self) {
        if *self.removed.get_mut() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (engine, name, image) = (
                self.engine.clone(),
                self.name.clone(),
                self.fork_image.clone(),
            );
            runtime.spawn(async move {
                if let Err(error) = remove_both(&engine, &name, image.as_deref()).await {
                    tracing::debug!(%error, "a container was left to the reaper");
                }
            });
        }
    }
}

async fn remove_both(engine: &Engine, container: &str, fork_image: Option<&str>) -> Result<()> {
    remove(engine, container).await?;
    if let Some(image) = fork_image {
        // A fork of the fork may still run from this image. The reaper then removes it once its owner is gone.
        images::discard(engine, image).await;
    }
    Ok(())
}

/// Kills and removes a container; a missing one is not an error.
pub(super) async fn remove(engine: &Engine, name: &str) -> Result<()> {
    let options = RemoveContainerOptions {
        force: true,
        v: true,
        ..RemoveContainerOptions::default()
    };
    let api = engine.long_timeout();
    match api.remove_container(name, Some(options)).await {
        Err(Error::DockerResponseServerError {
            status_code: 404, ..
        }) => Ok(()),
        Err(Error::DockerResponseServerError {
            status_code: 409,
            message,
        }) if message.contains("in progress") => await_removal(engine, name).await,
        removed => removed.doing("remove a container"),
    }
}

/// Waits until a container that another request removes is gone. An interrupted program would otherwise end while its
/// container still runs.
async fn await_removal(engine: &Engine, name: &str) -> Result<()> {
    let deadline = Instant::now() + REMOVAL_TIMEOUT;
    while Instant::now() < deadline {
        match engine.api.inspect_container(name, None).await {
            Ok(_) => tokio::time::sleep(POLL_INTERVAL).await,
            Err(Error::DockerResponseServerError {
                status_code: 404, ..
            }) => return Ok(()),
            Err(e) => return Err(to_sandbox_error("remove a container", e)),
        }
    }
    // The engine continues the removal by itself.
    Ok(())
}
