//! Settings of the container engine.

use std::path::PathBuf;

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
    /// Whether to pull images that the engine does not have.
    pub pull: bool,
    /// User that tools run as, `UID` or `UID:GID`; `0` for root.
    pub user: String,
    /// File that caches answers of registries; `None` to ask each time.
    pub registry_answers: Option<PathBuf>,
}

impl Default for DockerSettings {
    fn default() -> Self {
        DockerSettings {
            host: None,
            base: None,
            pull: true,
            user: "1000:1000".to_owned(),
            registry_answers: None,
        }
    }
}
