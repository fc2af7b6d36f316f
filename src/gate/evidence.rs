//! The evidence that comes with an accepted test.

use serde::{Deserialize, Serialize};
use testwright_tools::outcomes::report::{FailureClass, Frame, Outcome, Phase};

/// Everything that speaks for the test; `evidence.json` holds it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The failing contributed tests.
    pub tests: Vec<TestEvidence>,
    /// Contributed tests that pass on the old code already.
    pub passing: Vec<String>,
    /// The sentence of the issue that the failure answers to.
    pub issue_sentence: Option<String>,
    /// The model's own words on it.
    pub reason: Option<String>,
    /// Outcomes of the reruns, one line each: hash seed, order, how many failed again.
    pub reruns: Vec<String>,
    /// Version of the Python that ran the tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// What the last forms of the candidate fixes did to the tests, each in a copy of the sandbox that was thrown away.
    pub fixes: Vec<FixTrial>,
    /// The reviewer's reading of the failure.
    pub review: Option<Review>,
    /// Changes that were left out of the patch.
    pub dropped: Vec<String>,
    /// Model calls so far.
    pub steps: u32,
    /// All prompt tokens, cached ones included.
    pub prompt_tokens: u64,
    /// Prompt tokens that came from the provider's cache.
    pub cached_tokens: u64,
    /// Tokens that the model wrote.
    pub completion_tokens: u64,
    /// `None` where the model has no price.
    pub dollars: Option<f64>,
    /// Seconds of the run.
    pub seconds: f64,
}

/// One failing contributed test on the old code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestEvidence {
    /// Node id, parameters included.
    pub id: String,
    /// Failed, or error.
    pub outcome: Outcome,
    /// Where it failed.
    pub phase: Phase,
    pub class: FailureClass,
    /// Class of the exception.
    pub exception: String,
    /// Message of the exception.
    pub message: String,
    /// The frame where it arose.
    pub frame: Option<Frame>,
    /// A name that does not exist yet, where that is the failure.
    pub missing_name: Option<String>,
    /// Files under test in which it ran code.
    pub executed: Vec<String>,
    /// First and last lines of assertions that did not run, since one before them failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreached: Vec<(usize, usize)>,
    /// Code of the test itself, called by the code under test, in which it failed: `FUNCTION (FILE:LINE)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<String>,
}

/// What a candidate fix did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FixTrial {
    /// The edit as a diff.
    pub patch: String,
    /// Node id and outcome with the edit.
    pub outcomes: Vec<(String, Outcome)>,
    /// The tests were those that were submitted; else an earlier form of them.
    #[serde(default)]
    pub on_submitted_tests: bool,
    /// The edit itself raised this, so the trial says nothing of the tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crash: Option<String>,
    /// How tests still fail with it: `ID: FAILURE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// Existing tests that pass without it and fail with it: `ID: FAILURE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breaks: Vec<String>,
}

impl FixTrial {
    /// Every one of these tests passed with the edit.
    pub fn cures(&self, tests: &[TestEvidence]) -> bool {
        !tests.is_empty()
            && tests.iter().all(|test| {
                self.outcomes
                    .iter()
                    .any(|(id, outcome)| *id == test.id && *outcome == Outcome::Passed)
            })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Review {
    pub verdict: ReviewVerdict,
    /// The reviewer's words.
    pub reason: String,
    /// What the tests ask for beyond the issue, one assertion each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beyond: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReviewVerdict {
    Yes,
    No,
    Unsure,
    /// The answer holds none of these.
    Unreadable,
}

impl TestEvidence {
    /// `assertion in FUNCTION (FILE:LINE):`
    pub fn origin(&self) -> String {
        match &self.frame {
            Some(frame) => format!(
                "{} in {} ({}:{}):",
                self.class_name(),
                frame.function,
                frame.file,
                frame.line
            ),
            None => format!("{}:", self.class_name()),
        }
    }

    fn class_name(&self) -> &'static str {
        match self.class {
            FailureClass::Assertion => "assertion",
            FailureClass::Exception => "exception",
            FailureClass::Error => "error",
        }
    }

    /// `assertion: AssertionError: message (file:line in function)`, on one line.
    pub fn line(&self) -> String {
        let mut line = format!("{}: {}", self.class_name(), self.exception);
        let message = self.message.lines().next().unwrap_or_default().trim();
        if !message.is_empty() {
            line.push_str(": ");
            line.extend(message.chars().take(160));
        }
        if let Some(frame) = &self.frame {
            line.push_str(&format!(
                " ({}:{} in {})",
                frame.file, frame.line, frame.function
            ));
        }
        line
    }
}

impl TestEvidence {
    /// What its failure does not show, as a sentence that follows it; empty where there is nothing.
    pub fn limits(&self) -> String {
        let lines: Vec<String> = (self.unreached.iter())
            .map(|(first, last)| match last - first {
                0 => format!("line {first}"),
                _ => format!("lines {first}–{last}"),
            })
            .collect();
        match lines.len() {
            0 => String::new(),
            _ => format!(
                "; not reached, so not shown to be right: {}",
                lines.join(", ")
            ),
        }
    }
}

impl Evidence {
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
