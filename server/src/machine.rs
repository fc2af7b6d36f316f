//! Whether this machine can work: after a shortage it takes no work for a while, longer each time, so that it does not use up the
//! queue.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use testwright_sandboxes::Shortage;

use testwright_config::stop_signal::{StopSignal, stopped};

const FIRST_PAUSE: Duration = Duration::from_secs(2);
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// Descriptors and bytes that a machine in order can spare at any time.
const SPARE_DESCRIPTORS: usize = 32;
const SPARE_BYTES: usize = 1 << 20;

pub struct Machine {
    /// Folders that work needs to write to.
    folders: Vec<PathBuf>,
    pause: Mutex<Option<Pause>>,
}

struct Pause {
    shortage: Shortage,
    length: Duration,
    until: Instant,
}

impl Machine {
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Machine {
            folders,
            pause: Mutex::default(),
        }
    }

    /// What is lacking, while no work is taken because of it.
    pub fn shortage(&self) -> Option<Shortage> {
        let pause = self.pause.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = pause.as_ref().filter(|pause| Instant::now() < pause.until);
        pause.map(|pause| pause.shortage)
    }

    /// Work met a shortage. Work that met it at the same time makes the pause no longer.
    pub fn met(&self, shortage: Shortage) {
        let mut pause = self.pause.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let length = match &*pause {
            Some(pause) if now < pause.until => return,
            Some(pause) => (pause.length * 2).min(MAX_PAUSE),
            None => FIRST_PAUSE,
        };
        tracing::warn!(
            shortage = shortage.as_str(),
            seconds = length.as_secs(),
            "no work is taken for a while: {shortage}"
        );
        *pause = Some(Pause {
            shortage,
            length,
            until: now + length,
        });
    }

    /// Work came to an end without a shortage.
    pub fn is_well(&self) {
        *self.pause.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Waits while no work is to be taken; `false` if this process is to end.
    pub async fn rest(&self, stop: &StopSignal) -> bool {
        while let Some(left) = self.left() {
            tokio::select! {
                () = tokio::time::sleep(left) => {}
                () = stopped(stop.clone()) => return false,
            }
            // The one that finds a shortage here makes all others wait.
            if self.left().is_none()
                && let Some(shortage) = self.check()
            {
                self.met(shortage);
            }
        }
        !*stop.borrow()
    }

    fn left(&self) -> Option<Duration> {
        let pause = self.pause.lock().unwrap_or_else(PoisonError::into_inner);
        let left = pause.as_ref()?.until.checked_duration_since(Instant::now());
        left.filter(|left| !left.is_zero())
    }

    /// Tries what all work needs: descriptors, a thread, room in each folder.
    pub fn check(&self) -> Option<Shortage> {
        let files: io::Result<Vec<_>> = (0..SPARE_DESCRIPTORS)
            .map(|_| std::fs::File::open("/dev/null"))
            .collect();
        if let Err(error) = files {
            return Shortage::reported_by(&error);
        }
        match std::thread::Builder::new().spawn(|| {}) {
            Ok(thread) => drop(thread.join()),
            Err(error) => return Shortage::reported_by_spawn(&error),
        }
        self.folders.iter().find_map(|folder| {
            let written = write_aside(folder);
            written.err().as_ref().and_then(Shortage::reported_by)
        })
    }
}

/// In a folder, or in the nearest one above that exists.
fn write_aside(folder: &Path) -> io::Result<()> {
    let folder = folder.ancestors().find(|folder| folder.is_dir());
    let Some(folder) = folder else { return Ok(()) };
    let mut file = tempfile::tempfile_in(folder)?;
    // Not zeros, of which some file systems store nothing.
    file.write_all(&vec![b'x'; SPARE_BYTES])?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_makes_longer_pauses_until_work_ends_well() {
        let machine = Machine::new(Vec::new());
        let length = |machine: &Machine| {
            let pause = machine.pause.lock().unwrap_or_else(PoisonError::into_inner);
            pause.as_ref().map(|pause| pause.length)
        };
        let end_pause = |machine: &Machine| {
            let mut pause = machine.pause.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(pause) = &mut *pause {
                pause.until = Instant::now();
            }
        };
        assert_eq!(machine.shortage(), None);
        machine.met(Shortage::Disk);
        machine.met(Shortage::Memory);
        assert_eq!(machine.shortage(), Some(Shortage::Disk));
        assert_eq!(length(&machine), Some(FIRST_PAUSE));
        for _ in 0..10 {
            end_pause(&machine);
            assert_eq!(machine.shortage(), None);
            machine.met(Shortage::Disk);
        }
        assert_eq!(length(&machine), Some(MAX_PAUSE));
        machine.is_well();
        machine.met(Shortage::Disk);
        assert_eq!(length(&machine), Some(FIRST_PAUSE));
    }
}
