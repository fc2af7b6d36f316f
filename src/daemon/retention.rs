//! Keeps what a daemon stores within bounds: runs of the database by age, messages of the queue and folders of runs that have ended, files in the artifact store that are nobody's any more. What environments
//! and sources take is bounded where they are made (`build.cache-size`); here it is only measured.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;

use super::queue::QUEUE;
use super::registry::WorkerRegistry;
use super::telemetry::Telemetry;
use crate::artifacts::{Artifacts, Digest, UNUSED_STAYS};
use crate::disk_usage;
use crate::error::{Error, Result};
use crate::stop_signal::{StopSignal, stopped};
use crate::store::{RunId, Store, now};

const INTERVAL: Duration = Duration::from_secs(3600);
/// Files of the artifact store that are looked at in one go.
const ARTIFACTS: i64 = 100;
const DAY: i64 = 24 * 3_600_000;
/// For which the queue's messages stay after their end, for whoever looks for the cause of a failure.
const MESSAGES_STAY: Duration = Duration::from_secs(24 * 3600);
/// Milliseconds after its end in which the folder of a run stays, for whoever looks for the cause of a failure.
const FOLDER_STAYS: i64 = 3_600_000;
/// A folder of a run that the database does not know may be another daemon's; it goes once nothing was written for so long.
const UNKNOWN_STAYS: Duration = Duration::from_secs(7 * 24 * 3600);
/// Begins the name of a folder that is being removed.
const GONE: &str = ".gone-";

pub struct Retention {
    pub store: Store,
    pub registry: Arc<WorkerRegistry>,
    pub telemetry: Arc<Telemetry>,
    /// Where the folders of runs are.
    pub runs: PathBuf,
    pub cache: PathBuf,
    pub kept: Kept,
}

/// What a server sees to for all processes.
#[derive(Default)]
pub struct Kept {
    /// Days for which runs are kept after their end; `None`: for ever.
    pub days: Option<u32>,
    /// Where what runs no longer have is removed.
    pub artifacts: Option<Artifacts>,
}

impl Retention {
    /// Now, and every hour until `end`.
    pub async fn keep(&self, end: StopSignal) {
        loop {
            tokio::select! {
                () = stopped(end.clone()) => return,
                () = self.sweep() => {}
            }
            tokio::select! {
                () = stopped(end.clone()) => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    }

    async fn sweep(&self) {
        if let Err(error) = self.remove_folders().await {
            tracing::warn!(
                error = error.with_cause(),
                "folders of runs were not removed"
            );
        }
        if let Err(error) = self.remove_runs().await {
            tracing::warn!(error = error.with_cause(), "old runs were not removed");
        }
        if let Err(error) = self.remove_artifacts().await {
            tracing::warn!(
                error = error.with_cause(),
                "old files were not removed from the artifact store"
            );
        }
        if let Err(error) = self.store.remove_messages(QUEUE, MESSAGES_STAY).await {
            tracing::warn!(error = error.with_cause(), "old messages were not removed");
        }
        if let Some(measured) = self.measure_cache().await {
            self.telemetry.metrics.cache_measured(&measured);
        }
    }

    async fn measure_cache(&self) -> Option<Vec<(String, u64)>> {
        let (cache, (sender, measured)) = (self.cache.clone(), oneshot::channel());
        // A thread of its own: the end of the process does not wait for it.
        std::thread::spawn(move || sender.send(disk_usage::by_folder(&cache)));
        measured.await.ok()
    }

    async fn remove_runs(&self) -> Result<()> {
        let Some(days) = self.kept.days else {
            return Ok(());
        };
        let before = now() - i64::from(days) * DAY;
        self.store.remove_gradings_ended_before(before).await?;
        let removed = self.store.remove_runs_ended_before(before).await?;
        if removed > 0 {
            tracing::info!(removed, days, "old runs were removed");
            self.telemetry.metrics.retention_runs.inc_by(removed);
        }
        Ok(())
    }

    /// Files that runs no longer have, and environments that no machine has fetched for long.
    async fn remove_artifacts(&self) -> Result<()> {
        let Some(artifacts) = &self.kept.artifacts else {
            return Ok(());
        };
        loop {
            let digests = self.store.removed_artifacts(ARTIFACTS).await?;
            if digests.is_empty() {
                break;
            }
            for digest in &digests {
                // Another run may have the same.
                let is_free = !self.store.has_artifact(digest).await?;
                if let (true, Some(digest)) = (is_free, Digest::parse(digest)) {
                    artifacts.remove(&digest).await?;
                }
                self.store.forget_removed_artifact(digest).await?;
            }
        }
        let removed = artifacts.remove_unused_environments(UNUSED_STAYS).await?;
        if removed > 0 {
            tracing::info!(removed, "environments were removed from the artifact store");
        }
        Ok(())
    }

    async fn remove_folders(&self) -> Result<()> {
        for (folder, run) in folders(&self.runs)? {
            let Some(run) = run else {
                // A removal that was cut short.
                remove(folder).await?;
                continue;
            };
            if self.is_over(&run, &folder).await? {
                let name = folder.file_name().unwrap_or_default().to_string_lossy();
                let gone = self.runs.join(format!("{GONE}{name}"));
                // Under another name first: whoever takes the run up again makes a new folder.
                let renamed = self
                    .registry
                    .unless_current(&run, || std::fs::rename(&folder, &gone));
                match renamed {
                    Some(Ok(())) => remove(gone).await?,
                    Some(Err(error)) => {
                        let what = format!("remove {}", folder.display());
                        return Err(Error::io(what, &error));
                    }
                    None => {}
                }
            }
        }
        Ok(())
    }

    /// Nobody works on it, and what came of it is in the database.
    async fn is_over(&self, run: &RunId, folder: &Path) -> Result<bool> {
        Ok(match self.store.run(run).await? {
            Some(run) => run
                .ended_at
                .is_some_and(|ended| run.status.has_ended() && now() - ended > FOLDER_STAYS),
            None => last_written(folder).is_some_and(|age| age > UNKNOWN_STAYS),
        })
    }
}

/// How long ago something was written to the folder, or to a file in it.
fn last_written(folder: &Path) -> Option<Duration> {
    let files = std::fs::read_dir(folder).ok()?.flatten();
    let files = files.filter_map(|entry| entry.metadata().ok());
    let all = files.chain(std::fs::metadata(folder).ok());
    let newest = all.filter_map(|about| about.modified().ok()).max()?;
    SystemTime::now().duration_since(newest).ok()
}

/// Those that are being removed (`None`), then those of runs. What else lies there is somebody else's.
fn folders(runs: &Path) -> Result<Vec<(PathBuf, Option<RunId>)>> {
    let entries = match std::fs::read_dir(runs) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(format!("list {}", runs.display()), &error)),
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name().to_string_lossy().into_owned();
        let gone = name.strip_prefix(GONE).and_then(run_of);
        match run_of(&name) {
            Some(run) if is_folder => found.push((entry.path(), Some(run))),
            None if is_folder && gone.is_some() => found.push((entry.path(), None)),
            _ => {}
        }
    }
    // The name under which a folder is removed is free then.
    found.sort_by_key(|(_, run)| run.is_some());
    Ok(found)
}

/// The folder of an attempt has its number behind the id of the run.
fn run_of(name: &str) -> Option<RunId> {
    RunId::parse(name.split_once('.').map_or(name, |(run, _)| run))
}

async fn remove(folder: PathBuf) -> Result<()> {
    match tokio::fs::remove_dir_all(&folder).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io(format!("remove {}", folder.display()), &error))
        }
        _ => Ok(()),
    }
}
