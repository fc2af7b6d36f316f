//! The report of one test run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One run of pytest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestReport {
    /// The tests that ran, in the order in which they ran.
    pub tests: Vec<TestResult>,
    /// Modules that could not be collected (import errors, syntax errors, broken conftest files).
    pub collection_errors: Vec<CollectionError>,
    /// Requested node ids that pytest did not find.
    pub not_found: Vec<String>,
    /// pytest's exit status; `None` if it was ended by a signal or by the deadline.
    pub exit_code: Option<i32>,
    /// Whether the deadline passed before the run ended.
    pub timed_out: bool,
    /// Whether the tests after the first ones exceeded their time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rest_timed_out: bool,
    /// Whether the record contradicts the process: tests failed in the record, but pytest's exit status says that none
    /// did; or tests were recorded after the end. Then the record must not be trusted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contradicted: bool,
    /// The code that decides outcomes and that the tests replaced, if this was checked. Then the record must not be
    /// trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tampered: Option<String>,
    /// Error of pytest, of a plugin, or of testwright itself. Then missing outcomes say nothing about the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_error: Option<String>,
    /// Warnings from the repository's own code while tests ran; needs pytest 3.8 or later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<WarningLine>,
    /// pytest's printed output, cut in the middle to a few thousand characters: for reading, never
    /// for verdicts.
    pub printed: String,
    /// Seconds of wall time.
    pub seconds: f64,
}

/// Equal warnings from one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WarningLine {
    /// Name of the warning's class.
    pub category: String,
    /// Text of the warning, cut.
    pub message: String,
    /// Path relative to the workspace.
    pub file: String,
    /// Line number, from 1.
    pub line: u32,
    /// Number of occurrences.
    pub count: u32,
}

/// The result of one test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestResult {
    /// pytest's node id, including all parameters.
    pub id: String,
    /// Outcome over all phases of the test.
    pub outcome: Outcome,
    /// The failure; `None` for a test that did not fail.
    pub failure: Option<Failure>,
    /// Captured stdout, stderr and log of this test, cut. For a skipped or unfinished test, the reason. Empty for a
    /// test that passed.
    #[serde(default)]
    pub captured: String,
    /// Duration of all phases, in seconds.
    pub seconds: f64,
    /// Repository files, except test code, of which this test or its Python child processes ran a function. Filled if
    /// the run was told to trace. Paths are relative to the workspace.
    #[serde(default)]
    pub executed: Vec<String>,
}

impl TestResult {
    /// Creates a result with only an outcome.
    pub fn new(id: &str, outcome: Outcome) -> Self {
        TestResult {
            id: id.to_owned(),
            outcome,
            failure: None,
            captured: String::new(),
            seconds: 0.0,
            executed: Vec::new(),
        }
    }
}

/// The outcome of a test, in pytest's terms.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// All phases passed.
    Passed,
    /// The call phase failed.
    Failed,
    /// Setup or teardown failed, or the module could not be collected.
    Error,
    /// The test or its module was skipped.
    Skipped,
    /// The test failed, as its xfail mark expects.
    Xfailed,
    /// The test passed although its xfail mark expects a failure.
    Xpassed,
    /// The test was requested but did not run: the process died or the deadline passed.
    Absent,
}

/// The phase of a test run in which a failure occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Collection, which imports the test modules.
    Collect,
    /// Setup of fixtures.
    Setup,
    /// The test itself.
    Call,
    /// Teardown of fixtures.
    Teardown,
}

/// The class of a failure on the old code (Otter §5.3 counts the same classes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FailureClass {
    /// An assert, `pytest.raises` or an assertion helper did not hold.
    Assertion,
    /// Raised by the code under test.
    Exception,
    /// Collection, import, fixture or syntax error, a wrong name in the test itself, or a timeout.
    Error,
}

/// The failure of a test, or of a collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Phase in which the failure occurred.
    pub phase: Phase,
    /// Class of the failure, by its exception and traceback.
    pub class: FailureClass,
    /// Qualified name of the exception's class, e.g. `AssertionError` or `requests.exceptions.InvalidURL`.
    pub exception: String,
    /// The exception's message, cut; memory addresses and temporary paths are made stable.
    pub message: String,
    /// Frames of the traceback, outermost first, without those of pytest and its plugins.
    pub frames: Vec<Frame>,
    /// The missing name, if test code raised the failure: the name or module of an `ImportError`, the attribute of an
    /// `AttributeError`, the name of a `NameError`, or the unexpected keyword of a `TypeError`. The gate checks whether
    /// the issue mentions it.
    #[serde(default)]
    pub missing_name: Option<String>,
}

impl Failure {
    /// Returns the frame where the failure arose: the innermost frame of the repository, or else the innermost of all.
    /// An assertion failure arose in the test, however deep in helpers.
    pub fn origin(&self) -> Option<&Frame> {
        let mut frames = self.frames.iter().rev();
        let of_test = match self.class {
            FailureClass::Assertion => frames.clone().find(|frame| frame.place == Place::Test),
            FailureClass::Exception | FailureClass::Error => None,
        };
        of_test
            .or_else(|| frames.find(|frame| frame.place != Place::External))
            .or(self.frames.last())
    }

    /// Returns the frames without the assertion helpers that the test calls, such as pytest's own matchers in its own
    /// repository.
    pub fn frames_of_interest(&self) -> &[Frame] {
        let is_test = |frame: &Frame| frame.place == Place::Test;
        match (self.class, self.frames.iter().rposition(is_test)) {
            (FailureClass::Assertion, Some(last)) => &self.frames[..=last],
            _ => &self.frames,
        }
    }

    /// Returns the test's own code that raised the exception, if the code under test called it. The body of a decorated
    /// test (`@given`) stands for nothing else: test code called its wrapper.
    pub fn raised_by_test_double(&self) -> Option<&Frame> {
        let frames = self.frames.iter();
        let repository = frames.filter(|frame| frame.place != Place::External);
        let repository: Vec<&Frame> = repository.collect();
        let [.., caller, last] = repository[..] else {
            return None;
        };
        let name = |frame: &Frame| frame.function.rsplit('.').next().map(str::to_owned);
        let is_wrapper = |at: usize| {
            let frame = repository[at];
            let is_called_by_test = at == 0 || repository[at - 1].place == Place::Test;
            is_called_by_test && frame.file == last.file && name(frame) == name(last)
        };
        let is_wrapped = (0..repository.len() - 1).any(is_wrapper);
        let is_called_by_code = last.place == Place::Test && caller.place == Place::Source;
        (is_called_by_code && !is_wrapped).then_some(last)
    }

    /// Returns whether the failure is a warning that settings turned into an error, rather than one that `raise`
    /// raised.
    pub fn is_turned_warning(&self) -> bool {
        let is_raised = |frame: &Frame| frame.code.starts_with("raise");
        self.class != FailureClass::Assertion
            && self.exception.ends_with("Warning")
            && !self.frames.last().is_some_and(is_raised)
    }
}

/// A frame of a traceback.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Frame {
    /// Path relative to the workspace, or to site-packages or the standard library for external code.
    pub file: String,
    /// Line number, from 1; 0 if it is unknown.
    pub line: u32,
    /// Name of the function, qualified on Python 3.11 and later.
    pub function: String,
    /// The source line, stripped.
    pub code: String,
    /// Kind of code that the frame runs.
    pub place: Place,
}

/// The kind of code that a frame runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// A test file of the repository, or its test support code.
    Test,
    /// Code under test.
    Source,
    /// Standard library or site-packages.
    External,
}

/// A file or package that could not be collected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectionError {
    /// Node id of the file (or package) that could not be collected.
    pub id: String,
    /// The exception that prevented the collection.
    pub failure: Failure,
}

/// Returns whether a text contains a missing name (see [`Failure::missing_name`]) as a whole word, so that an issue
/// asks for it.
pub fn is_named_in(missing_name: &str, text: &str) -> bool {
    let last = missing_name.rsplit('.').next().unwrap_or(missing_name);
    !last.is_empty()
        && text.match_indices(last).any(|(at, _)| {
            let word = |c: char| c.is_alphanumeric() || c == '_';
            !text[..at].chars().next_back().is_some_and(word)
                && !text[at + last.len()..].chars().next().is_some_and(word)
        })
}

/// Returns whether a node id belongs to a test: `path::Class::function[parameters]` belongs to `path::Class::function`.
pub fn belongs_to_test(id: &str, test: &str) -> bool {
    id.strip_prefix(test)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
}

#[cfg(test)]
mod tests;
