//! The server process: listeners, its own workers, and graceful shutdown.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, watch};

use super::api::ApiParts;
use super::comparison::server_task::{self, ComparisonServer};
use super::connections::{self, ConnectionLimits};
use super::github::GitHubSetup;
use super::github::tasks::GitHubTasks;
use super::harnesses::HarnessCache;
use super::heartbeat::Heartbeat;
use super::http;
use super::jobs::{JobSource, run_jobs};
use super::machine::MachineHealth;
use super::mcp::{McpParts, OpenSessions};
use super::pages::option_rows;
use super::probe_http;
use super::probes::Probes;
use super::retention::{Retention, RetentionPolicy};
use super::sandbox_limits::SandboxLimits;
use super::telemetry::Telemetry;
use super::worker::Worker;
use crate::artifacts::Artifacts;
use crate::store::{GitHubTaskKind, Store};
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;
use testwright_config::stop_signal::{StopSignal, stop_signal, stopped};

pub use super::server_settings::ServerSettings;

/// Time from the shutdown signal until the process exits, even if something hangs. Deployments must allow at least 60
/// seconds.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(45);
/// Number of changes a slow event stream can lag behind before it polls the store.
pub const CHANGE_CAPACITY: usize = 1024;

/// Settings of a worker process, which serves no API.
pub struct WorkerSettings {
    /// `sqlite:FILE` or `postgres://…`
    pub database: String,
    /// Maximum concurrent runs of this process.
    pub workers: usize,
    /// Folder for runs in progress.
    pub runs: PathBuf,
    /// Store for the files of runs, if files are kept.
    pub artifacts: Option<Artifacts>,
    /// Address for probes and Prometheus.
    pub metrics: Option<SocketAddr>,
    /// Settings for all runs.
    pub settings: Settings,
}

/// Runs jobs of a store until `stop`, then returns running jobs to the queue. Calls `ready` with the address for
/// probes. The future is boxed, as in [`Server::serve`], so that other crates need not compile it again.
///
/// # Errors
///
/// Fails if an address cannot be bound, the store or the artifact store cannot be used, telemetry cannot start, or
/// shutdown takes too long.
pub fn run_worker<'a>(
    worker: WorkerSettings,
    ready: Box<dyn FnOnce(Option<SocketAddr>) + Send + 'a>,
    stop: BoxFuture<'static, ()>,
) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        let listener = match worker.metrics {
            Some(address) => Some(probe_http::bind(address, "--metrics").await?),
            None => None,
        };
        if let Some(artifacts) = &worker.artifacts {
            artifacts.check().await?;
        }
        let store = Store::open(&worker.database).await?;
        let signal = stop_signal(stop);
        let ending = signal.clone();
        let (changes, _) = broadcast::channel(CHANGE_CAPACITY);
        let telemetry = Telemetry::start()?;
        let machine = machine(&worker.settings, &worker.runs);
        let probes = Probes::new(
            store.clone(),
            signal.clone(),
            telemetry.clone(),
            machine.clone(),
        );
        let working = JobPool::new(
            worker.workers.max(1),
            Worker {
                store,
                artifacts: worker.artifacts,
                harnesses: HarnessCache::new(&worker.settings, &worker.runs),
                settings: worker.settings,
                folder: worker.runs,
                changes,
                stop: signal,
                telemetry: telemetry.clone(),
                machine: Some(machine),
            },
            // Only servers remove old data.
            RetentionPolicy::default(),
        );
        ready(listener.as_ref().map(local_address).transpose()?);
        let probing = probe_http::serve(listener, probes, working.drained());
        let all = async {
            tokio::join!(working.until_stopped(), probing);
        };
        let worked = with_shutdown_timeout(all, ending).await;
        telemetry.stop().await;
        worked
    })
}

/// Awaits `all`, but not for longer than the shutdown timeout after `stop`: a sandbox or a disk may hang.
async fn with_shutdown_timeout<T>(all: impl Future<Output = T>, stop: StopSignal) -> Result<T> {
    let late = async {
        stopped(stop).await;
        tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
    };
    tokio::select! {
        ended = all => Ok(ended),
        () = late => {
            let seconds = SHUTDOWN_TIMEOUT.as_secs();
            Err(Error::infrastructure("shut down in time")
                .cause(format!("some jobs did not end within {seconds} seconds"))
                .hint("check that its sandboxes have ended; other processes resume its runs"))
        }
    }
}

/// The jobs of a process.
struct JobPool {
    heartbeat: Arc<Heartbeat>,
    retention: Retention,
    stop: StopSignal,
    /// Job sources, each with its number of slots.
    sources: Vec<(Arc<dyn JobSource>, usize)>,
    /// Becomes `true` once all jobs have ended.
    drained: watch::Sender<bool>,
}

impl JobPool {
    fn new(slots: usize, worker: Worker, policy: RetentionPolicy) -> Self {
        let retention = Retention {
            store: worker.store.clone(),
            telemetry: worker.telemetry.clone(),
            runs: worker.folder.clone(),
            cache: worker.settings.cache.clone(),
            policy,
        };
        JobPool {
            heartbeat: Heartbeat::new(worker.store.clone(), slots),
            retention,
            stop: worker.stop.clone(),
            sources: vec![(Arc::new(worker), slots)],
            drained: watch::Sender::new(false),
        }
    }

    fn drained(&self) -> StopSignal {
        self.drained.subscribe()
    }

    /// Runs jobs until this process must stop, then returns running jobs to the queue.
    async fn until_stopped(self) {
        let (store, heartbeat) = (&self.retention.store, &self.heartbeat);
        let jobs = self
            .sources
            .into_iter()
            .map(|(source, slots)| run_jobs(store, source, heartbeat, slots, self.stop.clone()));
        let jobs = async {
            futures::future::join_all(jobs).await;
            self.drained.send_replace(true);
        };
        let beating = heartbeat.run_until(self.drained.subscribe());
        let cleanup = self.retention.run_until(self.drained.subscribe());
        tokio::join!(jobs, beating, cleanup);
    }
}

/// Monitors the folder for runs and the cache, which jobs write to.
fn machine(settings: &Settings, runs: &Path) -> Arc<MachineHealth> {
    Arc::new(MachineHealth::new(vec![
        runs.to_owned(),
        settings.cache.clone(),
    ]))
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr> {
    let address = listener.local_addr();
    address.map_err(|error| Error::io("read the listening address", &error))
}

/// A server that listens, but does not answer requests yet.
pub struct Server {
    listener: TcpListener,
    metrics: Option<TcpListener>,
    settings: ServerSettings,
    store: Store,
    github: Option<GitHubSetup>,
}

impl Server {
    /// Opens the store and the port, but serves no requests yet.
    ///
    /// # Errors
    ///
    /// Fails if the GitHub settings are invalid, the store or the artifact store cannot be used, or an address cannot
    /// be bound.
    pub fn bind(settings: ServerSettings) -> BoxFuture<'static, Result<Self>> {
        Box::pin(async move {
            let github = GitHubSetup::new(&settings.settings)?;
            settings.artifacts.check().await?;
            let store = Store::open(&settings.database).await?;
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
                github,
            })
        })
    }

    /// Returns the listening address.
    ///
    /// # Errors
    ///
    /// Fails if the system cannot report the address.
    pub fn address(&self) -> Result<SocketAddr> {
        local_address(&self.listener)
    }

    /// Returns the separate address for metrics and probes, if there is one.
    ///
    /// # Errors
    ///
    /// Fails if the system cannot report the address.
    pub fn metrics_address(&self) -> Result<Option<SocketAddr>> {
        self.metrics.as_ref().map(local_address).transpose()
    }

    /// Serves until `stop`. Running jobs are returned to the queue, and the next worker resumes them.
    ///
    /// # Errors
    ///
    /// Fails if telemetry cannot start or shutdown takes too long.
    pub fn serve(self, stop: BoxFuture<'static, ()>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let signal = stop_signal(stop);
            let (changes, _) = broadcast::channel(CHANGE_CAPACITY);
            let telemetry = Telemetry::start()?;
            let options = option_rows(&self.settings, self.address()?, self.metrics_address()?);
            let machine = machine(&self.settings.settings, &self.settings.runs);
            let worker = Worker {
                store: self.store.clone(),
                artifacts: Some(self.settings.artifacts.clone()),
                harnesses: HarnessCache::new(&self.settings.settings, &self.settings.runs),
                settings: self.settings.settings.clone(),
                folder: self.settings.runs,
                changes: changes.clone(),
                stop: signal.clone(),
                telemetry: telemetry.clone(),
                machine: Some(machine.clone()),
            };
            let comparisons = ComparisonServer {
                store: self.store.clone(),
                settings: self.settings.settings.clone(),
                artifacts: self.settings.artifacts.clone(),
                folder: worker.folder.clone(),
                stop: signal.clone(),
            };
            let probes = Probes::new(
                self.store.clone(),
                signal.clone(),
                telemetry.clone(),
                machine,
            );
            let state = Arc::new(ApiParts {
                store: self.store,
                artifacts: Some(self.settings.artifacts.clone()),
                settings: self.settings.settings,
                allowed: self.settings.allowed,
                access: self.settings.access,
                sandboxes: Arc::new(SandboxLimits::new(self.settings.sessions.sandboxes)),
                changes,
                stop: signal.clone(),
                telemetry: telemetry.clone(),
                probes: probes.clone(),
            });
            let github = self.github.map(|github| github.serve(state.clone()));
            let idle = self.settings.sessions.idle;
            let sessions = Arc::new(OpenSessions::new(idle, state.sandboxes.clone()));
            let parts = McpParts {
                api: state,
                sessions: sessions.clone(),
            };
            let router = http::router(Arc::new(parts), github.clone(), options);
            let policy = RetentionPolicy {
                days: self.settings.keep_runs,
                artifacts: Some(self.settings.artifacts),
                artifact_bytes: self.settings.artifact_bytes,
            };
            let mut working = JobPool::new(self.settings.workers, worker, policy);
            working
                .sources
                .push((Arc::new(comparisons), server_task::SLOTS));
            if let Some(github) = github {
                for kind in [GitHubTaskKind::Answer, GitHubTaskKind::Confirm] {
                    let (github, stop) = (github.clone(), signal.clone());
                    let tasks = GitHubTasks { github, kind, stop };
                    working.sources.push((Arc::new(tasks), 1));
                }
            }
            // The server responds until running jobs are returned, so that pages show their state and probes see `not
            // ready`.
            let drained = stopped(working.drained());
            let limits = ConnectionLimits::new(self.settings.connections);
            let serving = connections::serve(self.listener, router, limits, drained);
            let probing = probe_http::serve(self.metrics, probes, working.drained());
            let working = working.until_stopped();
            let all = async {
                tokio::join!(serving, probing, working);
                sessions.close_all().await;
            };
            let worked = with_shutdown_timeout(all, signal).await;
            telemetry.stop().await;
            worked
        })
    }
}
