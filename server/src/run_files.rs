//! Uploads the files of a run to the artifact store: those in its folder, and the log of its environment build.

use std::path::{Path, PathBuf};

use serde_json::Value;
use testwright_sandboxes::plain_file::{self, Links};

use crate::artifacts::{Artifacts, Blob};
use crate::store::{Attempt, Store, StoredArtifact};
use testwright_agent::trajectory::MAX_TRAJECTORY;
use testwright_config::error::{Error, Result};

/// Name of an environment build log.
const BUILD_LOG: &str = "environment.log";

/// Returns whether a name can be part of an address: it is neither a path nor hidden.
pub fn is_file_name(name: &str) -> bool {
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !name.is_empty() && name.len() <= 100 && !name.starts_with('.') && name.bytes().all(letters)
}

/// Returns the path of the environment build log, from the record of a run.
pub fn build_log(record: &str) -> Option<PathBuf> {
    let record: Value = serde_json::from_str(record).ok()?;
    let path = record.get("environment")?.get("log")?.as_str()?;
    Some(PathBuf::from(path))
}

/// Uploads all files of a run's folder, and the environment build log if it exists.
///
/// # Errors
///
/// Fails with a shortage if the artifact store or the database is full or unavailable; otherwise with an infrastructure
/// error.
pub async fn upload(
    store: &Store,
    artifacts: &Artifacts,
    attempt: &Attempt,
    folder: &Path,
    log: Option<&Path>,
) -> Result<()> {
    for (name, path) in files(folder)? {
        let blob = artifacts.put(read(&path)?).await?;
        record(store, attempt, name, &blob).await?;
    }
    let Some(log) = log.filter(|log| log.is_file()) else {
        return Ok(());
    };
    // The log is shared: another run may overwrite or remove it meanwhile.
    let content = match read(log) {
        Err(_) if !log.exists() => return Ok(()),
        content => content?,
    };
    let blob = artifacts.put(content).await?;
    record(store, attempt, BUILD_LOG.to_owned(), &blob).await
}

fn read(path: &Path) -> Result<Vec<u8>> {
    plain_file::read(path, Links::Refuse, MAX_TRAJECTORY)
        .map_err(|error| Error::io(format!("read {}", path.display()), &error))
}

/// Records a file of an attempt, whose content is in the artifact store.
///
/// # Errors
///
/// Fails if another process has claimed the job since, or if the database query fails.
pub async fn record(store: &Store, attempt: &Attempt, name: String, blob: &Blob) -> Result<()> {
    let artifact = StoredArtifact {
        name,
        digest: blob.digest.as_str().to_owned(),
        bytes: i64::try_from(blob.bytes).unwrap_or(i64::MAX),
    };
    store.put_artifact(attempt, &artifact).await
}

/// Lists the names and paths of the files in a folder, which may be missing.
///
/// # Errors
///
/// Fails if the folder exists but cannot be listed.
pub fn files(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(format!("list {}", folder.display()), &error)),
    };
    let file = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        (is_file && is_file_name(&name)).then(|| (name, entry.path()))
    };
    Ok(entries.flatten().filter_map(file).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_plainly_named_files_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["run.json", ".hidden", "a b", "test.patch"] {
            std::fs::write(path(name), "").unwrap();
        }
        std::fs::create_dir(path("folder")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", path("link")).unwrap();
        let mut entries: Vec<_> = files(folder.path()).unwrap();
        entries.sort();
        let names: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["run.json", "test.patch"]);
        assert!(files(&path("missing")).unwrap().is_empty());
    }

    #[test]
    fn build_log_is_read_from_record() {
        let record = r#"{"environment": {"log": "/x/env-1.log"}}"#;
        assert_eq!(build_log(record), Some(PathBuf::from("/x/env-1.log")));
        assert_eq!(build_log(r#"{"outcome": "infrastructure"}"#), None);
    }
}
