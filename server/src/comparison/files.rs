//! Uploads the files of a comparison to the artifact store, because its folder is removed: tables, the outcome of each
//! run, and, as archives, predictions and grading results with their logs. Trajectories are stored with the runs. A
//! failure here loses only files, because the report is in the database.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::artifacts::Artifacts;
use crate::run_files::{files, record};
use crate::store::{Attempt, Store};
use testwright_comparisons::compare::{GRADING, PREDICTIONS};
use testwright_config::error::{Error, Result};

pub(super) async fn upload(store: &Store, artifacts: &Artifacts, attempt: &Attempt, folder: &Path) {
    if let Err(error) = try_upload(store, artifacts, attempt, folder).await {
        let (id, error) = (attempt.id.as_str(), error.with_cause());
        tracing::warn!(id, error, "could not upload the files of a comparison");
    }
}

async fn try_upload(
    store: &Store,
    artifacts: &Artifacts,
    attempt: &Attempt,
    folder: &Path,
) -> Result<()> {
    for name in [PREDICTIONS, GRADING] {
        let packed = tokio::task::block_in_place(|| pack(folder, name));
        let failed = |e| Error::io(format!("pack {}", folder.join(name).display()), &e);
        packed.map_err(failed)?;
    }
    for (name, path) in files(folder)? {
        let blob = artifacts.put_file(&path).await?;
        record(store, attempt, name, &blob).await?;
    }
    Ok(())
}

/// Packs a folder into `NAME.tar.gz` beside it; does nothing if the folder is missing.
fn pack(folder: &Path, name: &str) -> io::Result<()> {
    if !folder.join(name).is_dir() {
        return Ok(());
    }
    let file = File::create(folder.join(format!("{name}.tar.gz")))?;
    let packed = GzEncoder::new(BufWriter::new(file), Compression::default());
    let mut archive = tar::Builder::new(packed);
    archive.follow_symlinks(false);
    archive.append_dir_all(name, folder.join(name))?;
    archive.into_inner()?.finish()?.flush()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn folder_is_packed_recursively() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("grading/logs");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("a.log"), "a log").unwrap();
        pack(place.path(), "grading").unwrap();
        pack(place.path(), "missing").unwrap();
        let names: Vec<String> = files(place.path())
            .unwrap()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["grading.tar.gz"]);
        let file = File::open(place.path().join("grading.tar.gz")).unwrap();
        let mut archive = tar::Archive::new(GzDecoder::new(file));
        let mut contents = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let path = entry.path().unwrap().display().to_string();
            if entry.header().entry_type().is_file() {
                contents.push((path, text));
            }
        }
        assert_eq!(
            contents,
            [("grading/logs/a.log".to_owned(), "a log".to_owned())]
        );
    }
}
