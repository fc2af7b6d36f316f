//! Watches the disk usage of a container, since most engines can limit it only on a few file systems.
//!
//! Querying the file system of an engine on this machine is cheap. The engine is asked for the container's own size
//! only after a significant change, and at long intervals.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use bollard::query_parameters::{InspectContainerOptions, KillContainerOptions};

use super::engine::Engine;
use crate::local::{DiskUsage, FileSystem, disk_usage};
use crate::mutex::lock;
use crate::sandbox::Limits;

const POLL_INTERVAL: Duration = Duration::from_millis(500);
const MAX_INTERVAL: Duration = Duration::from_secs(60);

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
        let watch = Arc::new(DiskWatch::default());
        let work = DiskWatchTask {
            watch: Arc::downgrade(&watch),
            engine: engine.clone(),
            container: container.to_owned(),
            max: DiskUsage::allowed(limits, is_build),
        };
        tokio::spawn(work.run());
        watch
    }

    /// Returns the reason if the container was ended for its size.
    pub(super) fn why(&self) -> Option<String> {
        lock(&self.why).clone()
    }
}

struct DiskWatchTask {
    watch: Weak<DiskWatch>,
    engine: Engine,
    container: String,
    max: DiskUsage,
}

impl DiskWatchTask {
    async fn run(self) {
        let (root, changes) = self.places().await;
        let of_everybody = || root.as_deref().and_then(FileSystem::from_folder);
        let mut then = of_everybody();
        let (mut own, mut measured, mut cost) =
            (DiskUsage::default(), Instant::now(), Duration::ZERO);
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            if self.watch.strong_count() == 0 {
                return;
            }
            let now = of_everybody();
            let moved = match (&now, &then) {
                (Some(now), Some(then)) => {
                    let (moved, room) = (now.used.beyond(then.used), self.max.beyond(own));
                    !now.counts_files
                        || moved.bytes > room.bytes / 8
                        || moved.files > room.files / 8
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
            if let Some(why) = own.excess(self.max) {
                self.end(why).await;
                return;
            }
        }
    }

    /// Returns the folder of the engine's files, and that of the container's changes, if this process can read them.
    async fn places(&self) -> (Option<PathBuf>, Option<PathBuf>) {
        if !self.engine.local {
            return (None, None);
        }
        let api = &self.engine.api;
        let root = api.info().await.ok().and_then(|info| info.docker_root_dir);
        let root = root.map(PathBuf::from);
        let inspection = api.inspect_container(&self.container, None).await;
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
            let counted = tokio::task::spawn_blocking(move || disk_usage(&folder)).await;
            let counted = counted.ok()?;
            if !counted.is_hidden {
                return Some(counted);
            }
            // A folder is closed to this process, which is not the engine's user.
            let bytes = self.size().await.unwrap_or_default();
            return Some(DiskUsage {
                bytes: counted.bytes.max(bytes),
                ..counted
            });
        }
        Some(DiskUsage {
            bytes: self.size().await?,
            ..DiskUsage::default()
        })
    }

    /// Asks the engine for the container's size in bytes.
    async fn size(&self) -> Option<u64> {
        let options = InspectContainerOptions { size: true };
        let api = self.engine.long_timeout();
        let inspection = api.inspect_container(&self.container, Some(options)).await;
        u64::try_from(inspection.ok()?.size_rw?).ok()
    }

    async fn end(&self, why: String) {
        let Some(watch) = self.watch.upgrade() else {
            return;
        };
        *lock(&watch.why) = Some(why);
        let (api, none) = (&self.engine.api, None::<KillContainerOptions>);
        let killed = api.kill_container(&self.container, none).await;
        if let Err(error) = killed {
            tracing::debug!(%error, "a container that exceeded its disk limit was not killed");
        }
    }
}
