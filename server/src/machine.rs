//! The health of this machine. After a shortage, it claims no jobs for a while, with increasing pauses, so that it does
//! not fail all queued jobs.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use testwright_sandboxes::Shortage;
use tokio::sync::watch;

use testwright_config::lock::lock;
use testwright_config::stop_signal::{StopSignal, stopped};

const FIRST_PAUSE: Duration = Duration::from_secs(2);
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// File descriptors and bytes that a healthy machine can always spare.
const SPARE_DESCRIPTORS: usize = 32;
const SPARE_BYTES: usize = 1 << 20;
/// Timeout of a check: a write to a dead network file system can hang for hours.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

pub struct MachineHealth {
    /// Folders that jobs need to write to.
    folders: Vec<PathBuf>,
    pause: Mutex<Option<Pause>>,
    checks: Arc<Mutex<Checks>>,
    check_timeout: Duration,
}

#[derive(Default)]
struct Checks {
    /// The receiver for a running check; the sender is dropped when the check ends.
    running: Option<watch::Receiver<()>>,
    /// The result of the last check that ended; `None` if it found no shortage, or if none has ended.
    last: Option<Shortage>,
}

struct Pause {
    shortage: Shortage,
    length: Duration,
    until: Instant,
}

impl MachineHealth {
    pub fn new(folders: Vec<PathBuf>) -> Self {
        MachineHealth {
            folders,
            pause: Mutex::default(),
            checks: Arc::default(),
            check_timeout: CHECK_TIMEOUT,
        }
    }

    /// Returns the current shortage, if this machine pauses because of it.
    pub fn shortage(&self) -> Option<Shortage> {
        let pause = lock(&self.pause);
        let pause = pause.as_ref().filter(|pause| Instant::now() < pause.until);
        pause.map(|pause| pause.shortage)
    }

    /// Starts a pause after a shortage. Further jobs that fail during the pause do not extend it.
    pub fn begin_pause(&self, shortage: Shortage) {
        let mut pause = lock(&self.pause);
        let now = Instant::now();
        let length = match &*pause {
            Some(pause) if now < pause.until => return,
            Some(pause) => (pause.length * 2).min(MAX_PAUSE),
            None => FIRST_PAUSE,
        };
        tracing::warn!(
            shortage = shortage.as_str(),
            seconds = length.as_secs(),
            "claiming no jobs for a while: {shortage}"
        );
        *pause = Some(Pause {
            shortage,
            length,
            until: now + length,
        });
    }

    /// Ends the series of pauses after a job that met no shortage.
    pub fn end_pauses(&self) {
        *lock(&self.pause) = None;
    }

    /// Waits for the end of the pause; `false` if this process is shutting down.
    pub async fn wait_until_healthy(&self, stop: &StopSignal) -> bool {
        while let Some(remaining_time) = self.left() {
            tokio::select! {
                () = tokio::time::sleep(remaining_time) => {}
                () = stopped(stop.clone()) => return false,
            }
            // The first waiter checks the machine; a new pause makes all others wait.
            if self.left().is_none()
                && let Some(shortage) = self.check().await
            {
                self.begin_pause(shortage);
            }
        }
        !*stop.borrow()
    }

    fn left(&self) -> Option<Duration> {
        let pause = lock(&self.pause);
        let remaining_time = pause.as_ref()?.until.checked_duration_since(Instant::now());
        remaining_time.filter(|remaining_time| !remaining_time.is_zero())
    }

    /// Checks the resources that all jobs need: descriptors, a thread, and space in each folder. If a check is already
    /// running, waits for its result. A check that times out continues in its thread; until it ends, the last known
    /// result is returned.
    pub async fn check(&self) -> Option<Shortage> {
        let folders = self.folders.clone();
        self.check_by(move || find_shortage(&folders)).await
    }

    async fn check_by(
        &self,
        check: impl FnOnce() -> Option<Shortage> + Send + 'static,
    ) -> Option<Shortage> {
        let mut running = match self.join_check(check) {
            Ok(running) => running,
            Err(error) => return Shortage::reported_by_spawn(&error),
        };
        // changed() fails when the sender is dropped, which marks the end of the check.
        let ended = tokio::time::timeout(self.check_timeout, running.changed()).await;
        if ended.is_err() {
            let seconds = self.check_timeout.as_secs();
            tracing::warn!(seconds, "the check of this machine's folders timed out");
        }
        lock(&self.checks).last
    }

    /// Starts a check unless one is running. It uses a separate thread, because runtime threads may be what the machine
    /// lacks.
    fn join_check(
        &self,
        check: impl FnOnce() -> Option<Shortage> + Send + 'static,
    ) -> io::Result<watch::Receiver<()>> {
        let mut checks = lock(&self.checks);
        let running = checks.running.as_ref();
        if let Some(running) = running.filter(|running| running.has_changed().is_ok()) {
            return Ok(running.clone());
        }
        let (sender, running) = watch::channel(());
        let results = self.checks.clone();
        std::thread::Builder::new().spawn(move || {
            let shortage = check();
            lock(&results).last = shortage;
            drop(sender);
        })?;
        checks.running = Some(running.clone());
        Ok(running)
    }
}

/// Finds a shortage. Blocking: writes to each folder.
fn find_shortage(folders: &[PathBuf]) -> Option<Shortage> {
    let files: io::Result<Vec<_>> = (0..SPARE_DESCRIPTORS)
        .map(|_| std::fs::File::open("/dev/null"))
        .collect();
    if let Err(error) = files {
        return Shortage::reported_by(&error);
    }
    folders.iter().find_map(|folder| {
        let written = test_write(folder);
        written.err().as_ref().and_then(Shortage::reported_by)
    })
}

/// Writes a temporary file in a folder, or in its nearest existing parent.
fn test_write(folder: &Path) -> io::Result<()> {
    let folder = folder.ancestors().find(|folder| folder.is_dir());
    let Some(folder) = folder else { return Ok(()) };
    let mut file = tempfile::tempfile_in(folder)?;
    // Some file systems store no zeros.
    file.write_all(&vec![b'x'; SPARE_BYTES])?;
    file.sync_data()
}

#[cfg(test)]
mod tests;
