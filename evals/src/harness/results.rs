//! Results of a folder, open for appending: one line per prediction and instance, written when it has been graded.

use std::fs::File;
use std::path::{Path, PathBuf};

use testwright_sandboxes::plain_file::{self, LineReader, MAX_RECORDS};
use testwright_sandboxes::private;

use crate::folder::{self, Versioned};
use crate::result::InstanceResult;
use crate::result::results_file::{FILE, ResultsFile};

/// A results folder that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{doing} {path}: {source}")]
pub struct ResultsError {
    /// The failed action, as a verb such as `open`.
    pub doing: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// The cause.
    pub source: std::io::Error,
}

impl ResultsError {
    /// Returns the error of an action on a file, for any cause.
    pub(super) fn of(
        doing: &'static str,
        path: &Path,
    ) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| ResultsError {
            doing,
            path,
            source,
        }
    }
}

/// Results of a folder, open for appending. Only one process at a time can open them.
pub struct Results {
    path: PathBuf,
    file: File,
    stored: ResultsFile,
    /// Length of the complete lines, if the last line was cut off.
    whole: Option<u64>,
}

impl Results {
    /// Opens the results of a folder, and creates the folder if necessary. The file is unchanged until a result is
    /// added.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be created, or the file cannot be read or is in use by another process.
    pub fn open(place: &Path) -> Result<Results, ResultsError> {
        let path = place.join(FILE);
        let failed = |doing| ResultsError::of(doing, &path);
        private::create(place).map_err(failed("create the folder of"))?;
        let file = plain_file::open_to_append(&path).map_err(failed("open"))?;
        file.try_lock().map_err(|error| match error {
            std::fs::TryLockError::Error(source) => failed("lock")(source),
            std::fs::TryLockError::WouldBlock => failed("lock")(std::io::Error::new(
                std::io::ErrorKind::ResourceBusy,
                "another process grades into this folder",
            )),
        })?;
        let from_start = file.try_clone().map_err(failed("read"))?;
        let mut lines = LineReader::from_file(from_start, MAX_RECORDS).map_err(failed("read"))?;
        // Lines from incompatible versions are ignored.
        let stored = ResultsFile::read(&mut lines).map_err(failed("read"))?;
        Ok(Results {
            path,
            file,
            stored,
            whole: (!lines.partial_line().is_empty()).then(|| lines.complete_bytes()),
        })
    }

    /// Returns the result with this key, unless it failed because of the machine.
    pub fn get(&self, prediction: &str, instance_id: &str, key: &str) -> Option<&InstanceResult> {
        let names = (prediction.to_owned(), instance_id.to_owned());
        let line = self.stored.by_name.get(&names);
        line.map(|line| &line.graded)
            .filter(|result| result.key == key && result.infrastructure.is_none())
    }

    /// Adds a result and syncs it to disk. A line that was cut off is removed first.
    ///
    /// # Errors
    ///
    /// Fails if the result cannot be written.
    pub fn add(&mut self, result: InstanceResult) -> Result<(), ResultsError> {
        let failed = |source| ResultsError::of("write", &self.path)(source);
        let versioned = Versioned::new(&result);
        let mut line = serde_json::to_vec(&versioned).map_err(|e| failed(e.into()))?;
        line.push(b'\n');
        if let Some(valid_len) = self.whole {
            self.file.set_len(valid_len).map_err(failed)?;
            self.whole = None;
        }
        plain_file::append_line(&mut self.file, &line).map_err(failed)?;
        line.pop();
        self.stored.put(result, line);
        Ok(())
    }

    /// Rewrites the file: sorted, each result once, and nothing else.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub fn rewrite_sorted(&mut self) -> Result<(), ResultsError> {
        let failed = |source| ResultsError::of("write", &self.path)(source);
        let folder = self.path.parent().unwrap_or(&self.path);
        let mut lines = self.stored.by_name.values();
        let file = folder::write_atomically(&self.path, 0o600, |aside| {
            lines.try_for_each(|line| line.write(&mut *aside))
        })
        .map_err(failed)?;
        let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        file.set_permissions(readable).map_err(failed)?;
        *self = Results::open(folder)?;
        Ok(())
    }

    /// Returns all results, sorted by prediction and instance.
    pub fn all(&self) -> impl Iterator<Item = &InstanceResult> {
        self.stored.by_name.values().map(|line| &line.graded)
    }
}

#[cfg(test)]
mod tests;
