//! What grading one prediction for one instance gave: a line of `results.jsonl`.

pub mod results_file;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_sandboxes::Shortage;

use crate::folder;
use crate::foreign_text::{NameError, check_name};
use crate::verdict::{OldClass, Pair, Strict, Swt, Tdd};

/// A line of `results.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceResult {
    /// As in the dataset.
    pub instance_id: String,
    /// `model_name_or_path`.
    pub prediction: String,
    /// Identifies what was graded, and how: of the same content, nothing is graded twice.
    pub key: String,
    /// `owner/name`.
    pub repo: String,
    /// Words and signs of the issue, a guess at its length in tokens (characters / 4).
    pub issue_tokens: u64,
    /// There was a patch (`false`: null, empty or missing).
    pub given: bool,
    /// The patch applies to the base commit.
    pub applied: bool,
    /// How it had to be applied, or why it could not be, e.g. `with fuzz`; what of it was noticed, e.g.
    /// `edits code under test: src/a.py`.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Contributed tests, without parameters.
    pub contributed: Vec<String>,
    /// Contributed tests as they ran, parameters included: outcomes on the old and on the new code.
    pub tests: Vec<TestPair>,
    /// How the contributed tests ended on the old code.
    pub old_class: OldClass,
    /// Verdict of testwright.
    pub strict: Strict,
    /// Verdict of SWT-bench's harness.
    pub swt: Swt,
    /// TDD-Bench-Verified's verdict and score.
    pub tdd: Tdd,
    /// Change coverage ΔC (SWT-bench §3.3), 0..1; `None` where there is no line to cover, or it could not be measured.
    pub coverage_delta: Option<f64>,
    /// Changed lines that the base suite or the golden tests run, on their side: those of which ΔC is a share. `None` where
    /// that could not be measured.
    #[serde(default)]
    pub coverage_lines: Option<u64>,
    /// Changed lines that are statements, on both sides: those of which adequacy is a share.
    #[serde(default)]
    pub adequacy_lines: Option<u64>,
    /// Why a coverage figure is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage_problem: Option<String>,
    /// Why the strict verdict is not that of the public harnesses.
    pub differs: Vec<String>,
    /// What failed that is no fault of the prediction; there is no verdict then.
    pub infrastructure: Option<Infrastructure>,
    /// Wall time by part.
    pub seconds: Seconds,
    /// Which parts came from a cache: `build`, `old`, `new`, `base`.
    pub cached: Vec<String>,
    /// Logs by name (`build`, `old`, `new`, …), relative to the folder of the results.
    #[serde(default)]
    pub logs: BTreeMap<String, String>,
    /// That the sandbox of the old code did not hold the new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peeking: Option<Leakage>,
}

/// Why grading cannot have written a line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResultError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("`{field}` {source}")]
    Name {
        field: &'static str,
        source: NameError,
    },
    #[error("`{0}` is not a share")]
    Share(&'static str),
    #[error("`seconds` has what is not a time")]
    Seconds,
    #[error("the name of a log {0}")]
    LogName(#[source] NameError),
    #[error("a log is not below the folder of results")]
    LogPath,
}

impl InstanceResult {
    /// Checks that grading could have written it: reports take its names, figures and paths as they stand.
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

    /// Nothing is said of the prediction then.
    pub fn could_not(&mut self, infrastructure: Infrastructure) {
        self.strict = Strict {
            fail_to_pass: false,
            reason: "it could not be graded".to_owned(),
        };
        self.infrastructure = Some(infrastructure);
    }
}

/// Seconds, of no more than a hundred years.
pub(crate) fn is_time(seconds: f64) -> bool {
    (0.0..=4e9).contains(&seconds)
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestPair {
    pub id: String,
    #[serde(flatten)]
    pub pair: Pair,
}

/// Something of ours or of the machine's failed: never counted against a prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Infrastructure {
    /// `source`, `build`, `old`, `new` or `base`.
    pub stage: String,
    /// The error, in one line.
    pub cause: String,
    /// Where more can be read, relative to the folder of the results, or on the host.
    pub log: Option<String>,
    /// What the machine ran out of, if that is the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortage: Option<Shortage>,
}

impl Infrastructure {
    pub fn new(stage: &str, cause: String) -> Infrastructure {
        Infrastructure {
            stage: stage.to_owned(),
            cause,
            log: None,
            shortage: None,
        }
    }
}

impl fmt::Display for Infrastructure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.stage, self.cause)
    }
}

/// Wall time. The parts add up to the total: where several things were done at a time, each has an equal part of it. 0 for
/// what came from a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Seconds {
    /// Fetching the code and building the environment.
    pub build: f64,
    /// The golden tests alone, to see which lines they run.
    pub golden: f64,
    /// With the prediction, on the old code.
    pub old: f64,
    /// With the prediction, on the new code.
    pub new: f64,
    /// The suite without the prediction, on both sides.
    pub base: f64,
    /// For runs of other instances to end.
    pub waiting: f64,
    /// Everything else.
    pub other: f64,
    /// From the start of this prediction's grading to its end, what it shares with others of the instance included where
    /// it was the first.
    pub total: f64,
}

impl Seconds {
    /// Column titles for [`Seconds::parts`].
    pub const PARTS: [&str; 7] = [
        "Build",
        "Golden tests",
        "Base",
        "Old code",
        "New code",
        "Waiting",
        "Other",
    ];

    /// All but the total.
    pub fn parts(self) -> [f64; 7] {
        let Seconds {
            build,
            golden,
            old,
            new,
            base,
            waiting,
            other,
            total: _,
        } = self;
        [build, golden, base, old, new, waiting, other]
    }
}

/// What was looked for in a sandbox of the old code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Leakage {
    /// Files that were looked at.
    pub searched: u64,
    /// Where the new code was found; empty is good.
    pub found: Vec<String>,
}
