//! The result of grading one prediction for one instance: a line of `results.jsonl`.

pub mod results_file;

use std::collections::BTreeMap;
use std::path::{Component, Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_sandboxes::Shortage;

use crate::folder;
use crate::untrusted_text::{NameError, check_name};
use crate::verdict::{OldClass, Pair, Strict, Swt, Tdd};

/// A line of `results.jsonl`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceResult {
    /// Id of the instance in the dataset.
    pub instance_id: String,
    /// Name of the prediction set (`model_name_or_path`).
    pub prediction: String,
    /// Identifies what was graded and how; a result with the same key is reused.
    pub key: String,
    /// Repository as `owner/name`.
    pub repo: String,
    /// Estimated length of the issue in tokens (characters / 4).
    pub issue_tokens: u64,
    /// Whether there was a patch (`false`: null, empty or missing).
    pub has_patch: bool,
    /// Whether the patch applies to the base commit.
    pub applied: bool,
    /// Notes on how the patch was applied or why it could not be (e.g. `with fuzz`), and on its content (e.g. `edits
    /// code under test: src/a.py`).
    #[serde(default)]
    pub notes: Vec<String>,
    /// Contributed tests, without parameters.
    pub contributed: Vec<String>,
    /// Contributed tests as they ran, including parameters, with their outcomes on the old and the new code.
    pub tests: Vec<TestPair>,
    /// Combined outcome of the contributed tests on the old code.
    pub old_class: OldClass,
    /// Verdict of testwright.
    pub strict: Strict,
    /// Verdict of SWT-bench's harness.
    pub swt: Swt,
    /// TDD-Bench-Verified's verdict and score.
    pub tdd: Tdd,
    /// Change coverage ΔC (SWT-bench §3.3), 0 to 1; `None` if there is no line to cover, or it could not be measured.
    pub coverage_delta: Option<f64>,
    /// Number of deleted lines that the base suite or the golden tests run on the old code, and of added lines that
    /// they run on the new code: the denominator of ΔC. `None` if it could not be measured.
    #[serde(default)]
    pub coverage_lines: Option<u64>,
    /// Number of deleted and added lines that are statements: the denominator of adequacy.
    #[serde(default)]
    pub adequacy_lines: Option<u64>,
    /// Why a coverage figure is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage_problem: Option<String>,
    /// Why the strict verdict differs from those of the public harnesses.
    pub differs: Vec<String>,
    /// Failure that is not the prediction's fault; if set, there is no verdict.
    pub infrastructure: Option<Infrastructure>,
    /// Wall time by activity.
    pub seconds: Seconds,
    /// Parts that came from a cache: `build`, `old`, `new`, `base`.
    pub cached: Vec<String>,
    /// Logs by name (`build`, `old`, `new`, …), relative to the results folder.
    #[serde(default)]
    pub logs: BTreeMap<String, String>,
    /// Result of searching the sandbox of the old code for the new code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leakage: Option<Leakage>,
}

/// Reason why a line cannot have been written by grading.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResultError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("`{field}` {source}")]
    Name {
        field: &'static str,
        source: NameError,
    },
    #[error("`{0}` is not between 0 and 1")]
    Share(&'static str),
    #[error("`seconds` contains an invalid time")]
    Seconds,
    #[error("the name of a log {0}")]
    LogName(#[source] NameError),
    #[error("the path of a log leads outside of the results folder")]
    LogPath,
}

impl InstanceResult {
    /// Checks that grading could have written the result, because reports use its names, figures and paths unchanged.
    pub(crate) fn check(&self) -> Result<(), ResultError> {
        let names = [
            ("instance_id", &self.instance_id),
            ("prediction", &self.prediction),
            ("repo", &self.repo),
            ("key", &self.key),
        ];
        for (field, text) in names {
            check_name(text).map_err(|source| ResultError::Name { field, source })?;
        }
        let shares = [
            ("coverage_delta", self.coverage_delta),
            ("adequacy", self.tdd.adequacy),
            ("score", Some(self.tdd.score)),
        ];
        for (field, share) in shares {
            if share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
                return Err(ResultError::Share(field));
            }
        }
        let seconds = self.seconds;
        if !is_time(seconds.total) || seconds.parts().into_iter().any(|s| !is_time(s)) {
            return Err(ResultError::Seconds);
        }
        for (name, path) in &self.logs {
            check_name(name).map_err(ResultError::LogName)?;
            if !folder::is_below(path) {
                return Err(ResultError::LogPath);
            }
        }
        let failed = self.infrastructure.as_ref();
        if let Some(log) = failed.and_then(|failed| failed.log.as_deref())
            && Path::new(log)
                .components()
                .any(|part| part == Component::ParentDir)
        {
            return Err(ResultError::LogPath);
        }
        Ok(())
    }

    /// Returns the paths of all logs.
    pub(crate) fn log_paths(&self) -> impl Iterator<Item = &String> {
        let failed = self.infrastructure.as_ref();
        let of_failure = failed.and_then(|failed| failed.log.as_ref());
        self.logs.values().chain(of_failure)
    }

    /// Marks the result as ungraded.
    pub fn mark_ungraded(&mut self, infrastructure: Infrastructure) {
        self.strict = Strict {
            fail_to_pass: false,
            reason: "the prediction could not be graded".to_owned(),
        };
        self.infrastructure = Some(infrastructure);
    }
}

/// Returns whether a number of seconds is plausible: at least 0 and at most about a hundred years.
pub(crate) fn is_time(seconds: f64) -> bool {
    (0.0..=4e9).contains(&seconds)
}

/// Outcomes of one test on the old and the new code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestPair {
    /// Node id of the test.
    pub id: String,
    /// Outcomes on both sides.
    #[serde(flatten)]
    pub pair: Pair,
}

/// Failure of the machine or of testwright, which never counts against a prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{stage}: {cause}")]
pub struct Infrastructure {
    /// Failed stage: `source`, `build`, `old`, `new` or `base`.
    pub stage: String,
    /// The error, on one line.
    pub cause: String,
    /// Path of the log, relative to the results folder, or on the host.
    pub log: Option<String>,
    /// Resource that the machine ran out of, if that is the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortage: Option<Shortage>,
}

impl Infrastructure {
    /// Returns a failure without a log, not caused by a shortage.
    pub fn new(stage: &str, cause: String) -> Infrastructure {
        Infrastructure {
            stage: stage.to_owned(),
            cause,
            log: None,
            shortage: None,
        }
    }
}

/// Wall time in seconds. The parts add up to the total: concurrent activities get equal parts of it. Cached parts take
/// 0 seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Seconds {
    /// Fetching the code and building the environment.
    pub build: f64,
    /// Running only the golden tests, to measure which lines they run.
    pub golden: f64,
    /// Running with the prediction on the old code.
    pub old: f64,
    /// Running with the prediction on the new code.
    pub new: f64,
    /// Running again with another hash seed and with placebos, on both sides. Older results count it as `old` and `new`.
    pub repeats: f64,
    /// Running the suite without the prediction, on both sides.
    pub base: f64,
    /// Waiting for runs of other instances to end.
    pub waiting: f64,
    /// Everything else.
    pub other: f64,
    /// Total time of grading the prediction. It includes work shared with other predictions of the instance if this one
    /// was graded first.
    pub total: f64,
}

impl Seconds {
    /// Column titles for [`Seconds::parts`].
    pub const PARTS: [&str; 8] = [
        "Build",
        "Golden tests",
        "Base",
        "Old code",
        "New code",
        "Repeats",
        "Waiting",
        "Other",
    ];

    /// Returns all values except the total.
    pub fn parts(self) -> [f64; 8] {
        let Seconds {
            build,
            golden,
            old,
            new,
            repeats,
            base,
            waiting,
            other,
            total: _,
        } = self;
        [build, golden, base, old, new, repeats, waiting, other]
    }
}

/// Result of searching a sandbox of the old code for the new code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Leakage {
    /// Number of files searched.
    pub files_searched: u64,
    /// Places where the new code was found; none is the expected result.
    pub places: Vec<String>,
}
