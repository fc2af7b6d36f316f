//! What is known of a run of the harness beside its results: `run.json` in the folder of results, written when grading
//! begins and again when it ends, read when the reports are made again. All of it is optional.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_sandboxes::plain_file::{self, Links, MAX_DOCUMENT};

use super::{ReportError, put};
use crate::foreign_text;
use crate::predictions::Warning;
use crate::result::is_time;

const FILE: &str = "run.json";
/// More than any dataset has.
const INSTANCES: u64 = 100_000_000;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunMetadata {
    /// Path of the dataset, as the user gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// Instances that were chosen from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instances: Option<u64>,
    /// Version of the grader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grader: Option<String>,
    /// Begin of the first session, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// Wall time in seconds, over all sessions of the run that ended, or were interrupted: of one that was killed nothing
    /// is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// Backend, e.g. `local`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// Disk that environments and caches took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// Prediction sets that are graded: also those of which no result is there yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<String>,
    /// Anomalies in the predictions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub predictions: Vec<Warning>,
    /// What else the reader should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

impl RunMetadata {
    /// Nothing is known where the folder has no `run.json`.
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

    /// Leaves out what no run of the harness writes, and says so.
    fn check(&mut self) {
        let is_fit = |name: &str| foreign_text::check_name(name).is_ok();
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
            let remark = format!("some of {FILE} is not as the harness writes it, and is left out");
            self.remarks.push(remark);
        }
    }

    pub fn write(&self, folder: &Path) -> Result<(), ReportError> {
        put(folder, FILE, &super::json(self)?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn metadata_comes_back_and_is_not_needed() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            RunMetadata::read(folder.path()).unwrap(),
            RunMetadata::default()
        );
        let metadata = RunMetadata {
            workers: Some(2),
            remarks: vec!["slow disk".to_owned()],
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
