//! Watches the disk usage of a container, since most engines can limit it only on a few file systems.
//!
//! Querying the file system of an engine on this machine is cheap. The engine is asked for the container's own size
//! only after a significant change, and at long intervals.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use bollard::query_parameters::{InspectContainerOptions, KillContainerOptions};

use super::engine::Engine;
use crate::sandbox::Limits;

const POLL_INTERVAL: Duration = Duration::from_millis(500);
const MAX_INTERVAL: Duration = Duration::from_secs(60);

/// Factor for the limits while an environment is built.
const BUILD_FACTOR: u64 = 4;

/// A disk watch, which exists as long as its container and records why it was ended.
#[derive(Debug, Default)]
pub(super) struct DiskWatch {
    why: Mutex<Option<String>>,
}

impl DiskWatch {
    pub(super) fn start(
        engine: &Engine,
        container: &str,
        limits: &Limits,
        is_build: bool,
    ) -> Arc<DiskWatch> {
        let factor = if is_build { BUILD_FACTOR } else { 1 };
        let watch = Arc::new(DiskWatch::default());
        let work = DiskWatchTask {
            watch: Arc::downgrade(&watch),
            engine: engine.clone(),
            container: container.to_owned(),
            max_bytes: limits.disk.saturating_mul(factor),
            max_files: limits.files.saturating_mul(factor),
        };
        tokio::spawn(work.run());
        watch
    }

    /// Returns the reason if the container was ended for its size.
    pub(super) fn why(&self) -> Option<String> {
        let why = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        why.clone()
    }
}

struct DiskWatchTask {
    watch: Weak<DiskWatch>,
    engine: Engine,
    container: String,
    max_bytes: u64,
    max_files: u64,
}

/// Number of bytes, and of files.
type DiskUsage = (u64, u64);

impl DiskWatchTask {
    async fn run(self) {
        let (root, changes) = self.places().await;
        let of_everybody = || root.as_deref().and_then(file_system);
        let mut then = of_everybody();
        let (mut own, mut measured, mut cost) = ((0, 0), Instant::now(), Duration::ZERO);
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            if self.watch.strong_count() == 0 {
                return;
            }
            let now = of_everybody();
            let moved = match (now, then) {
                (Some(now), Some(then)) => {
                    // Some file systems (btrfs) report no number of files.
                    now.1 == 0
                        || now.0.saturating_sub(then.0) > self.max_bytes.saturating_sub(own.0) / 8
                        || now.1.saturating_sub(then.1) > self.max_files.saturating_sub(own.1) / 8
                }
                _ => false,
            };
            let since = measured.elapsed();
            if !((moved && since > cost * 10) || since > MAX_INTERVAL.max(cost * 50)) {
                continue;
            }
            let begun = Instant::now();
            // A removed container has no size.
            let Some(usage) = self.measure(changes.as_deref()).await else {
                continue;
            };
            (own, then, measured, cost) = (usage, now, Instant::now(), begun.elapsed());
            if let Some(why) = self.exceeded_limit(own) {
                self.end(why).await;
                return;
            }
        }
    }

    fn exceeded_limit(&self, own: DiskUsage) -> Option<String> {
        if own.0 > self.max_bytes {
            return Some(format!(
                "its files take {} MiB on disk, more than the limit of {} MiB (limits.disk)",
                own.0 >> 20,
                self.max_bytes >> 20
            ));
        }
        (own.1 > self.max_files).then(|| {
            format!(
                "it created {} files and folders, more than the limit of {} (limits.files)",
                own.1, self.max_files
            )
        })
    }

    /// Returns the folder of the engine's files, and that of the container's changes, if this process can read them.
    async fn places(&self) -> (Option<PathBuf>, Option<PathBuf>) {
        if !self.engine.local {
            return (None, None);
        }
        let info = self.engine.api.info().await.ok();
        let root = info
            .and_then(|info| info.docker_root_dir)
            .map(PathBuf::from);
        let inspection = self
            .engine
            .api
            .inspect_container(&self.container, None)
            .await;
        let data = inspection.ok().and_then(|container| container.graph_driver);
        let changes = data.and_then(|driver| driver.data.get("UpperDir").map(PathBuf::from));
        (
            root.filter(|root| root.is_dir()),
            changes.filter(|folder| std::fs::read_dir(folder).is_ok()),
        )
    }

    async fn measure(&self, changes: Option<&Path>) -> Option<DiskUsage> {
        if let Some(folder) = changes {
            let folder = folder.to_owned();
            let counted = tokio::task::spawn_blocking(move || count(&folder)).await;
            let (counted, is_hidden) = counted.ok()?;
            if !is_hidden {
                return Some(counted);
            }
            // A folder is closed to this process, which is not the engine's user.
            let bytes = self.size().await.unwrap_or_default();
            return Some((counted.0.max(bytes), counted.1));
        }
        Some((self.size().await?, 0))
    }

    /// Asks the engine for the container's size in bytes.
    async fn size(&self) -> Option<u64> {
        let options = InspectContainerOptions { size: true };
        let inspection = self
            .engine
            .long_timeout()
            .inspect_container(&self.container, Some(options))
            .await;
        u64::try_from(inspection.ok()?.size_rw?).ok()
    }

    async fn end(&self, why: String) {
        let Some(watch) = self.watch.upgrade() else {
            return;
        };
        *watch.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        let killed = self
            .engine
            .api
            .kill_container(&self.container, None::<KillContainerOptions>)
            .await;
        if let Err(error) = killed {
            tracing::debug!(%error, "a container that exceeded its disk limit was not killed");
        }
    }
}

#[cfg(target_os = "linux")]
fn file_system(folder: &Path) -> Option<DiskUsage> {
    let stats = nix::sys::statvfs::statvfs(folder).ok()?;
    let used = stats.blocks().saturating_sub(stats.blocks_free());
    Some((
        used.saturating_mul(stats.fragment_size()),
        stats.files().saturating_sub(stats.files_free()),
    ))
}

#[cfg(not(target_os = "linux"))]
fn file_system(_: &Path) -> Option<DiskUsage> {
    None
}

/// Counts the content of a folder, and returns whether there is more, which could not be read.
#[cfg(target_os = "linux")]
fn count(folder: &Path) -> (DiskUsage, bool) {
    let usage = crate::local::disk_usage(folder);
    ((usage.bytes, usage.files), usage.is_hidden)
}

#[cfg(not(target_os = "linux"))]
fn count(_: &Path) -> (DiskUsage, bool) {
    ((0, 0), true)
}
