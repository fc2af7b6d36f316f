//! Connection to a container engine, and its properties.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::error::EngineResult;
use super::settings::DockerSettings;
use crate::error::SandboxError;
use crate::sandbox::Result;

/// A connected engine.
#[derive(Clone)]
pub(super) struct Engine {
    pub api: bollard::Docker,
    pub settings: Arc<DockerSettings>,
    pub description: String,
    pub architecture: String,
    /// Whether the engine runs on this machine, so that its containers can see this machine's files and share its
    /// clock.
    pub local: bool,
    pub podman: bool,
}

/// Isolation that an engine reports to support.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineSecurity {
    /// Whether it can filter system calls.
    pub seccomp: bool,
    /// Whether root in a container differs from root outside (rootless, or user namespaces).
    pub own_users: bool,
    /// Whether it can limit memory.
    pub memory: bool,
    /// Whether it can limit processes.
    pub processes: bool,
}

/// Timeout for connecting to an engine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

impl Engine {
    pub(super) async fn connect(settings: DockerSettings) -> Result<Engine> {
        let chosen = settings.host.clone().or_else(|| variable("DOCKER_HOST"));
        let hosts = match &chosen {
            Some(host) => vec![host.clone()],
            None => usual_sockets(),
        };
        let settings = Arc::new(settings);
        let mut first = None;
        for host in &hosts {
            match connect_to(host, &settings).await {
                Ok(engine) => return Ok(engine),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or_else(|| {
            SandboxError::unavailable(
                "reach a container engine: no Docker or Podman socket exists in the usual places",
            )
            .hint("start Docker, set DOCKER_HOST to another engine, or use --sandbox local")
        }))
    }

    /// Returns whether commits may be wrong. Engines on fuse-overlayfs compare whole trees, and do not notice that a
    /// folder was removed and created again. Podman does not report whether it uses fuse-overlayfs.
    pub(super) async fn has_unreliable_commits(&self) -> Result<bool> {
        if self.podman {
            return Ok(true);
        }
        let info = self.api.info().await;
        let info = info.doing("ask the engine about its storage")?;
        Ok(info.driver.as_deref() == Some("fuse-overlayfs"))
    }

    pub(super) async fn security(&self) -> Result<EngineSecurity> {
        let info = self.api.info().await;
        let info = info.doing("ask the engine about its isolation")?;
        let options = info.security_options.unwrap_or_default();
        // An option has the form `name=seccomp,profile=builtin`.
        let has = |name: &str| {
            let has_name = |option: &String| {
                option
                    .split(',')
                    .any(|o| o.trim_start_matches("name=") == name)
            };
            options.iter().any(has_name)
        };
        Ok(EngineSecurity {
            seccomp: has("seccomp"),
            own_users: has("rootless") || has("userns"),
            memory: info.memory_limit == Some(true),
            processes: info.pids_limit == Some(true),
        })
    }

    /// Returns a client for long requests, such as a commit or a large upload.
    pub(super) fn long_timeout(&self) -> bollard::Docker {
        self.api.clone().with_timeout(Duration::from_secs(3600))
    }

    /// Returns a client for requests that must be answered at once.
    pub(super) fn short_timeout(&self) -> bollard::Docker {
        self.api.clone().with_timeout(Duration::from_secs(5))
    }
}

async fn connect_to(host: &str, settings: &Arc<DockerSettings>) -> Result<Engine> {
    let doing = format!("the container engine at {host} cannot be used");
    let address = if host.starts_with('/') {
        format!("unix://{host}")
    } else {
        host.to_owned()
    };
    let api = bollard::Docker::connect_with_host(&address).doing(&doing)?;
    let conversation = async {
        let api = api.negotiate_version().await?;
        let version = api.version().await?;
        Ok::<_, bollard::errors::Error>((api, version))
    };
    let (api, version) = tokio::time::timeout(CONNECT_TIMEOUT, conversation)
        .await
        .map_err(|_| {
            SandboxError::unavailable(format!("{doing}: it did not answer within {} s", CONNECT_TIMEOUT.as_secs()))
            .hint("check that `docker info` answers at once; the machine may be overloaded, or the engine stuck")
        })?
        .doing(&doing)?;
    let podman = version
        .components
        .iter()
        .flatten()
        .any(|c| c.name.to_lowercase().contains("podman"));
    let product = if podman { "Podman" } else { "Docker" };
    if version.os.as_deref().is_some_and(|os| os != "linux") {
        return Err(SandboxError::unavailable(format!(
            "{doing}: it does not run Linux containers"
        ))
        .hint("switch it to Linux containers"));
    }
    Ok(Engine {
        description: format!(
            "{product} {} at {address}",
            version.version.unwrap_or_default()
        ),
        architecture: version.arch.unwrap_or_default(),
        local: address.starts_with("unix://"),
        settings: Arc::clone(settings),
        podman,
        api,
    })
}

/// Returns the existing sockets, in the order in which they are tried.
fn usual_sockets() -> Vec<String> {
    let mut paths = vec![PathBuf::from("/var/run/docker.sock")];
    if let Some(home) = variable("HOME") {
        paths.push(PathBuf::from(home).join(".docker/run/docker.sock"));
    }
    if let Some(folder) = variable("XDG_RUNTIME_DIR") {
        paths.push(PathBuf::from(&folder).join("docker.sock"));
        paths.push(PathBuf::from(&folder).join("podman/podman.sock"));
    }
    paths.push(PathBuf::from("/run/podman/podman.sock"));
    paths.retain(|path| path.exists());
    paths
        .iter()
        .map(|path| format!("unix://{}", path.display()))
        .collect()
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
