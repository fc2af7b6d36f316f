//! The evidence for an accepted test.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_tools::outcomes::report::{Failure, FailureClass, Frame, Outcome, Phase};
use testwright_tools::outcomes::text::short_headline;
use testwright_tools::python::lines_in_words;

use crate::confidence::{ModelChecks, Opinion, Signals};

/// All evidence for the test; stored in `evidence.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Failing contributed tests.
    pub tests: Vec<TestEvidence>,
    /// Contributed tests that already pass on the old code.
    pub passing: Vec<String>,
    /// Wanted lines that these tests run, by file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub covered: BTreeMap<String, Vec<u32>>,
    /// Sentence of the issue that the failure corresponds to.
    pub issue_sentence: Option<String>,
    /// Explanation by the model.
    pub reason: Option<String>,
    /// Outcomes of the reruns, one line each: the conditions, and how many tests failed again.
    pub reruns: Vec<String>,
    /// Version of the Python interpreter that ran the tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// Effects of the candidate fixes, in their last form, on the tests. Each fix is tried in a temporary copy of the
    /// sandbox.
    pub fixes: Vec<FixTrial>,
    /// Opinion of the reviewer on the failure.
    pub review: Option<Review>,
    /// Number of reviews so far, those of earlier submissions included.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reviews: usize,
    /// Facts from which the confidence is estimated; `None` for tests that are wanted for coverage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signals: Option<Signals>,
    /// Extra inputs of the approach beyond the issue, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_inputs: Vec<String>,
    /// Changes omitted from the patch.
    pub dropped: Vec<String>,
    /// Number of model calls so far.
    pub steps: u32,
    /// All prompt tokens, including cached ones.
    pub prompt_tokens: u64,
    /// Prompt tokens served from the provider's cache.
    pub cached_tokens: u64,
    /// Tokens written by the model.
    pub completion_tokens: u64,
    /// Cost in US dollars; `None` if the model has no price.
    pub dollars: Option<f64>,
    /// Duration of the run in seconds.
    pub seconds: f64,
}

/// A failing contributed test on the old code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestEvidence {
    /// Node id, including parameters.
    pub id: String,
    /// Outcome: failed, or error.
    pub outcome: Outcome,
    /// Phase in which the test failed.
    pub phase: Phase,
    /// Class of the failure.
    pub class: FailureClass,
    /// Class of the exception.
    pub exception: String,
    /// Message of the exception.
    pub message: String,
    /// Frame in which the exception arose.
    pub frame: Option<Frame>,
    /// Name that does not exist yet, if the test fails because of that.
    pub missing_name: Option<String>,
    /// Files under test in which the test ran code.
    pub executed: Vec<String>,
    /// First and last lines of assertions that did not run because an earlier one failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreached: Vec<(usize, usize)>,
    /// Test code in which the test failed after the code under test had called it: `FUNCTION (FILE:LINE)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_double: Option<String>,
    /// Whether the failure is a warning that the project's settings turn into an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warning_as_error: bool,
}

/// The effect of a candidate fix.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FixTrial {
    /// The fix, as a diff.
    pub patch: String,
    /// Node ids and outcomes with the fix.
    pub outcomes: Vec<(String, Outcome)>,
    /// Whether the tests were the submitted ones; otherwise they were an earlier form.
    #[serde(default)]
    pub on_submitted_tests: bool,
    /// Reason why the trial says nothing about the tests, if there is one: an error raised by the fix itself or by the
    /// test runner, or a fix without effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crash: Option<String>,
    /// Failures of tests with the fix: `ID: FAILURE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// Existing tests that pass without the fix and fail with it: `ID: FAILURE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breaks: Vec<String>,
    /// Number of existing tests in the same files that ran with the fix and did not fail.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub existing_run: usize,
    /// Number of the `try_fix` call that tried the fix, counted within the run. Fixes of one call are variants of each
    /// other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<usize>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Begins the `crash` of a trial in which the test runner itself failed.
const NOT_TRIED: &str = "not tried: ";
/// Begins the `crash` of a trial whose edit changes no behaviour.
const NO_EFFECT: &str = "no effect: ";

impl FixTrial {
    /// Returns the `crash` of a trial whose edit changes no behaviour.
    pub fn without_effect() -> String {
        format!("{NO_EFFECT}only comments, docstrings or layout")
    }

    /// Returns the `crash` of a trial in which the test runner itself failed.
    pub fn not_tried(error: &str) -> String {
        format!("{NOT_TRIED}{error}")
    }

    /// Returns why the trial says nothing about the tests, as a clause and its details.
    pub fn crash_text(&self) -> Option<(&'static str, &str)> {
        let crash = self.crash.as_deref()?;
        if let Some(error) = crash.strip_prefix(NOT_TRIED) {
            return Some(("it could not be tried", error));
        }
        Some(match crash.strip_prefix(NO_EFFECT) {
            Some(details) => ("it changes no behaviour", details),
            None => ("the edit itself is wrong", crash),
        })
    }

    /// Returns whether the fix makes these tests pass and breaks nothing.
    pub fn is_valid_fix(&self, tests: &[TestEvidence]) -> bool {
        self.crash.is_none() && self.breaks.is_empty() && self.makes_pass(tests)
    }

    /// Returns whether all of these tests passed with the fix.
    pub fn makes_pass(&self, tests: &[TestEvidence]) -> bool {
        let ids: Vec<&str> = tests.iter().map(|test| test.id.as_str()).collect();
        self.passes(&ids)
    }

    /// Returns whether all tests with these ids passed with the fix.
    fn passes(&self, tests: &[&str]) -> bool {
        let passed = |test: &&str| {
            let mut outcomes = self.outcomes.iter();
            outcomes.any(|(id, outcome)| id == test && *outcome == Outcome::Passed)
        };
        !tests.is_empty() && tests.iter().all(passed)
    }
}

/// A reviewer's answer to the question whether the failure is the one in the issue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Review {
    /// Verdict of the reviewer.
    pub verdict: ReviewVerdict,
    /// Explanation by the reviewer.
    pub reason: String,
    /// Requirements of the tests beyond the issue, one assertion each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_requirements: Vec<String>,
}

/// The verdict of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReviewVerdict {
    /// The failure is the one in the issue.
    Yes,
    /// The failure is a different one.
    No,
    /// The reviewer cannot tell.
    Unsure,
    /// The answer has none of these words.
    Unreadable,
}

impl TestEvidence {
    /// Creates the evidence of a test from its failure alone, without the files in which it ran code.
    pub(crate) fn from_failure(id: &str, outcome: Outcome, failure: &Failure) -> TestEvidence {
        TestEvidence {
            id: id.to_owned(),
            outcome,
            phase: failure.phase,
            class: failure.class,
            exception: failure.exception.clone(),
            message: failure.message.clone(),
            frame: failure.origin().cloned(),
            missing_name: failure.missing_name.clone(),
            executed: Vec::new(),
            unreached: Vec::new(),
            test_double: (failure.raised_by_test_double())
                .map(|frame| format!("{} ({}:{})", frame.function, frame.file, frame.line)),
            warning_as_error: failure.is_turned_warning(),
        }
    }

    /// Returns `assertion in FUNCTION (FILE:LINE):`.
    pub fn origin(&self) -> String {
        let class = self.class_name();
        match &self.frame {
            Some(Frame {
                function,
                file,
                line,
                ..
            }) => format!("{class} in {function} ({file}:{line}):"),
            None => format!("{class}:"),
        }
    }

    fn class_name(&self) -> &'static str {
        match self.class {
            _ if self.warning_as_error => "warning turned into an error",
            FailureClass::Assertion => "assertion",
            FailureClass::Exception => "exception",
            FailureClass::Error => "error",
        }
    }

    /// Returns `assertion: AssertionError: message (file:line in function)`, on one line.
    pub fn line(&self) -> String {
        let mut line = format!("{}: {}", self.class_name(), self.exception);
        let message = short_headline(&self.message, 160);
        if !message.is_empty() {
            line.push_str(&format!(": {message}"));
        }
        if let Some(f) = &self.frame {
            line.push_str(&format!(" ({}:{} in {})", f.file, f.line, f.function));
        }
        line
    }

    /// Returns what the failure does not show, as a clause to append; empty if there is nothing.
    pub fn limits(&self) -> String {
        match lines_in_words(&self.unreached) {
            lines if lines.is_empty() => lines,
            lines => format!("; not reached, so not shown to be right: {lines}"),
        }
    }
}

impl Evidence {
    /// Estimates the probability that the test is a true fail-to-pass test; `None` without signals.
    pub fn confidence(&self) -> Option<f64> {
        let signals = self.signals.as_ref()?;
        Some(signals.probability(&self.model_checks()))
    }

    /// Returns whether a candidate fix was tried on the submitted tests, or a reviewer read them.
    pub fn is_checked(&self) -> bool {
        self.model_checks() != ModelChecks::default()
    }

    fn model_checks(&self) -> ModelChecks {
        let tests: Vec<&str> = self.tests.iter().map(|test| test.id.as_str()).collect();
        model_checks(&self.fixes, self.review.as_ref(), &tests)
    }

    /// Returns the reasons for doubt; never empty.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let checks = self.model_checks();
        let missed = checks.fixes_failed;
        let tried = checks.fixes_held + missed;
        match (tried, missed) {
            (0, _) => doubts.push("no candidate fix was tried on it".to_owned()),
            (_, 0) => {}
            (1, _) => doubts.push(
                "the candidate fix does not make it pass, or breaks existing tests".to_owned(),
            ),
            (tried, _) => doubts.push(format!(
                "{missed} of {tried} candidate fixes do not make it pass, or break existing tests"
            )),
        }
        let opinion = match self.review.as_ref() {
            None => "no reviewer read it",
            Some(review) => match review.verdict {
                ReviewVerdict::Yes if review.extra_requirements.is_empty() => "",
                ReviewVerdict::Yes => {
                    "the reviewer finds that it asks for more than the issue does"
                }
                ReviewVerdict::No => "the reviewer doubts it",
                ReviewVerdict::Unsure => "the reviewer is not sure of it",
                ReviewVerdict::Unreadable => "the reviewer's answer cannot be read",
            },
        };
        doubts.extend((!opinion.is_empty()).then(|| opinion.to_owned()));
        if doubts.is_empty() {
            let checks = tried + usize::from(checks.opinion.is_some());
            doubts.push(format!(
                "nothing speaks against it, but only {checks} checks were made"
            ));
        }
        doubts
    }

    /// Returns the first failing test and the number of others, in one line.
    pub fn headline(&self) -> String {
        match self.tests.as_slice() {
            [] => "no failing test".to_owned(),
            [test] => format!("{} fails ({})", test.id, test.line()),
            [test, rest @ ..] => {
                format!("{} and {} more fail ({})", test.id, rest.len(), test.line())
            }
        }
    }
}

/// Summarizes what a model says about failing tests. Variants of one fix count as one fix, which holds if one of them
/// does. Fixes that crash, or that were tried on an earlier form of the tests, do not count.
pub fn model_checks(fixes: &[FixTrial], review: Option<&Review>, tests: &[&str]) -> ModelChecks {
    let mut counted: Vec<(Option<usize>, bool)> = Vec::new();
    let fixes = fixes.iter();
    for fix in fixes.filter(|fix| fix.on_submitted_tests && fix.crash.is_none()) {
        let holds = fix.breaks.is_empty() && fix.passes(tests);
        let mut variants = counted.iter_mut();
        match variants.find(|(origin, _)| origin.is_some() && *origin == fix.origin) {
            Some((_, held)) => *held |= holds,
            None => counted.push((fix.origin, holds)),
        }
    }
    let opinion = review.and_then(|review| match review.verdict {
        ReviewVerdict::Yes if review.extra_requirements.is_empty() => Some(Opinion::Yes),
        ReviewVerdict::Yes => Some(Opinion::Beyond),
        ReviewVerdict::Unsure => Some(Opinion::Unsure),
        ReviewVerdict::No => Some(Opinion::No),
        ReviewVerdict::Unreadable => None,
    });
    let fixes_held = counted.iter().filter(|(_, held)| *held).count();
    ModelChecks {
        fixes_held,
        fixes_failed: counted.len() - fixes_held,
        opinion,
    }
}

#[cfg(test)]
mod tests;
