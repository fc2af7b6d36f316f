//! The `docker` backend: sandboxes are containers of any engine with a Docker-compatible API (Docker, Podman), on this
//! machine or another one. No other module names bollard.
//!
//! A container runs only a sleeping process; everything else is an `exec` in it. The backend uses registries only to
//! pull, and does not support Windows containers.

#[cfg(not(fuzzing))]
mod archive;
#[cfg(fuzzing)]
pub mod archive;
mod container;
mod container_config;
mod container_guard;
mod disk;
mod engine;
mod error;
mod exec;
mod fork;
mod image_build;
mod images;
mod incremental_fork;
mod owner;
mod parent_death;
mod reaper;
mod registry_answers;
mod sandbox;
mod seccomp;
mod settings;
mod size;
mod state_archive;
mod stop_processes;

use std::path::Path;

use async_trait::async_trait;

pub use engine::EngineSecurity;
pub use settings::{DockerSettings, Pull};

use crate::sandbox::{Backend, ImageBuild, Result, Sandbox, SandboxSource, Spec};
use container::Container;
use engine::Engine;

/// A connection to a container engine.
#[derive(Clone)]
pub struct Docker {
    engine: Engine,
}

impl Docker {
    /// Finds the engine and asks for its version.
    ///
    /// # Errors
    ///
    /// Kind `Unavailable`, with a hint, if no engine answers.
    pub async fn connect(settings: DockerSettings) -> Result<Docker> {
        let engine = Engine::connect(settings).await?;
        Ok(Docker { engine })
    }

    /// Describes the engine for people: its name, version and address.
    pub fn describe(&self) -> &str {
        &self.engine.description
    }

    /// Asks the engine which isolation it supports.
    ///
    /// # Errors
    ///
    /// Fails if the engine does not answer.
    pub async fn security(&self) -> Result<EngineSecurity> {
        self.engine.security().await
    }
}

#[async_trait]
impl Backend for Docker {
    fn name(&self) -> &'static str {
        "docker"
    }

    fn layout(&self) -> String {
        let settings = &self.engine.settings;
        let base = settings.base.as_deref().unwrap_or("default");
        format!(
            "docker-2 {} base={base} user={}",
            self.engine.architecture, settings.user
        )
    }

    async fn start(&self, spec: &Spec) -> Result<Box<dyn Sandbox>> {
        let image = match &spec.start {
            SandboxSource::Python(version) => images::python(&self.engine, version).await?,
            SandboxSource::Image(name) => images::named(&self.engine, name).await?,
            SandboxSource::Saved(name) => images::saved(&self.engine, name).await?,
        };
        let container = Container::start(&self.engine, spec.clone(), image, None).await?;
        Ok(Box::new(container))
    }

    async fn has_saved(&self, name: &str) -> Result<bool> {
        images::present(&self.engine, &images::state_tag(name)).await
    }

    async fn saved_bytes(&self, name: &str) -> Result<u64> {
        size::saved_bytes(&self.engine, name).await
    }

    async fn remove_saved(&self, name: &str) -> Result<()> {
        images::remove(&self.engine, &images::state_tag(name)).await
    }

    async fn export_saved(&self, name: &str, to: &Path) -> Result<()> {
        state_archive::export(&self.engine, name, to).await
    }

    async fn import_saved(&self, name: &str, from: &Path) -> Result<()> {
        state_archive::import(&self.engine, name, from).await
    }

    /// Returns an empty text: an image does not depend on the machine.
    async fn machine(&self, _: Option<&str>) -> Result<String> {
        Ok(String::new())
    }

    async fn check_python(&self, version: &str) -> Result<()> {
        images::check_python(&self.engine, version).await
    }

    async fn image_digest(&self, name: &str) -> Result<String> {
        images::named(&self.engine, name).await?;
        Ok(images::id(&self.engine, name).await?.unwrap_or_default())
    }

    fn image_name(&self, state: &str) -> Result<String> {
        Ok(images::state_tag(state))
    }

    async fn build_image(&self, build: &ImageBuild<'_>) -> Result<()> {
        image_build::build(&self.engine, build).await
    }

    async fn abandon(&self) -> Result<()> {
        reaper::remove_own(&self.engine).await
    }

    async fn clean(&self) -> Result<Vec<String>> {
        reaper::clean(&self.engine).await
    }
}
