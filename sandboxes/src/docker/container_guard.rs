//! Guard for a container, and for the image that a fork started from.

use std::sync::atomic::{AtomicBool, Ordering};

use bollard::query_parameters::RemoveContainerOptions;

use super::engine::Engine;
use super::error::to_sandbox_error;
use super::images;
use crate::sandbox::Result;

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
    match engine
        .long_timeout()
        .remove_container(name, Some(options))
        .await
    {
        Ok(()) => Ok(()),
        Err(bollard::errors::Error::DockerResponseServerError {
            status_code: 404, ..
        }) => Ok(()),
        Err(bollard::errors::Error::DockerResponseServerError {
            status_code: 409,
            message,
        }) if message.contains("in progress") => Ok(()),
        Err(e) => Err(to_sandbox_error("remove a container", e)),
    }
}
