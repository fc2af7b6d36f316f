//! A result together with its logs, for results folders on other machines.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::results::ResultsError;
use crate::folder;
use crate::result::InstanceResult;

/// A result with the contents of its logs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortableResult {
    /// The result of grading.
    pub result: InstanceResult,
    /// Logs by their path relative to the results folder.
    pub logs: BTreeMap<String, String>,
}

impl PortableResult {
    /// Packs a result with the logs that exist in the folder. A missing log does not lose the result.
    pub fn pack(folder: &Path, result: InstanceResult) -> Self {
        let read = |path: &String| {
            let log = folder::read_below(folder, path).ok()?;
            Some((path.clone(), String::from_utf8_lossy(&log).into_owned()))
        };
        PortableResult {
            logs: result.log_paths().filter_map(read).collect(),
            result,
        }
    }

    /// Writes the logs to the folder and returns the result. Refuses a result that no grading could have written.
    ///
    /// # Errors
    ///
    /// Fails if the result is implausible, or a log cannot be written.
    pub fn unpack(self, folder: &Path) -> Result<InstanceResult, ResultsError> {
        let failed = |path: &str| ResultsError::of("write", &folder.join(path));
        self.result.check().map_err(|why| {
            let source = std::io::Error::new(std::io::ErrorKind::InvalidData, why);
            failed(crate::result::results_file::FILE)(source)
        })?;
        for (path, log) in &self.logs {
            let written = folder::write_below(folder, path, log.as_bytes());
            written.map_err(failed(path))?;
        }
        Ok(self.result)
    }
}

#[cfg(test)]
mod tests;
