//! One local sandbox: its folders and its jail.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::io::{AsyncBufRead, AsyncWriteExt, BufReader};

use super::LocalContext;
use super::client::{Jail, ReapOnDrop, launch};
use super::copy::{CopyMode, copy_entries, copy_tree};
use super::layout;
use super::protocol::{Isolation, NOT_FOUND, Task};
use super::sandbox_dirs::{SandboxDirs, create_dirs, fill};
use super::state_store::{SavedState, StateLease, with_context};
use super::store::Store;
use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::{
    Command, Process, Result, Sandbox, SandboxInfo, Spec, read_all, read_messages,
};

pub(super) struct LocalSandbox {
    inner: Arc<LocalContext>,
    spec: Spec,
    info: SandboxInfo,
    jail: Jail,
    dirs: Arc<SandboxDirs>,
}

/// Starts a sandbox with the files of `spec.start`.
pub(super) async fn start(inner: Arc<LocalContext>, spec: &Spec) -> Result<LocalSandbox> {
    let (for_files, spec_copy) = (inner.clone(), spec.clone());
    let dirs = blocking(move || create_dirs(&for_files, &spec_copy)).await?;
    enter(inner, spec.clone(), dirs).await
}

async fn enter(inner: Arc<LocalContext>, spec: Spec, dirs: SandboxDirs) -> Result<LocalSandbox> {
    let setup = layout::setup(&inner, &spec, &dirs)?;
    let log = dirs.owned.folder.join("launcher.log");
    let jail = launch(&inner.launcher, &setup, &log).await?;
    let facts = SandboxInfo {
        backend: "local".to_owned(),
        isolation: layout::describe(&inner, &spec, &jail.missing_protections),
        id: dirs.owned.id.clone(),
        paths: layout::paths(inner.isolation, &dirs.owned.folder),
    };
    Ok(LocalSandbox {
        inner,
        spec,
        info: facts,
        jail,
        dirs: Arc::new(dirs),
    })
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await?
}

/// The remains of a dropped sandbox, in the order in which they must end.
struct DroppedSandbox {
    _keeper: Option<ReapOnDrop>,
    _dirs: Arc<SandboxDirs>,
    _inner: Arc<LocalContext>,
}

impl Drop for LocalSandbox {
    /// Removes the files of a sandbox that was not stopped, once its processes have ended. A runtime waits for this
    /// before it ends, so an interrupted program leaves nothing behind.
    fn drop(&mut self) {
        if !self.dirs.owned.folder.exists() {
            return;
        }
        let remains = DroppedSandbox {
            _keeper: self.jail.abandon(),
            _dirs: self.dirs.clone(),
            _inner: self.inner.clone(),
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || drop(remains))),
            Err(_) => drop(std::thread::spawn(move || drop(remains))),
        }
    }
}

impl LocalSandbox {
    /// Runs a file task with this input, and returns its output.
    async fn file_task(
        &self,
        task: Task,
        path: &Path,
        mut input: impl AsyncBufRead + Send + Unpin,
    ) -> Result<Vec<u8>> {
        let mut process = self.jail.start(task).await?;
        let feed = async move {
            // The exit code reports an early end of the task.
            let _ = tokio::io::copy_buf(&mut input, &mut process.stdin).await;
            drop(process.stdin);
        };
        let name = || path.display().to_string();
        let reading = async {
            tokio::try_join!(read_all(&name, process.stdout), async {
                Ok(read_messages(process.stderr).await?)
            })
        };
        let (_, read) = tokio::join!(feed, reading);
        let (out, message) = read?;
        match process.exit.await? {
            0 => Ok(out),
            NOT_FOUND => Err(SandboxError::not_found(message)),
            code if message.is_empty() => {
                let text = format!("access {}: the task ended with code {code}", path.display());
                Err(SandboxError::system(text))
            }
            _ => Err(SandboxError::system(message)),
        }
    }

    /// Packs the workspace as the jail sees it.
    async fn pack(&self) -> Result<fs::File> {
        let folder = self.info.paths.workspace.clone();
        let process = self.jail.start(Task::Pack { folder }).await?;
        drop(process.stdin);
        let mut archive = process.stdout;
        let file = tempfile::tempfile_in(&self.dirs.owned.folder)?;
        let mut target = tokio::fs::File::from_std(file.try_clone()?);
        tokio::io::copy(&mut archive, &mut target).await?;
        target.flush().await?;
        match process.exit.await? {
            0 => Ok(file),
            code => {
                let text = format!("pack the workspace: the task ended with code {code}");
                Err(SandboxError::system(text))
            }
        }
    }

    /// Returns the store and the path in it, if processes inside must not write there.
    fn protected(&self, path: &Path) -> Option<(Store, PathBuf)> {
        let relative = path.strip_prefix(&self.info.paths.store).ok()?;
        (!self.spec.root).then(|| (self.store(), relative.to_owned()))
    }

    fn store(&self) -> Store {
        Store {
            shares_environment: self
                .dirs
                .shares_environment(&self.inner, &self.spec)
                .is_some(),
            inside: self.info.paths.store.clone(),
            inner: self.inner.clone(),
            dirs: self.dirs.clone(),
        }
    }
}

/// Checks that the environment is a real folder. It is mounted when a sandbox starts from the state, and a link would
/// be resolved on the host.
fn check_is_folder(environment: &Path) -> Result<()> {
    match fs::symlink_metadata(environment) {
        Ok(metadata) if !metadata.is_dir() => {
            let kind = if metadata.is_symlink() {
                "a link"
            } else {
                "a file"
            };
            let text = format!("save the environment: the build replaced its folder with {kind}");
            Err(SandboxError::new(ErrorKind::Build, text))
        }
        _ => Ok(()),
    }
}

/// Unpacks an archive from inside a sandbox. Its paths and links are untrusted, and the tar crate keeps them in the
/// folder.
fn unpack_saved(mut archive: fs::File, folder: &Path, owner: Option<u32>) -> Result<()> {
    std::io::Seek::rewind(&mut archive)?;
    let aside = folder.with_extension("unpacked");
    fs::create_dir(&aside)?;
    let mut archive = tar::Archive::new(std::io::BufReader::new(archive));
    archive.set_preserve_permissions(true);
    // Such bits must not exist even for a moment, since the unpacked files belong to the user of this process.
    archive.set_mask(super::copy::SETID_BITS);
    archive.unpack(&aside)?;
    copy_tree(&aside, folder, CopyMode::Copy, owner)?;
    Ok(super::removal::remove_tree(&aside)?)
}

async fn open(path: &Path) -> Result<BufReader<tokio::fs::File>> {
    let file = tokio::fs::File::open(path).await;
    let file = file.map_err(with_context("open", path))?;
    // Each read of a file is a separate blocking task, so reads must be large.
    Ok(BufReader::with_capacity(1 << 20, file))
}

#[async_trait]
impl Sandbox for LocalSandbox {
    fn info(&self) -> &SandboxInfo {
        &self.info
    }

    async fn upload(&self, path: &Path, content: &[u8], mode: u32) -> Result<()> {
        if let Some((store, relative)) = self.protected(path) {
            let content = content.to_owned();
            return blocking(move || store.write(&relative, &content, mode)).await;
        }
        let task = Task::Upload {
            path: path.to_owned(),
            mode,
        };
        self.file_task(task, path, content).await.map(drop)
    }

    async fn upload_file(&self, path: &Path, from: &Path, mode: u32) -> Result<()> {
        if let Some((store, relative)) = self.protected(path) {
            let from = from.to_owned();
            return blocking(move || store.add_file(&relative, &from, mode)).await;
        }
        let file = open(from).await?;
        let task = Task::Upload {
            path: path.to_owned(),
            mode,
        };
        self.file_task(task, path, file).await.map(drop)
    }

    async fn unpack(&self, folder: &Path, archive: &Path) -> Result<()> {
        if let Some((store, relative)) = self.protected(folder) {
            let archive = archive.to_owned();
            return blocking(move || store.unpack(&relative, &archive)).await;
        }
        let file = open(archive).await?;
        let task = Task::Unpack {
            folder: folder.to_owned(),
        };
        self.file_task(task, folder, file).await.map(drop)
    }

    async fn download(&self, path: &Path) -> Result<Vec<u8>> {
        let task = Task::Download {
            path: path.to_owned(),
        };
        self.file_task(task, path, &b""[..]).await
    }

    async fn spawn(&self, command: &Command) -> Result<Process> {
        let directory = command
            .directory
            .as_ref()
            .unwrap_or(&self.info.paths.workspace);
        let outside = |text: &String| layout::host_path(&self.inner, &self.spec, text);
        let env: BTreeMap<_, _> = command
            .env
            .iter()
            .map(|(name, value)| (name.clone(), outside(value)))
            .collect();
        self.jail
            .start(Task::Run {
                argv: command.argv.iter().map(outside).collect(),
                directory: directory.clone(),
                env,
            })
            .await
    }

    async fn fork(&self) -> Result<Box<dyn Sandbox>> {
        // The files must not change, or become links, while they are copied.
        self.jail.run_task(Task::Freeze).await?;
        let (inner, spec, dirs) = (self.inner.clone(), self.spec.clone(), self.dirs.clone());
        let copied = blocking(move || {
            let owned = inner.cache.new_sandbox(&spec.purpose)?;
            let copy = SandboxDirs {
                owner: inner.owner(&owned.id),
                owned,
                state: dirs.state.as_ref().map(StateLease::duplicate).transpose()?,
                python: dirs.python.clone(),
            };
            fill(&inner, &spec, &copy, Some(&dirs.owned.folder)).map(|()| copy)
        });
        let copied = copied.await;
        self.jail.run_task(Task::Thaw).await?;
        let copy = copied?;
        Ok(Box::new(
            enter(self.inner.clone(), self.spec.clone(), copy).await?,
        ))
    }

    async fn save(&self, name: &str) -> Result<()> {
        self.jail.run_task(Task::EndProcesses).await?;
        let (inner, dirs, name) = (self.inner.clone(), self.dirs.clone(), name.to_owned());
        let state = SavedState {
            python: dirs.python.clone(),
            built: match &dirs.state {
                Some(state) if !self.spec.root => state.state.built.clone(),
                _ => self.info.paths.clone(),
            },
            bytes: 0,
        };
        let shared = dirs.shares_environment(&inner, &self.spec);
        let spec = self.spec.clone();
        let packed = match dirs.overlaid(&inner, &spec) {
            Some(_) => Some(self.pack().await?),
            None => None,
        };
        blocking(move || {
            let made_from = dirs.state.as_ref().map(|state| state.folder.as_path());
            inner.cache.save(&name, state, made_from, |folder| {
                let from = &dirs.owned.folder;
                let copy = |source: &Path, target: &Path, files: CopyMode<'_>, owner| {
                    copy_tree(source, target, files, owner).map_err(with_context("copy", source))
                };
                let (workspace, owner) = (folder.join("workspace"), inner.owner_of_states());
                match packed {
                    Some(archive) => unpack_saved(archive, &workspace, owner)?,
                    None => copy(&from.join("workspace"), &workspace, CopyMode::Copy, owner)?,
                }
                let (source, store) = (from.join("store"), folder.join("store"));
                if shared.is_none() {
                    check_is_folder(&source.join("env"))?;
                }
                if spec.root || !inner.shares_files() {
                    // Without isolation, tests could write to shared files.
                    let made_from = made_from.filter(|_| inner.isolation != Isolation::None);
                    let there = made_from.map(|state| state.join("store"));
                    let files = there
                        .as_deref()
                        .map_or(CopyMode::Copy, CopyMode::CopyOrLink);
                    return copy(&source, &store, files, None);
                }
                // Tools cannot write these files, so they need no copies.
                let Some(shared) = &shared else {
                    return copy(&source, &store, CopyMode::Link, None);
                };
                fs::create_dir(&store)?;
                copy_entries(&source, &store, CopyMode::Link, None, Some("env"))
                    .map_err(with_context("copy", &source))?;
                copy(shared, &store.join("env"), CopyMode::Link, None)
            })
        })
        .await
    }

    async fn health(&self) -> Result<()> {
        self.jail.health().await
    }

    async fn stop(&self) -> Result<()> {
        self.jail.end().await?;
        let dirs = self.dirs.clone();
        blocking(move || dirs.owned.remove()).await
    }
}
