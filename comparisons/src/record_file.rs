//! A locked file of JSON records, one per line. Every record is appended and synced at once, so interrupted work can
//! resume. Documents beside it are read and written whole.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use serde::Serialize;
use serde::de::DeserializeOwned;
use testwright_evals::folder::{self, Versioned};
use testwright_sandboxes::plain_file::{self, LineReader, Links, MAX_DOCUMENT, MAX_RECORDS};

use testwright_config::error::{Error, Result};
use testwright_config::lock::lock;

/// Content of a line.
pub trait Record: Serialize + DeserializeOwned + Clone {
    /// Key of a record; if several lines have the same key, the last one counts.
    type Key: Ord;
    /// Name of a record with its article, for messages.
    const WHAT: &'static str;

    /// Returns the key of the record.
    fn key(&self) -> Self::Key;
}

/// Records of a file, open for appending.
pub struct RecordFile<R: Record> {
    path: PathBuf,
    content: Mutex<Content<R>>,
}

struct Content<R: Record> {
    file: File,
    records: BTreeMap<R::Key, R>,
}

type Records<R> = BTreeMap<<R as Record>::Key, R>;

impl<R: Record> RecordFile<R> {
    /// Opens the file, and removes an incomplete line that a killed process left at its end.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened, is in use by another process, or contains an invalid line.
    pub fn open(path: PathBuf) -> Result<Self> {
        let failed = |error: std::io::Error| Error::io(format!("open {}", path.display()), &error);
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(failed)?;
        let file = plain_file::open_to_append(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::Error(error)) => return Err(failed(error)),
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(Error::usage(format!("use {}", folder.display()))
                    .cause("another process is writing to this folder")
                    .hint("wait until it ends, or use another folder with --out"));
            }
        }
        let (records, complete_len) = read_lines(&path)?;
        file.set_len(complete_len).map_err(failed)?;
        Ok(RecordFile {
            path,
            content: Mutex::new(Content { file, records }),
        })
    }

    /// Reads the records without opening the file for appending; empty if the file does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or contains an invalid line.
    pub fn read(path: &Path) -> Result<Records<R>> {
        match path.is_file() {
            true => read_lines(path).map(|(records, _)| records),
            false => Ok(BTreeMap::new()),
        }
    }

    /// Returns a copy of the record with this key.
    pub fn get(&self, key: &R::Key) -> Option<R> {
        self.content().records.get(key).cloned()
    }

    /// Returns the first matching record in key order.
    pub fn find(&self, predicate: impl Fn(&R) -> bool) -> Option<R> {
        let content = self.content();
        content.records.values().find(|r| predicate(r)).cloned()
    }

    /// Adds a record and syncs it to disk.
    ///
    /// # Errors
    ///
    /// Fails if the record cannot be serialized or written.
    pub fn add(&self, record: R) -> Result<()> {
        let failed = |error: std::io::Error| self.write_failed(&error);
        let versioned = Versioned::new(&record);
        let mut line = serde_json::to_vec(&versioned).map_err(|e| failed(e.into()))?;
        line.push(b'\n');
        let mut content = self.content();
        plain_file::append_line(&mut content.file, &line).map_err(failed)?;
        content.records.insert(record.key(), record);
        Ok(())
    }

    /// Rewrites the file with the records of the given keys, in this order and without duplicates, and returns them.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub fn retain(&self, keys: impl Iterator<Item = R::Key>) -> Result<Vec<R>> {
        let failed = |error: std::io::Error| self.write_failed(&error);
        let mut content = self.content();
        let records: Vec<R> = keys
            .filter_map(|key| content.records.get(&key).cloned())
            .collect();
        let lines: Vec<_> = records.iter().map(Versioned::new).collect();
        let text = folder::json_lines(&lines).map_err(|e| failed(e.into()))?;
        content.file = replace(&self.path, &text).map_err(failed)?;
        // The earlier lock was on the file that this one replaces.
        let _ = content.file.try_lock();
        Ok(records)
    }

    fn content(&self) -> MutexGuard<'_, Content<R>> {
        lock(&self.content)
    }

    fn write_failed(&self, error: &std::io::Error) -> Error {
        Error::io(format!("write {}", self.path.display()), error)
    }
}

/// Reads the records of complete lines, and returns them with the length of those lines.
fn read_lines<R: Record>(path: &Path) -> Result<(Records<R>, u64)> {
    let failed = |error: std::io::Error| Error::io(format!("read {}", path.display()), &error);
    let mut lines = LineReader::open(path, MAX_RECORDS).map_err(failed)?;
    let mut records = BTreeMap::new();
    while let Some(line) = lines.next_line().map_err(failed)? {
        if line.is_empty() {
            continue;
        }
        let record: R = serde_json::from_slice(line).map_err(|error| {
            let number = lines.number();
            Error::usage(format!("read {}", path.display()))
                .cause(format!("line {number} is not {}: {error}", R::WHAT))
                .hint("delete this line, then repeat the command that wrote it")
        })?;
        records.insert(record.key(), record);
    }
    Ok((records, lines.complete_bytes()))
}

/// Reads a JSON document; `None` if the file does not exist. The hint is for an invalid document.
///
/// # Errors
///
/// Fails if the file cannot be read, or contains something else.
pub fn read_document<T: DeserializeOwned>(path: &Path, hint: Option<&str>) -> Result<Option<T>> {
    let text = match plain_file::read(path, Links::Refuse, MAX_DOCUMENT) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|error| Error::io(format!("read {}", path.display()), &error))?,
    };
    let document = serde_json::from_slice(&text).map_err(|error| Error {
        hint: hint.map(str::to_owned),
        ..Error::usage(format!("read {}", path.display())).cause(error)
    })?;
    Ok(Some(document))
}

/// Writes a file atomically, with an error for the user.
pub(crate) fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    let written = replace(path, content).map(drop);
    written.map_err(|error| Error::io(format!("write {}", path.display()), &error))
}

/// Writes a file atomically, and creates its folder.
pub(crate) fn replace(path: &Path, content: &[u8]) -> std::io::Result<File> {
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    folder::write_atomically(path, 0o644, |aside| {
        aside.write_all(content)?;
        aside.sync_data()
    })
}

#[cfg(test)]
mod tests;
