//! A server without a listener, in a process with one client. It uses a temporary store or a named database.

use std::sync::Arc;

use tempfile::TempDir;
use tokio::sync::{broadcast, watch};

use super::access::Access;
use super::allow_list::AllowList;
use super::api::{ApiParts, ApiState};
use super::harnesses::HarnessCache;
use super::heartbeat::Heartbeat;
use super::jobs::run_jobs;
use super::machine::MachineHealth;
use super::probes::Probes;
use super::sandbox_limits::SandboxLimits;
use super::server::CHANGE_CAPACITY;
use super::telemetry::Telemetry;
use super::worker::Worker;
use crate::store::Store;
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;

/// A server without a listener.
pub struct Embedded {
    /// State of the API, which the client uses directly.
    pub api: ApiState,
    stop: watch::Sender<bool>,
    /// The worker; `None` if other processes run the jobs.
    worker: Option<Arc<Worker>>,
    /// Folder for runs in progress, and for a temporary store.
    _folder: TempDir,
}

impl Embedded {
    /// Starts the server. If a database is named, the workers of that database run the jobs; otherwise this process has
    /// a worker. `sandboxes` is the maximum number of concurrent sandboxes of the client.
    ///
    /// # Errors
    ///
    /// Fails if the temporary folder cannot be created, the database cannot be opened, or telemetry cannot start.
    pub async fn start(
        settings: Settings,
        allowed: AllowList,
        database: Option<&str>,
        sandboxes: usize,
    ) -> Result<Self> {
        let folder = tempfile::tempdir().map_err(|error| Error::io("create a folder", &error))?;
        let own = Store::url_in(folder.path());
        let store = Store::open(database.unwrap_or(&own)).await?;
        let (stop, signal) = watch::channel(false);
        let (changes, _) = broadcast::channel(CHANGE_CAPACITY);
        let telemetry = Telemetry::start()?;
        let runs = folder.path().join("runs");
        let worker = Arc::new(Worker {
            store: store.clone(),
            artifacts: None,
            harnesses: HarnessCache::new(&settings, &runs),
            settings: settings.clone(),
            folder: runs,
            changes: changes.clone(),
            stop: signal.clone(),
            telemetry: telemetry.clone(),
            // A shortage ends the run, because the client is waiting for it.
            machine: None,
        });
        let machine = Arc::new(MachineHealth::new(Vec::new()));
        let probes = Probes::new(store.clone(), signal.clone(), telemetry.clone(), machine);
        Ok(Embedded {
            api: Arc::new(ApiParts {
                store,
                artifacts: None,
                settings,
                allowed,
                access: Access::default(),
                sandboxes: Arc::new(SandboxLimits::new(sandboxes)),
                changes,
                stop: signal,
                telemetry,
                probes,
            }),
            stop,
            worker: database.is_none().then_some(worker),
            _folder: folder,
        })
    }

    /// Runs jobs until `served` completes.
    ///
    /// # Errors
    ///
    /// Fails if `served` fails.
    pub async fn serve(self, served: impl Future<Output = Result<()>>) -> Result<()> {
        let stop = self.stop;
        let (store, signal) = (self.api.store.clone(), self.api.stop.clone());
        let working = async {
            if let Some(worker) = self.worker {
                let heartbeat = Heartbeat::new(store.clone(), 1);
                let jobs = run_jobs(&store, worker, &heartbeat, 1, signal.clone());
                tokio::join!(jobs, heartbeat.run_until(signal));
            }
        };
        let serving = async {
            let served = served.await;
            stop.send_replace(true);
            served
        };
        tokio::join!(serving, working).0
    }
}
