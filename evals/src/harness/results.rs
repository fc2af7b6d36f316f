//! The results of a folder, open for more: one line a prediction and instance, appended when it is graded.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::graded::Graded;
use crate::graded::stored::{FILE, Line, Stored};

#[derive(Debug, thiserror::Error)]
#[error("{doing} {path}: {source}")]
pub struct ResultsError {
    pub doing: &'static str,
    pub path: PathBuf,
    pub source: std::io::Error,
}

/// The results of a folder, open for more. Only one process at a time has it.
pub struct Results {
    path: PathBuf,
    file: File,
    stored: Stored,
}

impl Results {
    /// Opens the results of a folder, which is made if need be; what was cut short in the file is taken off.
    pub fn open(folder: &Path) -> Result<Results, ResultsError> {
        let path = folder.join(FILE);
        let failed = |doing| {
            let path = path.clone();
            move |source| ResultsError {
                doing,
                path,
                source,
            }
        };
        std::fs::create_dir_all(folder).map_err(failed("make the folder of"))?;
        let mut file = File::options()
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .map_err(failed("open"))?;
        file.try_lock().map_err(|error| match error {
            std::fs::TryLockError::Error(source) => failed("lock")(source),
            std::fs::TryLockError::WouldBlock => failed("lock")(std::io::Error::new(
                std::io::ErrorKind::ResourceBusy,
                "another process grades into this folder",
            )),
        })?;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).map_err(failed("read"))?;
        file.read_to_end(&mut bytes).map_err(failed("read"))?;
        let whole = bytes
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64).map_err(failed("mend"))?;
        }
        // Lines of other versions are as good as none.
        let stored = Stored::parse(&bytes[..whole]);
        Ok(Results { path, file, stored })
    }

    /// The result of what has this key, unless the machine was to blame for it.
    pub fn of(&self, prediction: &str, instance_id: &str, key: &str) -> Option<&Graded> {
        let names = (prediction.to_owned(), instance_id.to_owned());
        let line = self.stored.by_name.get(&names);
        line.map(|line| &line.graded)
            .filter(|result| result.key == key && result.infrastructure.is_none())
    }

    /// Adds a result; it is on disk when this returns.
    pub fn add(&mut self, result: Graded) -> Result<(), ResultsError> {
        let failed = |source| ResultsError {
            doing: "write",
            path: self.path.clone(),
            source,
        };
        let mut line = serde_json::to_vec(&result).map_err(|e| failed(e.into()))?;
        line.push(b'\n');
        let before = self.file.metadata().map_err(failed)?.len();
        let written = self
            .file
            .write_all(&line)
            .and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // On a full disk half a line may be there; the next one must not be glued to it.
            let _ = self.file.set_len(before);
            return Err(failed(error));
        }
        line.pop();
        self.stored.put(result, line);
        Ok(())
    }

    /// Writes the file anew, in order, with the wanted results alone.
    pub fn tidy(&mut self, wanted: &dyn Fn(&Graded) -> bool) -> Result<(), ResultsError> {
        let failed = |source| ResultsError {
            doing: "write",
            path: self.path.clone(),
            source,
        };
        self.stored.by_name.retain(|_, line| wanted(&line.graded));
        let folder = self.path.parent().unwrap_or(&self.path);
        let mut aside = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        for Line { text, .. } in self.stored.by_name.values() {
            let written = aside.write_all(text).and_then(|()| aside.write_all(b"\n"));
            written.map_err(failed)?;
        }
        let path = self.path.clone();
        let file = aside.persist(&path).map_err(|e| failed(e.error))?;
        let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        file.set_permissions(readable).map_err(failed)?;
        *self = Results::open(folder)?;
        Ok(())
    }

    pub fn all(&self) -> impl Iterator<Item = &Graded> {
        self.stored.by_name.values().map(|line| &line.graded)
    }
}
