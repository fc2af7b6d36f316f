//! Reads and writes a run's folder.

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{BufReader, ErrorKind, Take, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use testwright_evals::folder::write_atomically;
use testwright_sandboxes::plain_file::{self, LineReader};
use testwright_sandboxes::{Shortage, private};

use testwright_config::error::Error;

use super::event::{Event, FORMAT};

/// A problem with the folder of a run.
#[derive(Debug, thiserror::Error)]
pub enum TrajectoryError {
    /// A file cannot be written.
    #[error("write {path}: {source}")]
    Write {
        /// File or folder.
        path: PathBuf,
        /// Cause reported by the system.
        source: std::io::Error,
    },
    /// A file cannot be read.
    #[error("read {path}: {source}")]
    Read {
        /// File or folder.
        path: PathBuf,
        /// Cause reported by the system.
        source: std::io::Error,
    },
    /// A line of the trajectory cannot be read.
    #[error("read {path}: line {line} is not an event of a trajectory: {problem}")]
    Malformed {
        /// Trajectory file.
        path: PathBuf,
        /// Number of the line, counted from 1.
        line: usize,
        /// Description of the problem.
        problem: String,
    },
    /// The folder contains a run already.
    #[error("use {path}: it already contains the record of a run")]
    Occupied {
        /// The folder.
        path: PathBuf,
    },
    /// The folder is a link in an untrusted folder, which may lead elsewhere.
    #[error("use {path}: it is a link, and its parent folder is untrusted")]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Another process writes to the folder.
    #[error("use {path}: another process writes to it")]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// The additional store failed.
    #[error("{}", .0.with_cause())]
    Sink(Error),
}

impl TrajectoryError {
    /// Returns a function from the cause to the error for a path that cannot be written.
    fn writing(path: &Path) -> impl Fn(std::io::Error) -> TrajectoryError + Copy {
        move |source| TrajectoryError::Write {
            path: path.to_owned(),
            source,
        }
    }

    fn occupied(path: &Path) -> TrajectoryError {
        TrajectoryError::Occupied {
            path: path.to_owned(),
        }
    }

    /// Returns the resource that the machine ran out of, if that is the cause.
    pub fn shortage(&self) -> Option<Shortage> {
        match self {
            TrajectoryError::Write { source, .. } | TrajectoryError::Read { source, .. } => {
                Shortage::reported_by(source)
            }
            TrajectoryError::Sink(error) => error.kind.shortage(),
            _ => None,
        }
    }
}

/// An additional store for the events of a run.
pub trait EventSink: Send + Sync {
    /// Stores event `number`, counted from 1, as its line in the trajectory without the newline. It is stored
    /// when this returns.
    ///
    /// # Errors
    ///
    /// Fails if the event cannot be stored.
    fn add(&self, number: u64, line: &str) -> Result<(), Error>;
}

/// The folder of a run, locked against a second writer while it is open.
pub struct RunFolder {
    path: PathBuf,
    trajectory: File,
    /// Number of stored events.
    events: u64,
    sink: Option<Box<dyn EventSink>>,
}

impl std::fmt::Debug for RunFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RunFolder").field(&self.path).finish()
    }
}

const TRAJECTORY: &str = "trajectory.jsonl";

/// Maximum bytes of a trajectory. Long runs have some thousand events, and some megabytes.
pub const MAX_TRAJECTORY: u64 = 512 << 20;
const MAX_EVENTS: usize = 1_000_000;

impl RunFolder {
    /// Checks that this folder has no record of a run, before work is spent on one.
    ///
    /// # Errors
    ///
    /// Fails if the folder already has a trajectory.
    pub fn check_free(path: &Path) -> Result<(), TrajectoryError> {
        match path.join(TRAJECTORY).exists() {
            true => Err(TrajectoryError::occupied(path)),
            false => Ok(()),
        }
    }

    /// Checks that the default folder of runs is not a link. A repository can track a link with that name,
    /// which could lead results anywhere.
    ///
    /// # Errors
    ///
    /// Fails if the folder is a link.
    pub fn check_default_folder(runs: &Path) -> Result<(), TrajectoryError> {
        match std::fs::symlink_metadata(runs) {
            Ok(metadata) if metadata.is_symlink() => Err(TrajectoryError::Link {
                path: runs.to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// Creates the default folder for a new run; an existing file or folder with this name is not touched.
    ///
    /// # Errors
    ///
    /// Fails if the path exists or cannot be created, or if another process uses it.
    pub fn create_in_default_folder(path: &Path) -> Result<Self, TrajectoryError> {
        let write = TrajectoryError::writing(path);
        if let Some(runs) = path.parent() {
            private::create(runs).map_err(write)?;
            Self::check_default_folder(runs)?;
            private::ignore_in_git(runs).map_err(write)?;
        }
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(path)
            .map_err(|source| match source.kind() {
                ErrorKind::AlreadyExists => TrajectoryError::occupied(path),
                _ => write(source),
            })?;
        Self::create(path)
    }

    /// Creates the folder for a new run, unless it already has a trajectory.
    ///
    /// # Errors
    ///
    /// Fails if the folder has a trajectory or cannot be created, or if another process uses it.
    pub fn create(path: &Path) -> Result<Self, TrajectoryError> {
        let write = TrajectoryError::writing(path);
        private::create(path).map_err(write)?;
        let file = path.join(TRAJECTORY);
        let trajectory = OpenOptions::new()
            .create_new(true)
            .append(true)
            .open(&file)
            .map_err(|source| match source.kind() {
                ErrorKind::AlreadyExists => TrajectoryError::occupied(path),
                _ => TrajectoryError::writing(&file)(source),
            })?;
        Self::lock(path, trajectory)
    }

    /// Opens the folder of an interrupted run. An incomplete last line is removed: it is the step in progress
    /// at the crash.
    ///
    /// # Errors
    ///
    /// Fails if the trajectory cannot be read or has an invalid line, or if another process uses it.
    pub fn reopen(path: &Path) -> Result<(Self, Vec<Event>), TrajectoryError> {
        let file = path.join(TRAJECTORY);
        let mut read = Events::open(path)?;
        let events = read.by_ref().collect::<Result<Vec<_>, _>>()?;
        let complete_bytes = read.lines.complete_bytes();
        let trajectory =
            plain_file::open_to_append(&file).map_err(|source| TrajectoryError::Read {
                path: file.clone(),
                source,
            })?;
        let mut folder = Self::lock(path, trajectory)?;
        let write = TrajectoryError::writing(&file);
        folder.trajectory.set_len(complete_bytes).map_err(write)?;
        folder.events = events.len() as u64;
        Ok((folder, events))
    }

    /// Locks the open trajectory of a folder.
    fn lock(path: &Path, trajectory: File) -> Result<Self, TrajectoryError> {
        match trajectory.try_lock() {
            Ok(()) => Ok(RunFolder {
                path: path.to_owned(),
                trajectory,
                events: 0,
                sink: None,
            }),
            Err(TryLockError::WouldBlock) => Err(TrajectoryError::Busy {
                path: path.to_owned(),
            }),
            Err(TryLockError::Error(source)) => Err(TrajectoryError::writing(path)(source)),
        }
    }

    /// Creates the folder as it was when its trajectory had these lines.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be written.
    pub fn restore(path: &Path, lines: &str) -> Result<(), TrajectoryError> {
        let write = TrajectoryError::writing(path);
        private::create(path).map_err(write)?;
        let file = path.join(TRAJECTORY);
        match lines.is_empty() {
            true => match std::fs::remove_file(&file) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(write(error)),
                _ => Ok(()),
            },
            false => std::fs::write(&file, lines).map_err(write),
        }
    }

    /// Reads the events of a recorded run.
    ///
    /// # Errors
    ///
    /// Fails if the trajectory cannot be read or has an invalid line.
    pub fn read(path: &Path) -> Result<Vec<Event>, TrajectoryError> {
        Events::open(path)?.collect()
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stores each further event in this sink as well.
    pub fn keep_in(&mut self, sink: Box<dyn EventSink>) {
        self.sink = Some(sink);
    }

    /// Appends one event; it is on disk when this returns.
    ///
    /// # Errors
    ///
    /// Fails if the event is too long, or cannot be written or stored.
    pub fn append(&mut self, event: &Event) -> Result<(), TrajectoryError> {
        let path = self.path.join(TRAJECTORY);
        let write = TrajectoryError::writing(&path);
        let mut line = serde_json::to_vec(event).map_err(|e| write(e.into()))?;
        // Do not write an event that could not be read again.
        if line.len() > plain_file::MAX_LINE {
            let bytes = line.len();
            let message = format!("an event of {bytes} bytes exceeds the maximum length of a line");
            return Err(write(std::io::Error::other(message)));
        }
        line.push(b'\n');
        self.trajectory.write_all(&line).map_err(write)?;
        self.trajectory.sync_data().map_err(write)?;
        self.events += 1;
        if let Some(sink) = &self.sink {
            let line = String::from_utf8_lossy(line.trim_ascii_end());
            (sink.add(self.events, &line)).map_err(TrajectoryError::Sink)?;
        }
        Ok(())
    }

    /// Writes a file of the folder atomically.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), TrajectoryError> {
        let path = self.path.join(name);
        // Anyone who may read the folder may read results.
        let written = write_atomically(&path, 0o644, |aside| {
            aside.write_all(content)?;
            aside.set_permissions(Permissions::from_mode(0o644))?;
            aside.sync_all()
        });
        (written.map(drop)).map_err(TrajectoryError::writing(&path))
    }

    /// Writes a value as JSON to a file of the folder, atomically.
    ///
    /// # Errors
    ///
    /// Fails if the value cannot be serialized or the file cannot be written.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), TrajectoryError> {
        let write = |error: serde_json::Error| {
            TrajectoryError::writing(&self.path.join(name))(error.into())
        };
        let mut text = serde_json::to_vec_pretty(value).map_err(write)?;
        text.push(b'\n');
        self.write(name, &text)
    }
}

/// The complete events of a recorded run, one at a time, because all together can take many times the memory
/// of the file.
pub struct Events {
    path: PathBuf,
    lines: LineReader<BufReader<Take<File>>>,
}

impl Events {
    /// Opens the trajectory in a run's folder.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened.
    pub fn open(folder: &Path) -> Result<Self, TrajectoryError> {
        let path = folder.join(TRAJECTORY);
        match LineReader::open(&path, MAX_TRAJECTORY) {
            Ok(lines) => Ok(Events { path, lines }),
            Err(source) => Err(TrajectoryError::Read { path, source }),
        }
    }

    fn next_event(&mut self) -> Result<Option<Event>, TrajectoryError> {
        let read = |source| TrajectoryError::Read {
            path: self.path.clone(),
            source,
        };
        let malformed = |line, problem| TrajectoryError::Malformed {
            path: self.path.clone(),
            line,
            problem,
        };
        let number = self.lines.number() + 1;
        let Some(line) = self.lines.next_line().map_err(read)? else {
            return Ok(None);
        };
        let event = serde_json::from_slice(line).map_err(|e| malformed(number, e.to_string()))?;
        match &event {
            Event::Started(started) if started.format > FORMAT => {
                let format = started.format;
                let problem = format!("format {format} is newer than this program knows");
                Err(malformed(number, problem))
            }
            _ if number > MAX_EVENTS => {
                let problem = format!("a run has at most {MAX_EVENTS} events");
                Err(malformed(number, problem))
            }
            _ => Ok(Some(event)),
        }
    }
}

impl Iterator for Events {
    type Item = Result<Event, TrajectoryError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_event().transpose()
    }
}

#[cfg(test)]
mod tests;
