//! What is in the cache about what is kept: `NAME.json` for each environment and each layer of requirements, written
//! when its state is complete. While a state is removed, its record is called `NAME.gone`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Environment;
use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::Result;

/// The record of a layer of requirements.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Layer {
    /// For everybody who builds on it.
    pub notes: Vec<String>,
    pub bytes: u64,
    pub backend: String,
}

pub(super) enum Record {
    Environment(Box<Environment>),
    Layer(Layer),
}

impl Record {
    /// Of the file of this name; one of another version is as good as none.
    pub async fn read(path: &Path) -> Option<Record> {
        if is_layer(path) {
            return layer(path).await.map(Record::Layer);
        }
        environment(path)
            .await
            .map(|e| Record::Environment(Box::new(e)))
    }

    pub fn backend(&self) -> &str {
        match self {
            Record::Environment(environment) => &environment.backend,
            Record::Layer(layer) => &layer.backend,
        }
    }

    pub fn bytes(&self) -> u64 {
        match self {
            Record::Environment(environment) => environment.bytes,
            Record::Layer(layer) => layer.bytes,
        }
    }
}

/// Bytes that are kept in a cache folder for environments and their requirements, for each backend.
pub async fn kept_bytes(cache: &Path) -> BTreeMap<String, u64> {
    let folder = cache.join("environments");
    let mut kept = BTreeMap::new();
    for name in names(&folder, ".json") {
        let record = Record::read(&path(&folder, &name)).await;
        if let Some(record) = record {
            *kept.entry(record.backend().to_owned()).or_default() += record.bytes();
        }
    }
    kept
}

pub(super) fn is_layer(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with("deps-"))
}

pub(super) fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.json"))
}

/// Where the record is while its state is removed.
pub(super) fn gone(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.gone"))
}

/// The names for which there is a file with this ending.
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

pub(super) async fn environment(path: &Path) -> Option<Environment> {
    read(path).await
}

pub(super) async fn layer(path: &Path) -> Option<Layer> {
    read(path).await
}

async fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let text = tokio::fs::read(path).await.ok()?;
    serde_json::from_slice(&text).ok()
}

pub(super) async fn write<T: Serialize>(path: &Path, record: &T) -> Result<()> {
    let text = serde_json::to_vec_pretty(record)
        .map_err(|e| SandboxError::new(ErrorKind::System, e.to_string()))?;
    let aside = path.with_extension("json.new");
    tokio::fs::write(&aside, text).await?;
    tokio::fs::rename(&aside, path).await?;
    Ok(())
}
