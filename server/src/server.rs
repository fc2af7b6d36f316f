//! The daemon: a listener, workers of its own, and an orderly end.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{broadcast, watch};

use super::access::Access;
use super::allow_list::AllowList;
use super::api::{ApiParts, ApiState};
use super::comparison::server_task::ComparisonServer;
use super::connections::{self, ConnectionLimits};
use super::github::{self, Connection};
use super::harnesses::Harnesses;
use super::http;
use super::machine::Machine;
use super::mcp::{McpParts, OpenSessions, SessionLimits};
use super::pages::ServeOptions;
use super::probe_http;
use super::probes::Probes;
use super::queue::Queue;
use super::recovery::Recovery;
use super::registry::WorkerRegistry;
use super::retention::{Kept, Retention};
use super::telemetry::Telemetry;
use super::worker::Worker;
use crate::artifacts::Artifacts;
use crate::store::{RunId, Store, now};
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;
use testwright_config::stop_signal::{StopSignal, stop_signal, stopped};

/// Before a worker that failed begins again.
const AGAIN: Duration = Duration::from_secs(2);
/// From the order to end until the process ends, whatever hangs. Deployments give it 60 seconds and more.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(45);
/// Changes that a slow listener may be behind before it asks the store.
pub const CHANGES: usize = 1024;

pub struct ServerSettings {
    pub listen: SocketAddr,
    pub access: Access,
    /// `sqlite:FILE` or `postgres://…`
    pub database: String,
    /// Runs that this process works on at one time.
    pub workers: usize,
    /// Where the folders of runs are while they are worked on.
    pub runs: PathBuf,
    /// Where files of runs are kept.
    pub artifacts: Artifacts,
    /// Where probes and Prometheus are answered besides.
    pub metrics: Option<SocketAddr>,
    /// Days for which runs, comparisons, matrices and gradings are kept after their end; `None`: for ever.
    pub keep_runs: Option<u32>,
    /// Bytes that the artifact store may take; `None`: any number.
    pub artifact_bytes: Option<u64>,
    pub allowed: AllowList,
    /// Connections of clients at a time.
    pub connections: usize,
    /// Of what clients of MCP have open.
    pub sessions: SessionLimits,
    /// Of all runs.
    pub settings: Settings,
}

/// Of a process that works on runs and serves nothing.
pub struct WorkerSettings {
    pub database: String,
    pub workers: usize,
    pub runs: PathBuf,
    /// Where files of runs are kept, if they are.
    pub artifacts: Option<Artifacts>,
    /// Where probes and Prometheus are answered.
    pub metrics: Option<SocketAddr>,
    pub settings: Settings,
}

/// Works on the runs of a store until `stop` ends. Runs that are worked on then are given back. `ready` is told where
/// probes are answered.
pub async fn work(
    worker: WorkerSettings,
    ready: impl FnOnce(Option<SocketAddr>),
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    let listener = match worker.metrics {
        Some(address) => Some(probe_http::bind(address, "--metrics").await?),
        None => None,
    };
    if let Some(artifacts) = &worker.artifacts {
        artifacts.check().await?;
    }
    let store = Store::open(&worker.database).await?;
    let queue = Queue::open(&store).await?;
    let signal = stop_signal(stop);
    let ending = signal.clone();
    let (changes, _) = broadcast::channel(CHANGES);
    let telemetry = Telemetry::start()?;
    let machine = machine(&worker.settings, &worker.runs);
    let probes = Probes::new(
        store.clone(),
        signal.clone(),
        telemetry.clone(),
        machine.clone(),
    );
    let working = WorkerPool::new(
        queue,
        Worker {
            registry: WorkerRegistry::new(store.clone(), &name(), worker.workers.max(1)),
            store,
            artifacts: worker.artifacts,
            harnesses: Harnesses::new(&worker.settings, &worker.runs),
            settings: worker.settings,
            folder: worker.runs,
            changes,
            stop: signal,
            telemetry: telemetry.clone(),
            machine: Some(machine),
        },
        // Left to the server.
        Kept::default(),
    );
    ready(listener.as_ref().map(local_address).transpose()?);
    let probing = probe_http::serve(listener, probes, working.drained());
    let all = async { tokio::join!(working.until_stopped(), probing).0 };
    let worked = in_time(all, ending).await;
    telemetry.stop().await;
    worked
}

/// Runs to the end, unless that takes too long once the process is to end: a sandbox or a disk may hang.
async fn in_time(all: impl Future<Output = Result<()>>, stop: StopSignal) -> Result<()> {
    let late = async {
        stopped(stop).await;
        tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
    };
    tokio::select! {
        ended = all => ended,
        () = late => {
            let seconds = SHUTDOWN_TIMEOUT.as_secs();
            Err(Error::infrastructure("end in time")
                .cause(format!("what was under way did not end within {seconds} seconds"))
                .hint("other processes take up its runs; look whether its sandboxes have ended"))
        }
    }
}

/// The workers of a process.
struct WorkerPool {
    queue: Queue,
    retention: Retention,
    worker: Arc<Worker>,
    /// Left to servers, of which there are few.
    recovery: Option<Recovery>,
    /// Says `true` once they have ended.
    drained: watch::Sender<bool>,
}

impl WorkerPool {
    /// A database that fails for a while ends the queue's worker, and not this process. Each has a name of its own.
    async fn work_again_after_failures(&self, slots: usize) -> Result<()> {
        let signal = &self.worker.stop;
        for n in 0_u64.. {
            let name = format!("{}-{n}", self.worker.registry.name());
            let (worker, stop) = (self.worker.clone(), stopped(signal.clone()));
            match self.queue.work(&name, slots, worker, stop).await {
                Err(error) if !*signal.borrow() => {
                    tracing::warn!(
                        error = error.with_cause(),
                        "the worker failed, and begins again"
                    );
                }
                worked => return worked,
            }
            tokio::select! {
                () = stopped(signal.clone()) => break,
                () = tokio::time::sleep(AGAIN) => {}
            }
        }
        Ok(())
    }

    fn new(queue: Queue, worker: Worker, kept: Kept) -> Self {
        let retention = Retention {
            store: worker.store.clone(),
            registry: worker.registry.clone(),
            telemetry: worker.telemetry.clone(),
            runs: worker.folder.clone(),
            cache: worker.settings.cache.clone(),
            kept,
        };
        WorkerPool {
            queue,
            retention,
            worker: Arc::new(worker),
            recovery: None,
            drained: watch::Sender::new(false),
        }
    }

    fn drained(&self) -> StopSignal {
        self.drained.subscribe()
    }

    /// Runs that are worked on then are given back.
    async fn until_stopped(mut self) -> Result<()> {
        let recovery = self.recovery.take();
        let (registry, signal) = (self.worker.registry.clone(), self.worker.stop.clone());
        let working = async {
            let worked = match registry.slots() {
                0 => {
                    stopped(signal.clone()).await;
                    Ok(())
                }
                slots => self.work_again_after_failures(slots).await,
            };
            self.drained.send_replace(true);
            worked
        };
        let registered = registry.keep(self.drained.subscribe());
        let kept = self.retention.keep(self.drained.subscribe());
        let recovered = async {
            if let Some(recovery) = recovery {
                recovery.keep(self.drained.subscribe()).await;
            }
        };
        let (worked, (), (), ()) = tokio::join!(working, registered, kept, recovered);
        worked
    }
}

/// Work needs to write to the folders of runs and to the cache.
fn machine(settings: &Settings, runs: &Path) -> Arc<Machine> {
    Arc::new(Machine::new(vec![runs.to_owned(), settings.cache.clone()]))
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr> {
    let address = listener.local_addr();
    address.map_err(|error| Error::io("tell the address", &error))
}

/// That of a worker: no other process has it.
pub fn name() -> String {
    format!("{}-{}", std::process::id(), RunId::new(now()))
}

pub struct Server {
    listener: TcpListener,
    metrics: Option<TcpListener>,
    settings: ServerSettings,
    store: Store,
    queue: Queue,
    github: Option<Connection>,
}

impl Server {
    /// Opens the store and the port; nothing is served yet.
    pub async fn bind(settings: ServerSettings) -> Result<Self> {
        let github = Connection::new(&settings.settings)?;
        settings.artifacts.check().await?;
        let store = Store::open(&settings.database).await?;
        let queue = Queue::open(&store).await?;
        let listener = probe_http::bind(settings.listen, "--listen").await?;
        let metrics = match settings.metrics {
            Some(address) => Some(probe_http::bind(address, "--metrics").await?),
            None => None,
        };
        Ok(Server {
            listener,
            metrics,
            settings,
            store,
            queue,
            github,
        })
    }

    pub fn address(&self) -> Result<SocketAddr> {
        local_address(&self.listener)
    }

    pub fn metrics_address(&self) -> Result<Option<SocketAddr>> {
        self.metrics.as_ref().map(local_address).transpose()
    }

    /// For whoever looks at the settings.
    fn options(&self) -> Result<ServeOptions> {
        let settings = &self.settings;
        let mut hosts: Vec<String> = Vec::new();
        for host in settings.access.hosts() {
            // The address it listens on may be one of loopback.
            if !hosts.iter().any(|known| known == host) {
                hosts.push(host.to_owned());
            }
        }
        Ok(ServeOptions {
            listen: self.address()?,
            hosts,
            tokens_required: settings.access.tokens_required,
            workers: settings.workers,
            database: settings.database.clone(),
            runs: settings.runs.clone(),
            artifacts: settings.artifacts.address().to_owned(),
            metrics: self.metrics_address()?,
            keep_runs: settings.keep_runs,
            artifact_bytes: settings.artifact_bytes,
            allowed_repositories: settings.allowed.patterns().to_vec(),
            allows_recordings: settings.allowed.allows_recordings(),
            sandboxes: settings.sessions.sandboxes,
            idle_seconds: settings.sessions.idle.as_secs(),
        })
    }

    /// Serves until `stop` ends. Runs that are worked on are given back: whoever takes them next goes on with them.
    pub async fn serve(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        let signal = stop_signal(stop);
        let (changes, _) = broadcast::channel(CHANGES);
        let telemetry = Telemetry::start()?;
        let options = self.options()?;
        let registry = WorkerRegistry::new(self.store.clone(), &name(), self.settings.workers);
        let machine = machine(&self.settings.settings, &self.settings.runs);
        let worker = Worker {
            registry,
            store: self.store.clone(),
            artifacts: Some(self.settings.artifacts.clone()),
            harnesses: Harnesses::new(&self.settings.settings, &self.settings.runs),
            settings: self.settings.settings.clone(),
            folder: self.settings.runs,
            changes: changes.clone(),
            stop: signal.clone(),
            telemetry: telemetry.clone(),
            machine: Some(machine.clone()),
        };
        let comparisons = ComparisonServer {
            store: self.store.clone(),
            queue: self.queue.clone(),
            settings: self.settings.settings.clone(),
            artifacts: self.settings.artifacts.clone(),
            folder: worker.folder.clone(),
        };
        let probes = Probes::new(
            self.store.clone(),
            signal.clone(),
            telemetry.clone(),
            machine,
        );
        let state = ApiState::new(ApiParts {
            store: self.store,
            artifacts: Some(self.settings.artifacts.clone()),
            queue: self.queue.clone(),
            settings: self.settings.settings,
            allowed: self.settings.allowed,
            access: self.settings.access,
            changes,
            stop: signal.clone(),
            telemetry: telemetry.clone(),
            probes: probes.clone(),
        });
        let github = self.github.map(|github| github.serve(state.clone()));
        let sessions = Arc::new(OpenSessions::new(self.settings.sessions));
        let parts = McpParts {
            api: state,
            sessions: sessions.clone(),
        };
        let router = http::router(Arc::new(parts), github.clone(), options);
        let recovery = Recovery::new(worker.store.clone(), self.queue.clone());
        let kept = Kept {
            days: self.settings.keep_runs,
            artifacts: Some(self.settings.artifacts),
            artifact_bytes: self.settings.artifact_bytes,
        };
        let working = WorkerPool {
            recovery: Some(recovery),
            ..WorkerPool::new(self.queue, worker, kept)
        };
        // Served until the runs are given back: who looks sees it, and probes hear that this process takes no more.
        let drained = stopped(working.drained());
        let limits = ConnectionLimits::new(self.settings.connections);
        let serving = connections::serve(self.listener, router, limits, drained);
        let probing = probe_http::serve(self.metrics, probes, working.drained());
        let answering = github::tasks::work(github, signal.clone());
        // Its files and reports take time that nobody else is to wait for.
        let runtime = tokio::runtime::Handle::current();
        let stop = signal.clone();
        let comparing = tokio::task::spawn_blocking(move || {
            runtime.block_on(comparisons.serve(stop));
        });
        let working = working.until_stopped();
        let all = async {
            let ((), (), worked, (), compared) =
                tokio::join!(serving, probing, working, answering, comparing);
            sessions.close_all().await;
            compared.map_err(|error| Error::infrastructure("see to comparisons").cause(error))?;
            worked
        };
        let worked = in_time(all, signal).await;
        telemetry.stop().await;
        worked
    }
}
