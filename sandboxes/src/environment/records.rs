//! The records of cached states: `NAME.json` for each environment and each layer of requirements.
//!
//! A record is written when its state is complete. While a state is being removed, its record is called `NAME.gone`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::SandboxError;
use crate::sandbox::Result;

/// Start of the names of images that were built from Dockerfiles.
pub(super) const IMAGE: &str = "dockerfile-";

/// The record of a layer of requirements, or of an image that was built from a Dockerfile.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Layer {
    /// Notes for every build on this layer.
    pub notes: Vec<String>,
    pub bytes: u64,
    pub backend: String,
}

/// The facts of a record that eviction needs.
#[derive(Deserialize)]
pub(super) struct Record {
    pub backend: String,
    pub bytes: u64,
    /// Layer that an environment is built on; `None` for a layer.
    pub dependencies: Option<String>,
}

/// Returns the bytes that environments and their requirements take in a cache folder, by backend.
pub async fn cached_bytes(cache: &Path) -> BTreeMap<String, u64> {
    let folder = cache.join("environments");
    let mut kept = BTreeMap::new();
    for name in names(&folder, ".json") {
        let record: Option<Record> = read(&path(&folder, &name)).await;
        if let Some(record) = record {
            *kept.entry(record.backend).or_default() += record.bytes;
        }
    }
    kept
}

pub(super) fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.json"))
}

/// Returns the path of a record while its state is being removed.
pub(super) fn removal_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.gone"))
}

/// Returns the names for which the folder has a file with this ending.
pub(super) fn names(folder: &Path, ending: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some(name.strip_suffix(ending)?.to_owned())
        })
        .collect();
    names.sort();
    names
}

/// Reads a record. A record in another format counts as missing.
pub(super) async fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let text = tokio::fs::read(path).await.ok()?;
    serde_json::from_slice(&text).ok()
}

pub(super) async fn write<T: Serialize>(path: &Path, record: &T) -> Result<()> {
    let text =
        serde_json::to_vec_pretty(record).map_err(|e| SandboxError::system(e.to_string()))?;
    let aside = path.with_extension("json.new");
    tokio::fs::write(&aside, text).await?;
    tokio::fs::rename(&aside, path).await?;
    Ok(())
}
