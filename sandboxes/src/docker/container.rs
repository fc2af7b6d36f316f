//! A sandbox that is a container: how it is made, and what can be done with it.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountType, ResourcesUlimits,
};
use bollard::query_parameters::{
    ContainerArchiveInfoOptions, CreateContainerOptions, DownloadFromContainerOptions,
    RemoveContainerOptions, UploadToContainerOptions,
};
use futures::TryStreamExt;
use futures::stream::BoxStream;

use super::archive::{self, First, Ids};
use super::connect::Engine;
use super::error::explain;
use super::exec::{self, Exec};
use super::images::{self, Image};
use super::owner;
use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::{Command, Facts, Paths, Process, Result, Sandbox, Spec};

const WORKSPACE: &str = "/testbed";
const STORE: &str = "/opt/testwright";
const CA_BUNDLE: &str = "/opt/testwright/ca-bundle.pem";

/// All that tools can write to in an image of ours: their own folders, and those that Debian lets everybody use.
pub(super) const WRITABLE: [&str; 5] = [WORKSPACE, "/tmp", "/var/tmp", "/home", "/run/lock"];

pub(super) struct Container {
    pub engine: Engine,
    pub spec: Spec,
    pub image: Image,
    /// Digest of the image: its name may come to mean another one.
    pub image_id: String,
    /// The engine's clock when it started.
    pub started: String,
    /// What was put elsewhere than into [`WRITABLE`] since.
    uploads: Mutex<BTreeSet<PathBuf>>,
    facts: Facts,
    user: Ids,
    remains: Remains,
}

impl Container {
    /// `fork_image` is an image that is removed together with the container.
    pub async fn start(
        engine: &Engine,
        spec: Spec,
        image: Image,
        fork_image: Option<String>,
    ) -> Result<Container> {
        let user = if spec.root {
            Ids::ROOT
        } else {
            tool_user(engine)?
        };
        let name = container_name(&spec.purpose);
        // From here on, whatever happens, the container is removed.
        let remains = Remains {
            engine: engine.clone(),
            name: name.clone(),
            fork_image,
            removed: AtomicBool::new(false),
        };
        let doing = format!("start a container of {}", image.name);
        let options = CreateContainerOptions {
            name: Some(name),
            ..CreateContainerOptions::default()
        };
        let config = configuration(engine, &spec, &image)?;
        let created = engine
            .patient()
            .create_container(Some(options), config)
            .await
            .map_err(|e| explain(&doing, e))?;
        for warning in &created.warnings {
            tracing::debug!(warning, "the engine warns");
        }
        let mut container = Container {
            facts: Facts {
                backend: "docker".to_owned(),
                isolation: isolation(&spec, user),
                id: created.id.clone(),
                paths: Paths {
                    workspace: WORKSPACE.into(),
                    environment: PathBuf::from(STORE).join("env"),
                    store: STORE.into(),
                    temporary: "/tmp".into(),
                },
            },
            engine: engine.clone(),
            spec,
            image,
            image_id: String::new(),
            started: String::new(),
            uploads: Mutex::default(),
            user,
            remains,
        };
        container.furnish().await?;
        let api = engine.patient();
        api.start_container(&created.id, None)
            .await
            .map_err(|e| explain(&doing, e))?;
        let state = engine
            .api
            .inspect_container(&created.id, None)
            .await
            .map_err(|e| explain(&doing, e))?;
        let labels = state.config.and_then(|c| c.labels).unwrap_or_default();
        container.image.foreign |= labels.contains_key(owner::FOREIGN);
        container.image_id = state.image.unwrap_or_default();
        container.started = state.state.and_then(|s| s.started_at).unwrap_or_default();
        Ok(container)
    }

    /// Makes our folders, and puts in the certificates.
    async fn furnish(&self) -> Result<()> {
        if !self.image.state {
            let list = [
                (Path::new("testbed"), self.user),
                (Path::new("opt/testwright"), Ids::ROOT),
            ];
            self.put(Path::new("/"), Tar::Whole(archive::folders(&list)?))
                .await?;
        }
        if let (true, Some(bundle)) = (self.spec.network, &self.engine.settings.ca_bundle) {
            let content = tokio::fs::read(bundle).await.map_err(|e| {
                SandboxError::new(
                    ErrorKind::Input,
                    format!("read the CA bundle {}: {e}", bundle.display()),
                )
            })?;
            let relative = Path::new(CA_BUNDLE)
                .strip_prefix("/")
                .unwrap_or(Path::new(CA_BUNDLE));
            let tar = archive::file(relative, &content, 0o644, Ids::ROOT)?;
            self.put(Path::new("/"), Tar::Whole(tar)).await?;
        }
        Ok(())
    }

    pub fn id(&self) -> &str {
        &self.facts.id
    }

    /// Runs a program as the user that tools run as, or as root.
    pub async fn exec(&self, command: &Command, user: Ids) -> Result<Process> {
        let mut env = self.environment();
        env.extend(command.env.clone());
        let directory = command.directory.as_deref().unwrap_or(Path::new(WORKSPACE));
        let exec = Exec {
            argv: command.argv.clone(),
            env: env
                .into_iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
            directory: directory.display().to_string(),
            user: format!("{}:{}", user.uid, user.gid),
        };
        exec::spawn(&self.engine, self.id(), exec).await
    }

    /// It belongs to processes, not to the container, because it must not become part of a saved state.
    fn environment(&self) -> std::collections::BTreeMap<String, String> {
        let home = if self.user == Ids::ROOT {
            "/root"
        } else {
            "/tmp"
        };
        let mut env = std::collections::BTreeMap::from([
            ("HOME".to_owned(), home.to_owned()),
            ("TMPDIR".to_owned(), "/tmp".to_owned()),
        ]);
        if self.spec.network {
            if self.engine.settings.ca_bundle.is_some() {
                let names = [
                    "SSL_CERT_FILE",
                    "REQUESTS_CA_BUNDLE",
                    "PIP_CERT",
                    "CURL_CA_BUNDLE",
                    "GIT_SSL_CAINFO",
                ];
                env.extend(names.map(|name| (name.to_owned(), CA_BUNDLE.to_owned())));
            }
            for (name, value) in &self.engine.settings.proxies {
                env.insert(name.to_uppercase(), value.clone());
                env.insert(name.to_lowercase(), value.clone());
            }
        }
        env.extend(self.spec.env.clone());
        env
    }

    pub async fn put(&self, folder: &Path, tar: Tar) -> Result<()> {
        let options = UploadToContainerOptions {
            path: folder.display().to_string(),
            ..UploadToContainerOptions::default()
        };
        let doing = format!("write to {} in the container", folder.display());
        let api = self.engine.patient();
        let body = match tar {
            Tar::Whole(bytes) => bollard::body_full(bytes.into()),
            Tar::Stream(stream) => bollard::body_try_stream(stream),
        };
        let sent = api
            .upload_to_container(self.id(), Some(options), body)
            .await;
        sent.map_err(|e| explain(&doing, e))
    }

    /// The archive of a path, as the engine gives it: its last component at the top.
    pub async fn get(&self, path: &Path) -> Result<Vec<u8>> {
        let options = DownloadFromContainerOptions {
            path: path.display().to_string(),
        };
        let chunks: Vec<bytes::Bytes> = self
            .engine
            .api
            .download_from_container(self.id(), Some(options))
            .try_collect()
            .await
            .map_err(|e| explain(&format!("read {} in the container", path.display()), e))?;
        Ok(chunks.concat())
    }

    /// Splits a path into the deepest folder above it that exists, and the rest.
    pub async fn existing(&self, path: &Path) -> Result<(PathBuf, PathBuf)> {
        if !path.is_absolute() || path.components().any(|c| c == Component::ParentDir) {
            return Err(SandboxError::new(
                ErrorKind::Input,
                format!(
                    "write {}: not an absolute path without `..`",
                    path.display()
                ),
            ));
        }
        let ours = [WORKSPACE, STORE, "/tmp", "/"];
        let mut folder = path;
        while !ours.iter().any(|known| Path::new(known) == folder) {
            let options = ContainerArchiveInfoOptions {
                path: folder.display().to_string(),
            };
            match self
                .engine
                .api
                .get_container_archive_info(self.id(), Some(options))
                .await
            {
                Ok(_) => break,
                Err(e) => match explain(
                    &format!("look for {} in the container", folder.display()),
                    e,
                ) {
                    error if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Input) => {}
                    error => return Err(error),
                },
            }
            folder = folder.parent().unwrap_or(Path::new("/"));
        }
        let rest = path.strip_prefix(folder).unwrap_or(path);
        Ok((folder.to_owned(), rest.to_owned()))
    }

    /// Tools own what is put where they can write, and nothing else.
    fn owner_of(&self, path: &Path) -> Ids {
        if WRITABLE.iter().any(|folder| path.starts_with(folder)) {
            return self.user;
        }
        self.remember(path);
        Ids::ROOT
    }

    pub fn uploads(&self) -> BTreeSet<PathBuf> {
        self.uploads
            .lock()
            .map(|list| list.clone())
            .unwrap_or_default()
    }

    pub fn remember(&self, path: &Path) {
        if let Ok(mut list) = self.uploads.lock() {
            list.insert(path.to_owned());
        }
    }

    pub fn tool_user(&self) -> Result<Ids> {
        tool_user(&self.engine)
    }

    pub fn user(&self) -> Ids {
        self.user
    }
}

/// An archive on its way into a container.
pub(super) enum Tar {
    Whole(Vec<u8>),
    Stream(BoxStream<'static, std::io::Result<bytes::Bytes>>),
}

fn tool_user(engine: &Engine) -> Result<Ids> {
    let user = &engine.settings.user;
    Ids::parse(user).ok_or_else(|| {
        SandboxError::new(ErrorKind::Input, format!("read the docker user `{user}`"))
            .hint("write it as UID or UID:GID, such as 1000:1000")
    })
}

fn isolation(spec: &Spec, user: Ids) -> String {
    let user = if user == Ids::ROOT {
        "root".to_owned()
    } else {
        format!("user {}", user.uid)
    };
    let network = if spec.network {
        "network"
    } else {
        "no network"
    };
    let capabilities = if spec.root {
        "default capabilities"
    } else {
        "capabilities dropped"
    };
    format!("container, {user}, {network}, {capabilities}")
}

fn container_name(purpose: &str) -> String {
    let clean = |c: char| {
        if c.is_ascii_alphanumeric() || "_.-".contains(c) {
            c
        } else {
            '-'
        }
    };
    let purpose: String = purpose.chars().take(60).map(clean).collect();
    format!("testwright-{purpose}-{}", unique())
}

/// A name that no other process, here or on another machine, is likely to take at the same moment.
pub(super) fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map(|d| d.as_micros()).unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{now:x}-{count}", std::process::id())
}

fn configuration(engine: &Engine, spec: &Spec, image: &Image) -> Result<ContainerCreateBody> {
    let limits = &spec.limits;
    let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let mut labels = owner::labels("sandbox", &spec.purpose);
    if image.foreign {
        labels.insert(owner::FOREIGN.to_owned(), "1".to_owned());
    }
    // Engines give a million open files or more, over which old Pythons loop at each start of a process.
    let mut ulimits = vec![
        ulimit("fsize", whole(limits.file_size)),
        ulimit("core", 0),
        ulimit("nofile", 16384),
    ];
    if engine.podman {
        // It asks for a million where nothing is said, and may not get them where it is confined itself.
        ulimits.push(ulimit("nproc", 16384));
    }
    let host = HostConfig {
        network_mode: (!spec.network).then(|| "none".to_owned()),
        memory: Some(whole(limits.memory)),
        memory_swap: Some(whole(limits.memory)),
        pids_limit: Some(whole(limits.processes)),
        nano_cpus: Some((limits.cpus * 1e9) as i64),
        ulimits: Some(ulimits),
        cap_drop: (!spec.root).then(|| vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        init: Some(true),
        log_config: Some(HostConfigLogConfig {
            typ: Some("none".to_owned()),
            config: None,
        }),
        mounts: if engine.local { mounts(spec)? } else { None },
        ..HostConfig::default()
    };
    Ok(ContainerCreateBody {
        image: Some(image.name.clone()),
        labels: Some(labels),
        // Not the user of the tools, who could end it: the process that only sleeps is root's, without capabilities.
        user: Some("0:0".to_owned()),
        entrypoint: Some(vec!["sh".to_owned(), "-c".to_owned()]),
        cmd: Some(vec!["while :; do sleep 3600 & wait $!; done".to_owned()]),
        working_dir: Some(WORKSPACE.to_owned()),
        hostname: Some("testwright".to_owned()),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    })
}

fn ulimit(name: &str, value: i64) -> ResourcesUlimits {
    ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(value),
        hard: Some(value),
    }
}

fn mounts(spec: &Spec) -> Result<Option<Vec<Mount>>> {
    let mut list = Vec::new();
    for mount in &spec.mounts {
        if !mount.read_only {
            std::fs::create_dir_all(&mount.host)?;
        }
        list.push(Mount {
            typ: Some(MountType::BIND),
            source: Some(std::path::absolute(&mount.host)?.display().to_string()),
            target: Some(mount.inside.display().to_string()),
            read_only: Some(mount.read_only),
            ..Mount::default()
        });
    }
    Ok((!list.is_empty()).then_some(list))
}

#[async_trait]
impl Sandbox for Container {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    async fn upload(&self, path: &Path, content: &[u8], mode: u32) -> Result<()> {
        let parent = path.parent().unwrap_or(Path::new("/"));
        let (folder, rest) = self.existing(parent).await?;
        let name = path.file_name().ok_or_else(|| {
            SandboxError::new(
                ErrorKind::Input,
                format!("write {}: it names no file", path.display()),
            )
        })?;
        let tar = archive::file(&rest.join(name), content, mode, self.owner_of(path))?;
        self.put(&folder, Tar::Whole(tar)).await
    }

    async fn unpack(&self, folder: &Path, archive: &Path) -> Result<()> {
        tokio::fs::metadata(archive).await.map_err(|e| {
            SandboxError::new(ErrorKind::Input, format!("read {}: {e}", archive.display()))
        })?;
        let (existing, rest) = self.existing(folder).await?;
        let tar = archive::owned(archive, rest, self.owner_of(folder));
        self.put(&existing, Tar::Stream(Box::pin(tar))).await
    }

    async fn download(&self, path: &Path) -> Result<Vec<u8>> {
        let mut path = path.to_owned();
        for _ in 0..16 {
            let tar = self.get(&path).await?;
            match archive::first(&tar)? {
                First::File(content) => return Ok(content),
                // The engine resolves links in folders, and never beyond the container, but gives a last one as it is.
                First::Link(target) => path = path.parent().unwrap_or(Path::new("/")).join(target),
                First::Other => break,
            }
        }
        Err(SandboxError::new(
            ErrorKind::Input,
            format!("read {}: it is no file", path.display()),
        ))
    }

    async fn spawn(&self, command: &Command) -> Result<Process> {
        self.exec(command, self.user).await
    }

    async fn fork(&self) -> Result<Box<dyn Sandbox>> {
        super::fork::fork(self).await
    }

    async fn save(&self, name: &str) -> Result<()> {
        super::fork::save(self, name).await
    }

    async fn health(&self) -> Result<()> {
        let doing = "ask how the container is";
        let answer = self.engine.hasty().inspect_container(self.id(), None).await;
        let state = answer
            .map_err(|e| explain(doing, e))?
            .state
            .unwrap_or_default();
        if state.running == Some(true) {
            return Ok(());
        }
        let why = if state.oom_killed == Some(true) {
            "it ran out of memory"
        } else {
            "it was ended"
        };
        Err(SandboxError::new(
            ErrorKind::Dead,
            format!("{doing}: it does not run any more, {why}"),
        ))
    }

    async fn stop(&self) -> Result<()> {
        self.remains.remove().await
    }
}

/// What has to be removed in the end. Dropped without that, it is tried in the background, and else left to the reaper.
struct Remains {
    engine: Engine,
    name: String,
    fork_image: Option<String>,
    removed: AtomicBool,
}

impl Remains {
    async fn remove(&self) -> Result<()> {
        if !self.removed.load(Ordering::Acquire) {
            remove_both(&self.engine, &self.name, self.fork_image.as_deref()).await?;
            self.removed.store(true, Ordering::Release);
        }
        Ok(())
    }
}

impl Drop for Remains {
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
        // A fork of the fork may still run from it; then the reaper takes it when its owner is gone.
        images::discard(engine, image).await;
    }
    Ok(())
}

/// Kills and removes a container; one that is not there is no error.
pub(super) async fn remove(engine: &Engine, name: &str) -> Result<()> {
    let options = RemoveContainerOptions {
        force: true,
        v: true,
        ..RemoveContainerOptions::default()
    };
    match engine.patient().remove_container(name, Some(options)).await {
        Ok(()) => Ok(()),
        Err(bollard::errors::Error::DockerResponseServerError {
            status_code: 404, ..
        }) => Ok(()),
        Err(bollard::errors::Error::DockerResponseServerError {
            status_code: 409,
            message,
        }) if message.contains("in progress") => Ok(()),
        Err(e) => Err(explain("remove a container", e)),
    }
}
