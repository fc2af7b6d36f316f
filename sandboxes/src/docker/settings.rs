//! Settings of the container engine.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the `docker` backend.
#[derive(Debug, Clone, PartialEq)]
pub struct DockerSettings {
    /// Address of the engine: `unix:///path`, `tcp://host:port` or `ssh://user@host`. Default: `DOCKER_HOST`, otherwise
    /// the first usual socket of Docker or Podman that answers.
    pub host: Option<String>,
    /// Name of the base image; `{python}` is replaced by the version, e.g. `python:{python}-bookworm`. Default:
    /// `testwright/python:{python}` or `python:{python}-bookworm`, whichever the engine has; otherwise the second is
    /// pulled.
    pub base: Option<String>,
    /// When images are pulled from a registry.
    pub pull: Pull,
    /// User that tools run as, `UID` or `UID:GID`; `0` for root.
    pub user: String,
    /// File that caches answers of registries; `None` to ask each time.
    pub registry_answers: Option<PathBuf>,
}

/// When images are pulled from a registry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pull {
    /// Images are pulled before each use.
    Always,
    /// Images are pulled if the engine lacks them.
    #[default]
    Missing,
    /// Images are never pulled: the engine must have them.
    Never,
}

impl Default for DockerSettings {
    fn default() -> Self {
        DockerSettings {
            host: None,
            base: None,
            pull: Pull::default(),
            user: "1000:1000".to_owned(),
            registry_answers: None,
        }
    }
}
