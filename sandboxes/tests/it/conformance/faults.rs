//! Sandboxes with a single fault: a wrapper around a real backend that breaks one thing.

use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::sandbox::Mount;
use testwright_sandboxes::sandbox::{Process, output};
use testwright_sandboxes::{
    Backend, Command, Limits, Sandbox, SandboxError, SandboxInfo, SandboxSource, Spec,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::CHECK_TIMEOUT;
use super::isolation::host_folder;

type Result<T> = std::result::Result<T, SandboxError>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// These faults need other backends, by settings: see [`super::proofs`].
    NoIsolation,
    NoLoopback,
    // Faults in file transfer.
    MangleFiles,
    CutFiles,
    ForgetModes,
    MissingIsEmpty,
    TouchUnpacked,
    SkipStore,
    UploadReadOnly,
    // Faults in processes.
    TextStreams,
    HoldOutput,
    CutStreams,
    MixStreams,
    HoldInput,
    AlwaysZero,
    DropVariables,
    DropDirectory,
    JoinArguments,
    OneAtATime,
    // Faults in isolation.
    ExposeHost,
    LeakVariables,
    Root,
    NotRoot,
    NoLimits,
    // Faults in states.
    ForkIsFresh,
    ForkIsSame,
    SavedIsFresh,
    SavedIsShared,
    TouchWorkspace,
    KeepSaved,
    CountShared,
    ForgetArchive,
    StopNothing,
    AlwaysHealthy,
    CleanAll,
    CleanNothing,
}

/// The source that a sandbox was started from, and the sandbox.
type StartedSandbox = (SandboxSource, Arc<dyn Sandbox>);

pub(crate) struct FaultyBackend {
    pub inner: Arc<dyn Backend>,
    pub fault: Fault,
    /// Source of a bare start.
    pub bare: SandboxSource,
    made: Mutex<Vec<StartedSandbox>>,
}

struct FaultySandbox {
    inner: Arc<dyn Sandbox>,
    backend: Arc<dyn Backend>,
    fault: Fault,
    spec: Spec,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl FaultyBackend {
    pub(crate) fn new(inner: Arc<dyn Backend>, fault: Fault, bare: SandboxSource) -> FaultyBackend {
        let made = Mutex::default();
        FaultyBackend {
            inner,
            fault,
            bare,
            made,
        }
    }

    /// Ends the processes that faulty sandboxes left.
    pub(crate) async fn end(&self) {
        let sandboxes = std::mem::take(&mut *self.made.lock().unwrap());
        for (_, sandbox) in sandboxes {
            let _ = sandbox.stop().await;
        }
    }

    fn spoil(&self, spec: &Spec) -> Spec {
        let mut spec = spec.clone();
        match self.fault {
            Fault::ExposeHost => spec.mounts.push(Mount {
                host: host_folder(),
                inside: host_folder(),
            }),
            Fault::LeakVariables => spec
                .env
                .extend(std::env::vars().filter(|(name, _)| name.starts_with("CARGO"))),
            Fault::Root => spec.root = true,
            Fault::NotRoot => spec.root = false,
            Fault::NoLimits => {
                spec.limits = Limits {
                    memory: 64 << 30,
                    processes: 4096,
                    file_size: 64 << 30,
                    ..spec.limits
                }
            }
            Fault::SavedIsFresh => spec.start = self.bare.clone(),
            _ => {}
        }
        spec
    }
}

#[async_trait]
impl Backend for FaultyBackend {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn layout(&self) -> String {
        self.inner.layout()
    }

    async fn start(&self, spec: &Spec) -> Result<Box<dyn Sandbox>> {
        let spec = self.spoil(spec);
        let known_sandbox = self
            .made
            .lock()
            .unwrap()
            .iter()
            .find(|(start, _)| *start == spec.start)
            .cloned();
        let saved = matches!(spec.start, SandboxSource::Saved(_));
        let inner = match known_sandbox {
            Some((_, sandbox)) if self.fault == Fault::SavedIsShared && saved => sandbox,
            _ => Arc::from(self.inner.start(&spec).await?),
        };
        self.made
            .lock()
            .unwrap()
            .push((spec.start.clone(), inner.clone()));
        if self.fault == Fault::TouchWorkspace && saved {
            touch(inner.as_ref(), ".").await;
        }
        Ok(Box::new(FaultySandbox {
            inner,
            backend: self.inner.clone(),
            fault: self.fault,
            spec,
            turn: Arc::default(),
        }))
    }

    async fn has_saved(&self, name: &str) -> Result<bool> {
        match self.fault {
            Fault::KeepSaved => Ok(true),
            _ => self.inner.has_saved(name).await,
        }
    }

    async fn saved_bytes(&self, name: &str) -> Result<u64> {
        let mut bytes = self.inner.saved_bytes(name).await?;
        if self.fault == Fault::CountShared {
            let starts: Vec<SandboxSource> = self
                .made
                .lock()
                .unwrap()
                .iter()
                .map(|m| m.0.clone())
                .collect();
            for start in starts {
                if let SandboxSource::Saved(below) = start {
                    bytes += self.inner.saved_bytes(&below).await?;
                }
            }
        }
        Ok(bytes)
    }

    async fn remove_saved(&self, name: &str) -> Result<()> {
        self.inner.remove_saved(name).await
    }

    async fn export_saved(&self, name: &str, to: &Path) -> Result<()> {
        self.inner.export_saved(name, to).await
    }

    async fn import_saved(&self, name: &str, from: &Path) -> Result<()> {
        match self.fault {
            Fault::ForgetArchive => Ok(()),
            _ => self.inner.import_saved(name, from).await,
        }
    }

    async fn machine(&self, python: Option<&str>) -> Result<String> {
        self.inner.machine(python).await
    }

    async fn check_python(&self, version: &str) -> Result<()> {
        self.inner.check_python(version).await
    }

    async fn image_digest(&self, name: &str) -> Result<String> {
        self.inner.image_digest(name).await
    }

    async fn clean(&self) -> Result<Vec<String>> {
        match self.fault {
            Fault::CleanNothing => return Ok(Vec::new()),
            Fault::CleanAll => self.end().await,
            _ => {}
        }
        self.inner.clean().await
    }
}

async fn touch(sandbox: &dyn Sandbox, path: &str) {
    let command = Command::shell(format!("find '{path}' -exec touch {{}} +"));
    output(sandbox, &command, CHECK_TIMEOUT).await.unwrap();
}

#[async_trait]
impl Sandbox for FaultySandbox {
    fn info(&self) -> &SandboxInfo {
        self.inner.info()
    }

    async fn upload(&self, path: &Path, content: &[u8], mode: u32) -> Result<()> {
        let mode = match self.fault {
            Fault::ForgetModes => 0o640,
            Fault::UploadReadOnly => 0o444,
            _ => mode,
        };
        self.inner.upload(path, content, mode).await?;
        if self.fault == Fault::UploadReadOnly {
            let folder = path.parent().unwrap().display();
            let command = Command::shell(format!("chmod -R a-w '{folder}'"));
            output(self.inner.as_ref(), &command, CHECK_TIMEOUT).await?;
        }
        Ok(())
    }

    async fn unpack(&self, folder: &Path, archive: &Path) -> Result<()> {
        if self.fault == Fault::SkipStore && folder.starts_with(&self.info().paths.store) {
            return Ok(());
        }
        self.inner.unpack(folder, archive).await?;
        if self.fault == Fault::TouchUnpacked {
            touch(self.inner.as_ref(), &folder.to_string_lossy()).await;
        }
        Ok(())
    }

    async fn download(&self, path: &Path) -> Result<Vec<u8>> {
        let mut content = match self.inner.download(path).await {
            Err(e) if e.kind == ErrorKind::NotFound && self.fault == Fault::MissingIsEmpty => {
                return Ok(Vec::new());
            }
            other => other?,
        };
        match self.fault {
            Fault::MangleFiles => {
                content = String::from_utf8_lossy(&content).into_owned().into_bytes()
            }
            Fault::CutFiles => content.truncate(4 << 20),
            _ => {}
        }
        Ok(content)
    }

    async fn spawn(&self, command: &Command) -> Result<Process> {
        let mut command = command.clone();
        match self.fault {
            Fault::DropVariables => {
                let all = [command.argv.clone()].concat();
                command.argv = ["env", "-u", "FROM_SPEC", "-u", "OWN"]
                    .map(str::to_owned)
                    .to_vec();
                command.argv.extend(all);
            }
            Fault::DropDirectory => command.directory = None,
            Fault::JoinArguments => command = Command::shell(command.argv.join(" ")),
            _ => {}
        }
        let turn = match self.fault {
            Fault::OneAtATime => Some(self.turn.clone().lock_owned().await),
            _ => None,
        };
        let mut process = self.inner.spawn(&command).await?;
        let fault = self.fault;
        let exit = process.exit;
        process.exit = Box::pin(async move {
            let code = exit.await;
            drop(turn);
            match fault {
                Fault::AlwaysZero => code.map(|_| 0),
                _ => code,
            }
        });
        spoil_streams(self.fault, &mut process);
        Ok(process)
    }

    async fn fork(&self) -> Result<Box<dyn Sandbox>> {
        let inner: Arc<dyn Sandbox> = match self.fault {
            Fault::ForkIsSame => self.inner.clone(),
            Fault::ForkIsFresh => Arc::from(self.backend.start(&self.spec).await?),
            _ => Arc::from(self.inner.fork().await?),
        };
        if self.fault == Fault::TouchWorkspace {
            touch(inner.as_ref(), ".").await;
        }
        Ok(Box::new(FaultySandbox {
            inner,
            backend: self.backend.clone(),
            fault: self.fault,
            spec: self.spec.clone(),
            turn: Arc::default(),
        }))
    }

    async fn save(&self, name: &str) -> Result<()> {
        self.inner.save(name).await
    }

    async fn health(&self) -> Result<()> {
        match self.fault {
            Fault::AlwaysHealthy => Ok(()),
            _ => self.inner.health().await,
        }
    }

    async fn stop(&self) -> Result<()> {
        if self.fault == Fault::StopNothing {
            return Ok(());
        }
        self.inner.stop().await
    }
}

fn spoil_streams(fault: Fault, process: &mut Process) {
    match fault {
        Fault::TextStreams => {
            let (near, mut far) = duplex(1 << 16);
            let mut real = std::mem::replace(&mut process.stdout, Box::new(near));
            tokio::spawn(async move {
                let mut all = Vec::new();
                let _ = real.read_to_end(&mut all).await;
                let _ = far
                    .write_all(String::from_utf8_lossy(&all).as_bytes())
                    .await;
            });
        }
        Fault::HoldOutput => {
            let (near, mut far) = duplex(1 << 16);
            let mut real = std::mem::replace(&mut process.stdout, Box::new(near));
            tokio::spawn(async move {
                let mut all = Vec::new();
                let _ = real.read_to_end(&mut all).await;
                let _ = far.write_all(&all).await;
            });
        }
        Fault::CutStreams => {
            let (near, mut far) = duplex(1 << 16);
            let mut real = std::mem::replace(&mut process.stdout, Box::new(near));
            tokio::spawn(async move {
                let mut all = Vec::new();
                let _ = real.read_to_end(&mut all).await;
                all.truncate(1 << 20);
                let _ = far.write_all(&all).await;
            });
        }
        Fault::MixStreams => {
            let (near, mut far) = duplex(1 << 16);
            let (mut out, mut err) = (
                std::mem::replace(&mut process.stdout, Box::new(near)),
                std::mem::replace(&mut process.stderr, Box::new(tokio::io::empty())),
            );
            tokio::spawn(async move {
                let _ = tokio::io::copy(&mut out, &mut far).await;
                let _ = tokio::io::copy(&mut err, &mut far).await;
            });
        }
        Fault::HoldInput => {
            let (near, mut far) = duplex(1 << 16);
            let mut real = std::mem::replace(&mut process.stdin, Box::new(near));
            tokio::spawn(async move {
                let _ = tokio::io::copy(&mut far, &mut real).await;
                // The process waits for an end of input that never comes.
                std::future::pending::<()>().await;
            });
        }
        _ => {}
    }
}
