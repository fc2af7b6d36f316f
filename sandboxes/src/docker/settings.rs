//! What a user can set about the engine.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Settings of the `docker` backend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct DockerSettings {
    /// Where the engine listens: `unix:///path`, `tcp://host:port` or `ssh://user@host`. Default: `DOCKER_HOST`, else
    /// the usual sockets of Docker and Podman, the first that answers.
    pub host: Option<String>,
    /// Name of the base image, where `{python}` stands for the version: `python:{python}-bookworm`. Default:
    /// `testwright/python:{python}` or `python:{python}-bookworm`, whichever the engine has, else the second is pulled.
    pub base: Option<String>,
    /// Pull images that the engine does not have.
    pub pull: bool,
    /// The user that tools run as, `UID` or `UID:GID`; `0` for root.
    pub user: String,
    /// Certificates to trust while there is network: a PEM file on this machine, put into the sandbox.
    pub ca_bundle: Option<PathBuf>,
    /// Environment while there is network, such as `HTTPS_PROXY` and `NO_PROXY`.
    pub proxies: BTreeMap<String, String>,
    /// File in which answers of registries are kept for a while; `None`: they are asked each time.
    pub registry_answers: Option<PathBuf>,
}

impl Default for DockerSettings {
    fn default() -> Self {
        DockerSettings {
            host: None,
            base: None,
            pull: true,
            user: "1000:1000".to_owned(),
            ca_bundle: None,
            proxies: BTreeMap::new(),
            registry_answers: None,
        }
    }
}
