//! Limits what a server stores. It removes old jobs, folders of ended runs, and unused files, and limits the size of
//! the artifact store. The cache for environments and sources is limited by its builders (`build.cache-size`); here it
//! is only measured.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;

use super::telemetry::Telemetry;
use crate::artifacts::{Artifacts, Digest, SharedEnvironment, UNUSED_RETENTION};
use crate::disk_usage;
use crate::store::{JobFiles, JobId, RemovalCounts, Store, StoredComparison, now};
use testwright_config::error::{Error, Result};
use testwright_config::stop_signal::{StopSignal, stopped};

const INTERVAL: Duration = Duration::from_secs(3600);
/// Time until the next attempt after an error, such as a busy database.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// Number of files of the artifact store to process at a time.
const REMOVAL_BATCH_SIZE: i64 = 100;
/// Number of runs and comparisons to consider at a time for freeing space.
const MAX_OLDEST: i64 = 1000;
const DAY: i64 = 24 * 3_600_000;
/// Milliseconds for which the folder of an ended run remains, to investigate failures.
const FOLDER_RETENTION_MS: i64 = 3_600_000;
/// Time without writes after which a folder of an unknown run is removed. It may belong to another server.
const UNKNOWN_FOLDER_RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);
/// Prefix of a folder that is being removed.
const TRASH_PREFIX: &str = ".gone-";

pub(crate) struct Retention {
    pub store: Store,
    pub telemetry: Arc<Telemetry>,
    /// Folder for runs in progress.
    pub runs: PathBuf,
    pub cache: PathBuf,
    pub policy: RetentionPolicy,
}

/// Retention that a server enforces for all processes.
#[derive(Default)]
pub(crate) struct RetentionPolicy {
    /// Days to keep runs, comparisons, matrices and gradings after their end; `None` keeps them forever.
    pub days: Option<u32>,
    /// Store from which unused files are removed.
    pub artifacts: Option<Artifacts>,
    /// Maximum bytes of the store; `None` means no limit.
    pub artifact_bytes: Option<u64>,
}

impl Retention {
    /// Enforces retention now and every hour until `end`.
    pub(crate) async fn run_until(&self, end: StopSignal) {
        loop {
            let is_done = tokio::select! {
                () = stopped(end.clone()) => return,
                is_done = self.enforce_retention() => is_done,
            };
            let pause = if is_done { INTERVAL } else { RETRY_INTERVAL };
            tokio::select! {
                () = stopped(end.clone()) => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Removes everything that is too old or too large. Returns whether that succeeded.
    async fn enforce_retention(&self) -> bool {
        let outcomes = [
            (
                self.remove_folders().await,
                "could not remove folders of runs",
            ),
            (self.remove_ended().await, "could not remove old runs"),
            (
                self.free_space().await,
                "could not reduce the artifact store to its limit",
            ),
            (
                self.remove_artifacts().await,
                "could not remove old files from the artifact store",
            ),
        ];
        let mut is_done = true;
        for (outcome, message) in outcomes {
            if let Err(error) = outcome {
                tracing::warn!(error = error.with_cause(), "{message}");
                is_done = false;
            }
        }
        if let Some(measured) = self.measure_cache().await {
            self.telemetry.metrics.cache_measured(&measured);
        }
        is_done
    }

    async fn measure_cache(&self) -> Option<Vec<(String, u64)>> {
        let (cache, (sender, measured)) = (self.cache.clone(), oneshot::channel());
        // A separate thread, because shutdown need not wait for it.
        std::thread::spawn(move || sender.send(disk_usage::by_folder(&cache)));
        measured.await.ok()
    }

    async fn remove_ended(&self) -> Result<()> {
        let Some(days) = self.policy.days else {
            return Ok(());
        };
        let before = now() - i64::from(days) * DAY;
        let removed = self.store.remove_ended_before(before).await?;
        if removed != RemovalCounts::default() {
            let RemovalCounts {
                runs,
                comparisons,
                matrices,
                gradings,
            } = removed;
            tracing::info!(
                runs,
                comparisons,
                matrices,
                gradings,
                days,
                "removed old jobs"
            );
            self.telemetry.metrics.retention_runs.inc_by(runs);
        }
        Ok(())
    }

    /// Removes the oldest items first: files of ended runs and comparisons by their end, shared environments by their
    /// last fetch.
    async fn free_space(&self) -> Result<()> {
        let (Some(artifacts), Some(most)) = (&self.policy.artifacts, self.policy.artifact_bytes)
        else {
            return Ok(());
        };
        let (mut files, mut environments) = (0_u64, 0_u64);
        loop {
            let shared = artifacts.environments().await?;
            let of_shared: u64 = shared.iter().map(|environment| environment.bytes).sum();
            // Removing shared content frees no space, so the total is recomputed.
            let mut used_bytes = self.store.artifact_bytes().await? + of_shared;
            if used_bytes <= most {
                break;
            }
            let removable = sort_by_age(self.store.oldest_files(MAX_OLDEST).await?, shared);
            if removable.is_empty() {
                break;
            }
            for one in removable {
                if used_bytes <= most {
                    break;
                }
                used_bytes = used_bytes.saturating_sub(one.bytes());
                match &one {
                    Removable::Files(run_files) => {
                        self.store.remove_files(&run_files.of).await?;
                        files += 1;
                    }
                    Removable::Environment(environment) => {
                        artifacts.remove_environment(environment).await?;
                        environments += 1;
                    }
                }
            }
        }
        if files + environments > 0 {
            tracing::info!(files, environments, "freed space in the artifact store");
        }
        Ok(())
    }

    /// Removes files that no run uses, and environments that were not fetched for a long time.
    async fn remove_artifacts(&self) -> Result<()> {
        let Some(artifacts) = &self.policy.artifacts else {
            return Ok(());
        };
        loop {
            let digests = self.store.removed_artifacts(REMOVAL_BATCH_SIZE).await?;
            if digests.is_empty() {
                break;
            }
            for digest in &digests {
                // Another run may have the same content.
                let is_free = !self.store.has_artifact(digest).await?;
                if let (true, Some(digest)) = (is_free, Digest::parse(digest)) {
                    artifacts.remove(&digest).await?;
                }
                self.store.forget_removed_artifact(digest).await?;
            }
        }
        let removed = artifacts
            .remove_unused_environments(UNUSED_RETENTION)
            .await?;
        if removed > 0 {
            tracing::info!(removed, "removed environments from the artifact store");
        }
        Ok(())
    }

    async fn remove_folders(&self) -> Result<()> {
        for (folder, run) in folders(&self.runs)? {
            let Some(run) = run else {
                // An earlier removal was interrupted.
                remove(folder).await?;
                continue;
            };
            if self.is_over(&run, &folder).await? {
                let name = folder.file_name().unwrap_or_default().to_string_lossy();
                let trash_folder = self.runs.join(format!("{TRASH_PREFIX}{name}"));
                // The folder is renamed first, so that no process reads a half-removed one.
                std::fs::rename(&folder, &trash_folder)
                    .map_err(|error| Error::io(format!("remove {}", folder.display()), &error))?;
                remove(trash_folder).await?;
            }
        }
        Ok(())
    }

    /// Returns whether no process works on the run and its results are in the database.
    async fn is_over(&self, run: &JobId, folder: &Path) -> Result<bool> {
        Ok(match self.store.run(run).await? {
            Some(run) => run
                .ended_at
                .is_some_and(|ended| run.status.has_ended() && now() - ended > FOLDER_RETENTION_MS),
            None => {
                let age = last_written(folder).unwrap_or_default();
                // A comparison may wait for workers for weeks.
                let is_ended = |comparison: StoredComparison| comparison.status.has_ended();
                age > UNKNOWN_FOLDER_RETENTION
                    && self.store.comparison(run).await?.is_none_or(is_ended)
            }
        })
    }
}

/// An item of the artifact store that can be removed.
enum Removable {
    Files(JobFiles),
    Environment(SharedEnvironment),
}

impl Removable {
    fn bytes(&self) -> u64 {
        match self {
            Removable::Files(files) => files.bytes,
            Removable::Environment(environment) => environment.bytes,
        }
    }

    /// Returns the age as milliseconds since 1970.
    fn since(&self) -> i64 {
        match self {
            Removable::Files(files) => files.ended_at,
            Removable::Environment(environment) => {
                let since = environment.used.duration_since(SystemTime::UNIX_EPOCH);
                i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
            }
        }
    }
}

/// Sorts items, oldest first. If there are more files than were listed, younger environments are left out for now.
fn sort_by_age(files: Vec<JobFiles>, environments: Vec<SharedEnvironment>) -> Vec<Removable> {
    let last = files.last().map(|files| files.ended_at);
    let all_files = files.len() < MAX_OLDEST as usize;
    let environments = environments.into_iter().map(Removable::Environment);
    let environments =
        environments.filter(|one| all_files || last.is_some_and(|last| one.since() <= last));
    let files = files.into_iter().map(Removable::Files);
    let mut oldest: Vec<Removable> = files.chain(environments).collect();
    oldest.sort_by_key(Removable::since);
    oldest
}

/// Returns the time since the last write to the folder or a file in it.
fn last_written(folder: &Path) -> Option<Duration> {
    let files = std::fs::read_dir(folder).ok()?.flatten();
    let files = files.filter_map(|entry| entry.metadata().ok());
    let all = files.chain(std::fs::metadata(folder).ok());
    let newest = all.filter_map(|about| about.modified().ok()).max()?;
    SystemTime::now().duration_since(newest).ok()
}

/// Lists folders that are being removed (`None`), then folders of runs. Other files are ignored.
fn folders(runs: &Path) -> Result<Vec<(PathBuf, Option<JobId>)>> {
    let entries = match std::fs::read_dir(runs) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(format!("list {}", runs.display()), &error)),
    };
    let mut run_folders = Vec::new();
    for entry in entries.flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name().to_string_lossy().into_owned();
        let trashed_run = name.strip_prefix(TRASH_PREFIX).and_then(parse_run_folder);
        match parse_run_folder(&name) {
            Some(run) if is_folder => run_folders.push((entry.path(), Some(run))),
            None if is_folder && trashed_run.is_some() => run_folders.push((entry.path(), None)),
            _ => {}
        }
    }
    // Interrupted removals come first, because their names may be needed again.
    run_folders.sort_by_key(|(_, run)| run.is_some());
    Ok(run_folders)
}

/// Returns the run of an attempt's folder, which is named after the run and the attempt.
fn parse_run_folder(name: &str) -> Option<JobId> {
    JobId::parse(name.split_once('.').map_or(name, |(run, _)| run))
}

/// Removes the folder of an attempt that has ended. If that fails, a later cleanup removes it.
pub(crate) async fn remove_attempt_folder(folder: PathBuf) {
    if let Err(error) = remove(folder).await {
        tracing::warn!(
            error = error.with_cause(),
            "could not remove a job's folder"
        );
    }
}

async fn remove(folder: PathBuf) -> Result<()> {
    match tokio::fs::remove_dir_all(&folder).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io(format!("remove {}", folder.display()), &error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
