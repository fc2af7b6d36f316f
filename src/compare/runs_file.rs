//! `runs.jsonl`: a line a run, appended when it ends.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::run_record::{RunKey, RunRecord};
use super::{Cell, RUNS};
use crate::error::{Error, Result};

/// The runs of a folder, open for more.
pub struct RunsFile {
    path: PathBuf,
    content: Mutex<Content>,
}

struct Content {
    file: File,
    runs: BTreeMap<RunKey, RunRecord>,
}

impl RunsFile {
    /// Opens it, and takes off half a line that a killed process left at its end.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(RUNS);
        let failed = |error: std::io::Error| Error::io(format!("open {}", path.display()), &error);
        std::fs::create_dir_all(folder).map_err(failed)?;
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::Error(error)) => return Err(failed(error)),
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(Error::usage(format!("use {}", folder.display()))
                    .cause("another process compares into this folder"));
            }
        }
        let (runs, whole) = read(&path)?;
        file.set_len(whole).map_err(failed)?;
        Ok(RunsFile {
            path,
            content: Mutex::new(Content { file, runs }),
        })
    }

    /// The runs of a folder that nothing is added to.
    pub fn read(folder: &Path) -> Result<BTreeMap<RunKey, RunRecord>> {
        let path = folder.join(RUNS);
        if !path.is_file() {
            return Ok(BTreeMap::new());
        }
        read(&path).map(|(runs, _)| runs)
    }

    pub fn get(&self, cell: &Cell) -> Option<RunRecord> {
        let content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        content.runs.get(&cell.key()).cloned()
    }

    /// It is on disk when this returns.
    pub fn add(&self, run: RunRecord) -> Result<()> {
        let failed =
            |error: std::io::Error| Error::io(format!("write {}", self.path.display()), &error);
        let mut line = serde_json::to_vec(&run).map_err(|e| failed(e.into()))?;
        line.push(b'\n');
        let mut content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        let before = content.file.metadata().map_err(failed)?.len();
        let written = content.file.write_all(&line);
        if let Err(error) = written.and_then(|()| content.file.sync_data()) {
            // The next line must not be glued to half of this one.
            let _ = content.file.set_len(before);
            return Err(failed(error));
        }
        content.runs.insert(run.key(), run);
        Ok(())
    }

    /// Of these runs, in their order, each once.
    pub fn tidy(&self, cells: &[Cell]) -> Result<Vec<RunRecord>> {
        let failed =
            |error: std::io::Error| Error::io(format!("write {}", self.path.display()), &error);
        let mut content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        let runs: Vec<RunRecord> = cells
            .iter()
            .filter_map(|cell| content.runs.get(&cell.key()).cloned())
            .collect();
        let mut text = Vec::new();
        for run in &runs {
            serde_json::to_writer(&mut text, run).map_err(|e| failed(e.into()))?;
            text.push(b'\n');
        }
        content.file = super::replace(&self.path, &text).map_err(failed)?;
        Ok(runs)
    }
}

fn read(path: &Path) -> Result<(BTreeMap<RunKey, RunRecord>, u64)> {
    let failed = |error: std::io::Error| Error::io(format!("read {}", path.display()), &error);
    let mut reader = BufReader::new(File::open(path).map_err(failed)?);
    let mut runs = BTreeMap::new();
    let mut whole = 0;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let length = reader.read_until(b'\n', &mut line).map_err(failed)?;
        if length == 0 || line.last() != Some(&b'\n') {
            break;
        }
        let run: RunRecord = serde_json::from_slice(&line).map_err(|error| {
            Error::usage(format!("read {}", path.display()))
                .cause(format!("line {number} is not a run: {error}"))
        })?;
        runs.insert(run.key(), run);
        whole += length as u64;
    }
    Ok((runs, whole))
}
