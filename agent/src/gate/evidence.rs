//! The evidence that comes with an accepted test.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_tools::outcomes::report::{FailureClass, Frame, Outcome, Phase};

/// Everything that speaks for the test; `evidence.json` holds it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The failing contributed tests.
    pub tests: Vec<TestEvidence>,
    /// Contributed tests that pass on the old code already.
    pub passing: Vec<String>,
    /// By file: lines that tests were wanted for and that these run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub covered: BTreeMap<String, Vec<u32>>,
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
    /// What the approach was given beyond the issue, where it was given anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<String>,
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// It is a warning, which the project's settings turn into an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub turned_warning: bool,
}

/// What a candidate fix did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// How many existing tests of the same files ran with it and did not fail.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub existing_run: usize,
    /// Which call of `try_fix` in the run the edit came from: those of one call are variants of each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<usize>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl FixTrial {
    /// It cures these tests, and breaks nothing.
    pub fn holds(&self, tests: &[TestEvidence]) -> bool {
        self.crash.is_none() && self.breaks.is_empty() && self.cures(tests)
    }

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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Review {
    pub verdict: ReviewVerdict,
    /// The reviewer's words.
    pub reason: String,
    /// What the tests ask for beyond the issue, one assertion each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beyond: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
            _ if self.turned_warning => "warning turned into an error",
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
    /// How much of what was checked beyond the gate speaks for the test, by the rule of succession: (held + 1) / (checked + 2),
    /// where the checks are the reviewer's verdict and each candidate fix that was tried on the submitted tests; variants of
    /// one fix are one check. It puts tests in an order; it is not a calibrated probability.
    pub fn confidence(&self) -> f64 {
        let checks = self.checks();
        (checks.iter().sum::<f64>() + 1.0) / (checks.len() as f64 + 2.0)
    }

    /// How far each check holds, from 0 to 1.
    fn checks(&self) -> Vec<f64> {
        let opinion = (self.review.as_ref()).and_then(|review| match review.verdict {
            ReviewVerdict::Yes if review.beyond.is_empty() => Some(1.0),
            ReviewVerdict::Yes | ReviewVerdict::Unsure => Some(0.5),
            ReviewVerdict::No => Some(0.0),
            ReviewVerdict::Unreadable => None,
        });
        let fixes = self.fixes_held().into_iter();
        let held = fixes.map(|holds| if holds { 1.0 } else { 0.0 });
        held.chain(opinion).collect()
    }

    /// Does it hold, of each fix that was tried on the submitted tests? Of variants one is enough.
    fn fixes_held(&self) -> Vec<bool> {
        let mut found: Vec<(Option<usize>, bool)> = Vec::new();
        for fix in self.fixes_on_submitted_tests() {
            let holds = fix.holds(&self.tests);
            let mut variants = found.iter_mut();
            match variants.find(|(origin, _)| origin.is_some() && *origin == fix.origin) {
                Some((_, held)) => *held |= holds,
                None => found.push((fix.origin, holds)),
            }
        }
        found.into_iter().map(|(_, held)| held).collect()
    }

    /// What speaks against the test, or fails to speak for it; never empty.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let held = self.fixes_held();
        let missed = held.iter().filter(|holds| !**holds).count();
        match (held.len(), missed) {
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
                ReviewVerdict::Yes if review.beyond.is_empty() => "",
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
            let checks = self.checks().len();
            doubts.push(format!(
                "nothing speaks against it, but it had {checks} checks only"
            ));
        }
        doubts
    }

    fn fixes_on_submitted_tests(&self) -> impl Iterator<Item = &FixTrial> {
        let fixes = self.fixes.iter();
        fixes.filter(|fix| fix.on_submitted_tests && fix.crash.is_none())
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(fixes: &[(Option<usize>, Outcome)], review: Option<Review>) -> Evidence {
        let id = "t.py::test_a".to_owned();
        let fixes = fixes.iter().map(|(origin, outcome)| FixTrial {
            outcomes: vec![(id.clone(), *outcome)],
            on_submitted_tests: true,
            origin: *origin,
            ..FixTrial::default()
        });
        Evidence {
            fixes: fixes.collect(),
            tests: vec![TestEvidence {
                id: id.clone(),
                outcome: Outcome::Failed,
                phase: Phase::Call,
                class: FailureClass::Assertion,
                exception: "AssertionError".to_owned(),
                message: String::new(),
                frame: None,
                missing_name: None,
                executed: Vec::new(),
                unreached: Vec::new(),
                stand_in: None,
                turned_warning: false,
            }],
            review,
            ..Evidence::default()
        }
    }

    fn review(verdict: ReviewVerdict, beyond: &[&str]) -> Option<Review> {
        Some(Review {
            verdict,
            reason: String::new(),
            beyond: beyond.iter().map(|line| (*line).to_owned()).collect(),
        })
    }

    #[test]
    fn variants_of_one_fix_are_one_check_and_one_that_holds_is_enough() {
        use Outcome::{Failed, Passed};
        let variants = [(Some(4), Failed), (Some(4), Passed), (Some(4), Failed)];
        let found = evidence(&variants, None);
        assert_eq!(found.confidence(), 2.0 / 3.0);
        assert_eq!(found.doubts(), ["no reviewer read it"]);
        // Fixes of two calls, or of calls that are not known, stand alone.
        let others = [(Some(4), Passed), (Some(5), Failed)];
        assert_eq!(evidence(&others, None).confidence(), 0.5);
        let unknown = [(None, Passed), (None, Failed), (None, Failed)];
        assert_eq!(evidence(&unknown, None).confidence(), 0.4);
    }

    #[test]
    fn a_reviewer_who_finds_more_than_the_issue_asks_for_is_half_content() {
        let one = [(Some(0), Outcome::Passed)];
        let found = evidence(&one, review(ReviewVerdict::Yes, &["the order"]));
        assert_eq!(found.confidence(), 2.5 / 4.0);
        assert_eq!(
            found.doubts(),
            ["the reviewer finds that it asks for more than the issue does"]
        );
    }

    #[test]
    fn where_nothing_speaks_against_it_the_number_of_checks_is_told() {
        let one = [(Some(0), Outcome::Passed)];
        let found = evidence(&one, review(ReviewVerdict::Yes, &[]));
        assert_eq!(found.confidence(), 0.75);
        assert_eq!(
            found.doubts(),
            ["nothing speaks against it, but it had 2 checks only"]
        );
    }
}
