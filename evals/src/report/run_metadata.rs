//! Facts about a run of the harness: `run.json` in the results folder. It is written at the start and the end of
//! grading, and read whenever reports are made. All fields are optional.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_sandboxes::plain_file::{self, Links, MAX_DOCUMENT};

use super::{ReportError, put_json};
use crate::machine::{COMMIT, Machine};
use crate::predictions::Warning;
use crate::result::is_time;
use crate::untrusted_text;

const FILE: &str = "run.json";
/// Maximum plausible number of instances, more than in any dataset.
const INSTANCES: u64 = 100_000_000;
/// Beginning of the note on merged shards that lack instances.
const COVERAGE_NOTE: &str = "the merged folders have";

/// Facts about a run of the harness: content of `run.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunMetadata {
    /// Path of the dataset, as the user gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// SHA-256 of the file of the dataset, or of all problems of CLOVER, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset_sha256: Option<String>,
    /// SHA-256 of the files with the predictions, in hex, by prediction set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub predictions_sha256: BTreeMap<String, Vec<String>>,
    /// Version of testwright.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub testwright: Option<String>,
    /// Commit from which testwright was built.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub testwright_commit: Option<String>,
    /// Machine of the last session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Python versions that the sandbox provides. Each environment uses one of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pythons: Vec<String>,
    /// Number of instances selected from the dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instances: Option<u64>,
    /// Number of instances of the whole dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset_instances: Option<u64>,
    /// Ids of these instances, sorted. Absent in `report.json` and in files of older versions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instance_ids: Vec<String>,
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
    /// Returns metadata with only the program, this machine, and the current time in whole seconds.
    pub fn of_this_machine() -> RunMetadata {
        let now = jiff::Timestamp::now().as_second();
        RunMetadata {
            testwright: Some(env!("CARGO_PKG_VERSION").to_owned()),
            testwright_commit: COMMIT.map(str::to_owned),
            machine: Some(Machine::current()),
            started: (jiff::Timestamp::from_second(now).ok()).map(|now| now.to_string()),
            ..RunMetadata::default()
        }
    }

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

    /// Adds the metadata of another shard, which repeats the results of this number of instances. Fails with the name of
    /// an input that differs.
    pub(crate) fn add_shard(
        &mut self,
        other: RunMetadata,
        repeated: u64,
    ) -> Result<(), &'static str> {
        let differ = |a: &Option<String>, b: &Option<String>| a.is_some() && b.is_some() && a != b;
        if differ(&self.dataset_sha256, &other.dataset_sha256) {
            return Err("dataset");
        }
        if differ(&self.grader, &other.grader) {
            return Err("version of the grader");
        }
        self.retain_shared(&other);
        self.dataset_instances = self.dataset_instances.or(other.dataset_instances);
        self.add_instances(&other, repeated);
        self.started = self.started.take().into_iter().chain(other.started).min();
        let seconds = self.seconds.zip(other.seconds);
        self.seconds = seconds.map(|(a, b)| a + b);
        self.workers = None;
        // Shards repeat unknown instances, and those that overlap repeat others.
        let earlier: BTreeSet<&Warning> = self.predictions.iter().collect();
        let is_new = |warning: &Warning| !earlier.contains(warning);
        let warnings: Vec<Warning> = other.predictions.into_iter().filter(is_new).collect();
        self.predictions.extend(warnings);
        for set in other.sets {
            if !self.sets.contains(&set) {
                self.sets.push(set);
            }
        }
        for (set, files) in other.predictions_sha256 {
            let own = self.predictions_sha256.entry(set).or_default();
            own.extend(files);
            own.sort_unstable();
            own.dedup();
        }
        other.notes.into_iter().for_each(|note| self.add_note(note));
        Ok(())
    }

    /// Adds the instances of another shard. Unless both shards list their instances, only those with results in both are
    /// known to be repeated.
    fn add_instances(&mut self, other: &RunMetadata, repeated: u64) {
        if self.lists_instances() && other.lists_instances() {
            self.instance_ids.extend(other.instance_ids.iter().cloned());
            self.instance_ids.sort_unstable();
            self.instance_ids.dedup();
            self.instances = Some(self.instance_ids.len() as u64);
            return;
        }
        self.instance_ids.clear();
        let instances = self.instances.zip(other.instances);
        self.instances = instances.map(|(a, b)| a.saturating_add(b).saturating_sub(repeated));
    }

    /// Returns whether the ids of all instances are known.
    fn lists_instances(&self) -> bool {
        self.instances == Some(self.instance_ids.len() as u64)
    }

    /// Removes facts on the program, the sandbox and the machine that differ from those of another shard.
    fn retain_shared(&mut self, other: &RunMetadata) {
        if self.testwright != other.testwright || self.testwright_commit != other.testwright_commit
        {
            (self.testwright, self.testwright_commit) = (None, None);
            self.add_note("the shards were graded by different versions of testwright".to_owned());
        }
        if self.sandbox != other.sandbox {
            self.sandbox = None;
            self.add_note("the shards were graded in different kinds of sandbox".to_owned());
        }
        if self.machine != other.machine {
            self.machine = None;
        }
        if self.pythons != other.pythons {
            self.pythons = Vec::new();
        }
    }

    /// Adds a note if the merged shards lack instances of the dataset.
    pub(crate) fn note_missing_instances(&mut self) {
        // A folder may itself be the result of a merge.
        self.notes.retain(|note| !note.starts_with(COVERAGE_NOTE));
        if let (Some(instances), Some(all)) = (self.instances, self.dataset_instances)
            && instances < all
        {
            let note = format!("{COVERAGE_NOTE} {instances} of the {all} instances of the dataset");
            self.add_note(note);
        }
    }

    /// Adds a note, unless it exists already.
    fn add_note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Removes values that the harness never writes, and adds a remark.
    fn check(&mut self) {
        let is_fit = |name: &str| untrusted_text::check_name(name).is_ok();
        let before = self.clone();
        self.sets.retain(|name| is_fit(name));
        self.instance_ids.retain(|id| is_fit(id));
        self.predictions
            .retain(|warning| is_fit(&warning.model_name_or_path) && is_fit(&warning.instance_id));
        self.seconds = self.seconds.filter(|seconds| is_time(*seconds));
        let is_plausible = |instances: &u64| *instances <= INSTANCES;
        self.instances = self.instances.filter(is_plausible);
        self.dataset_instances = self.dataset_instances.filter(is_plausible);
        if before != *self {
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
        put_json(folder, FILE, self)
    }
}

#[cfg(test)]
mod tests;
