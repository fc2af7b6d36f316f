//! Facts about a run of the harness: `run.json` in the results folder. It is written at the start and the end of
//! grading, and read whenever reports are made. All fields are optional.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_sandboxes::plain_file::{self, Links, MAX_DOCUMENT};

use super::{ReportError, put};
use crate::predictions::Warning;
use crate::result::is_time;
use crate::untrusted_text;

const FILE: &str = "run.json";
/// Maximum plausible number of instances, more than in any dataset.
const INSTANCES: u64 = 100_000_000;

/// Facts about a run of the harness: content of `run.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunMetadata {
    /// Path of the dataset, as the user gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// Number of instances selected from the dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instances: Option<u64>,
    /// Version of the grader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grader: Option<String>,
    /// Start of the first session, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// Wall time in seconds over all sessions that ended or were interrupted. Sessions that were killed are not
    /// included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Number of instances that were graded in parallel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// Backend, e.g. `local`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// Disk space used by environments and caches, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// Prediction sets to be graded, including those without results so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<String>,
    /// Anomalies in the predictions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub predictions: Vec<Warning>,
    /// Other remarks for the reader.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl RunMetadata {
    /// Reads the metadata of a folder; empty if the folder has no `run.json`.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or is not valid JSON.
    pub fn read(folder: &Path) -> Result<RunMetadata, ReportError> {
        let path = folder.join(FILE);
        let text = match plain_file::read(&path, Links::Refuse, MAX_DOCUMENT) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(RunMetadata::default()),
            Err(source) => return Err(ReportError::Read { path, source }),
        };
        let mut run: RunMetadata =
            serde_json::from_slice(&text).map_err(|source| ReportError::Json { path, source })?;
        run.check();
        Ok(run)
    }

    /// Removes values that the harness never writes, and adds a remark.
    fn check(&mut self) {
        let is_fit = |name: &str| untrusted_text::check_name(name).is_ok();
        let before = (
            self.sets.len(),
            self.predictions.len(),
            self.seconds,
            self.instances,
        );
        self.sets.retain(|name| is_fit(name));
        self.predictions
            .retain(|warning| is_fit(&warning.model_name_or_path) && is_fit(&warning.instance_id));
        self.seconds = self.seconds.filter(|seconds| is_time(*seconds));
        self.instances = self.instances.filter(|instances| *instances <= INSTANCES);
        let after = (
            self.sets.len(),
            self.predictions.len(),
            self.seconds,
            self.instances,
        );
        if before != after {
            let remark = format!("invalid values in {FILE} were ignored");
            self.notes.push(remark);
        }
    }

    /// Writes the metadata to a folder.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), ReportError> {
        put(folder, FILE, &super::json(self)?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn metadata_survives_and_is_optional() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            RunMetadata::read(folder.path()).unwrap(),
            RunMetadata::default()
        );
        let metadata = RunMetadata {
            workers: Some(2),
            notes: vec!["slow disk".to_owned()],
            ..RunMetadata::default()
        };
        metadata.write(folder.path()).unwrap();
        assert_eq!(RunMetadata::read(folder.path()).unwrap(), metadata);
        std::fs::write(folder.path().join(FILE), "{\"workers\": 3, \"new\": 1}").unwrap();
        assert_eq!(RunMetadata::read(folder.path()).unwrap().workers, Some(3));
        std::fs::write(folder.path().join(FILE), "{").unwrap();
        let error = RunMetadata::read(folder.path()).unwrap_err().to_string();
        assert!(
            error.starts_with("read ") && error.contains(FILE),
            "{error}"
        );
    }
}
