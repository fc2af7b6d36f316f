//! A container: its creation and operations. The module `sandbox` implements the trait for it.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use bollard::query_parameters::{
    ContainerArchiveInfoOptions, CreateContainerOptions, DownloadFromContainerOptions,
    UploadToContainerOptions,
};
use futures::TryStreamExt;
use futures::stream::BoxStream;

use super::archive::{self, Ids};
use super::container_config::{STORE, WORKSPACE, WRITABLE, container_config};
use super::container_guard::ContainerGuard;
use super::disk::DiskWatch;
use super::engine::Engine;
use super::error::EngineResult;
use super::exec;
use super::images::Image;
use super::owner;
use super::parent_death::{self, ContainerAttachment};
use crate::error::{ErrorKind, SandboxError};
use crate::mutex::lock;
use crate::sandbox::{Command, Paths, Process, Result, SandboxInfo, Spec, unique_id};

pub(super) struct Container {
    pub engine: Engine,
    pub spec: Spec,
    pub image: Image,
    /// Digest of the image; its name may refer to another image later.
    pub image_id: String,
    /// Start time by the engine's clock.
    pub started: String,
    /// Files that were uploaded outside [`WRITABLE`] since the start.
    uploads: Mutex<BTreeSet<PathBuf>>,
    pub info: SandboxInfo,
    pub user: Ids,
    pub guard: ContainerGuard,
    pub disk: std::sync::Arc<DiskWatch>,
    lifeline: Option<ContainerAttachment>,
}

impl Container {
    /// Creates and starts a container. `fork_image` is an image to remove together with the container.
    pub(super) async fn start(
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
        // From here on, the guard removes the container whatever happens.
        let guard = ContainerGuard {
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
        let config = container_config(engine, &spec, &image)?;
        let created = engine
            .long_timeout()
            .create_container(Some(options), config)
            .await
            .doing(&doing)?;
        for warning in &created.warnings {
            tracing::debug!(warning, "the engine warns");
        }
        let mut container = Container {
            info: SandboxInfo {
                backend: "docker".to_owned(),
                isolation: isolation(&spec, user),
                id: created.id.clone(),
                paths: Paths {
                    workspace: WORKSPACE.into(),
                    environment: PathBuf::from(STORE).join("env"),
                    store: STORE.into(),
                    temporary: "/tmp".into(),
                    private: "/home/testwright-toolbox".into(),
                    toolbox: "/home/testwright-toolbox".into(),
                },
            },
            engine: engine.clone(),
            spec,
            image,
            image_id: String::new(),
            started: String::new(),
            uploads: Mutex::default(),
            user,
            guard,
            disk: std::sync::Arc::default(),
            lifeline: None,
        };
        container.create_directories().await?;
        container.lifeline = Some(parent_death::tie(engine, container.id()).await?);
        let api = engine.long_timeout();
        api.start_container(&created.id, None).await.doing(&doing)?;
        let state = engine.api.inspect_container(&created.id, None).await;
        let state = state.doing(&doing)?;
        let labels = state.config.and_then(|c| c.labels).unwrap_or_default();
        container.image.foreign |= labels.contains_key(owner::FOREIGN);
        container.image_id = state.image.unwrap_or_default();
        container.started = state.state.and_then(|s| s.started_at).unwrap_or_default();
        let Spec { limits, root, .. } = &container.spec;
        container.disk = DiskWatch::start(engine, container.id(), limits, *root);
        Ok(container)
    }

    /// Creates testwright's folders.
    async fn create_directories(&self) -> Result<()> {
        if !self.image.state {
            let list = [
                (Path::new("testbed"), self.user),
                (Path::new("opt/testwright"), Ids::ROOT),
            ];
            self.upload_archive(Path::new("/"), Tar::Whole(archive::folders(&list)?))
                .await?;
        }
        Ok(())
    }

    pub(super) fn id(&self) -> &str {
        &self.info.id
    }

    /// Runs a program as the given user, the one for tools or root.
    pub(super) async fn exec(&self, command: &Command, user: Ids) -> Result<Process> {
        let mut env = self.environment();
        env.extend(command.env.clone());
        exec::spawn(&self.engine, self.id(), command, env, user).await
    }

    /// Returns the environment of processes. It is not part of the container's settings, because it must not become
    /// part of a saved state.
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
        env.extend(self.spec.env.clone());
        env
    }

    pub(super) async fn upload_archive(&self, folder: &Path, tar: Tar) -> Result<()> {
        let options = UploadToContainerOptions {
            path: folder.display().to_string(),
            ..UploadToContainerOptions::default()
        };
        let doing = format!("write to {} in the container", folder.display());
        let api = self.engine.long_timeout();
        let body = match tar {
            Tar::Whole(bytes) => bollard::body_full(bytes.into()),
            Tar::Stream(stream) => bollard::body_try_stream(stream),
        };
        let sent = api
            .upload_to_container(self.id(), Some(options), body)
            .await;
        sent.doing(&doing)
    }

    /// Downloads the archive of a path, with the last component of the path at its top. An archive of more than `max`
    /// bytes is an error.
    pub(super) async fn get(&self, path: &Path, max: usize) -> Result<Vec<u8>> {
        let options = DownloadFromContainerOptions {
            path: path.display().to_string(),
        };
        let doing = format!("read {} in the container", path.display());
        let download = self
            .engine
            .api
            .download_from_container(self.id(), Some(options));
        let mut parts = std::pin::pin!(download);
        let mut archive = Vec::new();
        while let Some(part) = parts.try_next().await.doing(&doing)? {
            archive.extend_from_slice(&part);
            if archive.len() > max {
                let text = format!("{doing}: it is larger than {} MiB", max >> 20);
                return Err(SandboxError::input(text));
            }
        }
        Ok(archive)
    }

    /// Splits a path into its deepest existing parent folder and the rest.
    pub(super) async fn split_at_existing(&self, path: &Path) -> Result<(PathBuf, PathBuf)> {
        if !path.is_absolute() || path.components().any(|c| c == Component::ParentDir) {
            return Err(SandboxError::input(format!(
                "write {}: the path must be absolute and must not contain `..`",
                path.display()
            )));
        }
        let own_folders = [WORKSPACE, STORE, "/tmp", "/"].map(Path::new);
        let (api, mut folder) = (&self.engine.api, path);
        while !own_folders.contains(&folder) {
            let options = ContainerArchiveInfoOptions {
                path: folder.display().to_string(),
            };
            let doing = format!("look for {} in the container", folder.display());
            let found = api.get_container_archive_info(self.id(), Some(options));
            match found.await.doing(&doing) {
                Ok(_) => break,
                Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Input) => {}
                Err(error) => return Err(error),
            }
            folder = folder.parent().unwrap_or(Path::new("/"));
        }
        let missing_part = path.strip_prefix(folder).unwrap_or(path);
        Ok((folder.to_owned(), missing_part.to_owned()))
    }

    /// Splits the path of a new file into its deepest existing parent folder and the path from there.
    pub(super) async fn target(&self, path: &Path) -> Result<(PathBuf, PathBuf)> {
        let parent = path.parent().unwrap_or(Path::new("/"));
        let (folder, missing_part) = self.split_at_existing(parent).await?;
        let name = path.file_name().ok_or_else(|| {
            SandboxError::input(format!(
                "write {}: the path does not name a file",
                path.display()
            ))
        })?;
        Ok((folder, missing_part.join(name)))
    }

    /// Returns the owner for a new file: the tools' user in folders that tools can write, otherwise root.
    pub(super) fn owner_of(&self, path: &Path) -> Ids {
        if WRITABLE.iter().any(|folder| path.starts_with(folder)) {
            return self.user;
        }
        self.record_upload(path);
        Ids::ROOT
    }

    pub(super) fn uploads(&self) -> BTreeSet<PathBuf> {
        lock(&self.uploads).clone()
    }

    pub(super) fn record_upload(&self, path: &Path) {
        lock(&self.uploads).insert(path.to_owned());
    }
}

/// An archive to unpack in a container.
pub(super) enum Tar {
    Whole(Vec<u8>),
    Stream(BoxStream<'static, std::io::Result<bytes::Bytes>>),
}

pub(super) fn tool_user(engine: &Engine) -> Result<Ids> {
    let user = &engine.settings.user;
    Ids::parse(user).ok_or_else(|| {
        SandboxError::input(format!("read the docker user `{user}`"))
            .hint("write it as UID or UID:GID, such as 1000:1000")
    })
}

fn isolation(spec: &Spec, user: Ids) -> String {
    let user = if user == Ids::ROOT {
        "root".to_owned()
    } else {
        format!("user {}", user.uid)
    };
    let capabilities = if spec.root {
        "capabilities of an installer"
    } else {
        "capabilities dropped"
    };
    format!("container, {user}, no network, {capabilities}")
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
    format!("testwright-{purpose}-{}", unique_id())
}
