//! The facts that `submit` gathers in the sandbox. The caller (the gate on the host) decides whether they
//! suffice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::outcomes::report::TestReport;
pub use crate::python::ContributedTest;
pub use crate::workspace::Change;

/// Facts about a submitted test patch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Submission {
    /// The patch for `git apply`: only test files and the files they need. Empty if nothing remains.
    pub patch: String,
    /// Every file that differs from the base commit, including those left out of the patch.
    pub files: Vec<ChangedFile>,
    /// Test functions that the patch adds or changes, found in the syntax trees before and after.
    pub contributed: Vec<ContributedTest>,
    /// Problems that are visible without running anything: see [`ProblemKind`].
    pub problems: Vec<Problem>,
    /// Report at the base commit on existing tests of the changed files that do not pass with the patch, if any.
    /// If one of them passed, this is the run of the whole files.
    pub before: Option<TestReport>,
    /// Report at the base commit on the tests that the patch changes, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_before: Option<TestReport>,
    /// Existing tests beside files of the patch that tests share, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<SiblingTests>,
    /// Report on the changed test files with the patch, on the old code; traced (`executed` is filled).
    pub old: TestReport,
    /// Reruns of the failing contributed tests, each under other conditions; empty if none failed.
    pub reruns: Vec<Rerun>,
    /// Frames in the record of a failing contributed test whose line the file does not have:
    /// `ID: FILE:LINE shows CODE, but the file has OTHER`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invented_frames: Vec<String>,
}

/// Outcomes of the tests that the patch leaves unchanged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SiblingTests {
    /// Files of the patch that these tests may use: `conftest.py`, `__init__.py`, helper modules, data.
    pub shared: Vec<String>,
    /// Outcomes at the base commit.
    pub before: TestReport,
    /// Outcomes with the patch.
    pub now: TestReport,
}

/// A file that differs from the base commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFile {
    /// Path relative to the workspace.
    pub path: String,
    /// Kind of difference from the base commit.
    pub change: Change,
    /// Whether the file is part of the patch.
    pub kept: bool,
    /// The reason why it is not, in a form that follows the path and a colon.
    #[serde(default)]
    pub reason: Option<String>,
}

/// A problem of a submission.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Category of the problem.
    pub kind: ProblemKind,
    /// Message for the model: the error and its place.
    pub text: String,
}

/// Category of a problem that is visible without running tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// The patch adds or changes no test function.
    NothingContributed,
    /// A skip or xfail mark, or a call of `pytest.skip`/`xfail`, in a contributed test.
    Vacuous,
    /// A `conftest.py` that affects more than the new tests.
    Conftest,
    /// Settings of a test runner, or a module that Python loads automatically.
    Settings,
    /// A new module that would be imported instead of another.
    Shadows,
    /// Existing tests were deleted.
    DeletedTests,
    /// A test file does not parse.
    Syntax,
    /// A file, or all of them together, with more bytes than a test patch may have.
    TooLarge,
}

/// Another run of the failing contributed tests, under other conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rerun {
    /// The conditions of the run. `given`, `reversed` and `alone` are the order of the tests, each with a random hash
    /// seed; `given` also has another user name and path of the home folder. `older`: the files are an hour older.
    /// `placebo`: the files are an hour older, and the code under test is changed without changing its meaning.
    pub order: String,
    /// Outcomes of the tests in this run.
    pub report: TestReport,
}

impl Rerun {
    /// [`Rerun::order`] of a run with older files.
    pub const OLDER: &'static str = "older";
    /// [`Rerun::order`] of a run with a placebo in the code under test.
    pub const PLACEBO: &'static str = "placebo";

    /// Returns whether the code under test had a placebo.
    pub fn has_placebo(&self) -> bool {
        self.order == Rerun::PLACEBO
    }

    /// Returns how the conditions differ from those of the first run, as a phrase for people.
    pub fn conditions(&self) -> &str {
        match self.order.as_str() {
            "given" => "another hash seed and user",
            "reversed" => "another hash seed, reversed order",
            "alone" => "another hash seed, each test alone",
            Rerun::OLDER => "files an hour older",
            Rerun::PLACEBO => "placebo in the code under test",
            other => other,
        }
    }
}
