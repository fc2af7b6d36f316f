//! What `submit` finds out in the sandbox. The facts are gathered here; whether they suffice is
//! decided by the caller (the gate on the host).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::outcomes::report::Report;
pub use crate::python::ContributedTest;
pub use crate::workspace::Change;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Submission {
    /// The patch for `git apply`: test files and what they need, nothing else. Empty if nothing is left.
    pub patch: String,
    /// Every file that differs from the base commit, also those that were left out of the patch.
    pub files: Vec<ChangedFile>,
    /// Test functions that the patch adds or changes, from the syntax trees before and after.
    pub contributed: Vec<ContributedTest>,
    /// What can be seen without running anything: see [`ProblemKind`].
    pub problems: Vec<Problem>,
    /// Existing tests of the changed files that do not pass with the patch, as they were at the base commit;
    /// `None` if there are none. If one of them passed, this is the run of the whole files.
    pub before: Option<Report>,
    /// The tests that the patch changes, as they were at the base commit; `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_before: Option<Report>,
    /// Existing tests beside files of the patch that tests share; `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<SiblingTests>,
    /// The changed test files with the patch, on the old code; traced (`executed` is filled).
    pub old: Report,
    /// The failing contributed tests again, each time under other conditions; empty if none failed.
    pub reruns: Vec<Rerun>,
}

/// How tests do that the patch leaves as they are, by outcomes alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SiblingTests {
    /// Files of the patch that these tests may use: `conftest.py`, `__init__.py`, modules of helpers, data.
    pub shared: Vec<String>,
    /// At the base commit.
    pub before: Report,
    /// With the patch.
    pub now: Report,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFile {
    pub path: String,
    pub change: Change,
    /// It is part of the patch.
    pub kept: bool,
    /// Why it is not kept, fit to follow the path and a colon.
    #[serde(default)]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    pub kind: ProblemKind,
    /// For the model: what is wrong and where.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// No test function was added or changed.
    NothingContributed,
    /// A skip or xfail mark, or a call of `pytest.skip`/`xfail`, in a contributed test.
    Vacuous,
    /// A `conftest.py` that reaches beyond the new tests.
    Conftest,
    /// Settings of a test runner, or what Python loads by itself.
    Settings,
    /// A new module that would be imported in the place of another.
    Shadows,
    /// Existing tests were deleted.
    DeletedTests,
    /// A test file does not parse.
    Syntax,
    /// A file, or all of them together, with more bytes than a test patch may have.
    TooLarge,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rerun {
    /// `PYTHONHASHSEED` of the run.
    pub hash_seed: u32,
    /// The order in which the tests ran: `given`, `reversed`, or `alone`.
    pub order: String,
    pub report: Report,
}
