//! The evidence on a given test, as structured data.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::Tree;
use testwright_tools::outcomes::report::{
    FailureClass, Frame, Place, belongs_to_test, is_named_in,
};
use testwright_tools::outcomes::text::headline;
use testwright_tools::python::{Module, flatten, unrelated_inputs};
use testwright_tools::tools::submission::Submission;

use crate::confidence::{ModelChecks, Opinion, Signals};
use crate::gate::{self, Finding, FixTrial, Review, TestEvidence, Verdict};

/// Minimum characters of a message, or of a quoted value in it, to look for in the issue.
const MIN_MESSAGE_LEN: usize = 4;

/// The gate's verdict on a given test, and its evidence.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckEvidence {
    /// Whether the test fails on the old code for a sound reason, and again in every rerun.
    pub accepted: bool,
    /// Reason why the test could not be run, such as a patch that does not apply. The other fields are then empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Problems with the test; empty if it is accepted.
    pub findings: Vec<Finding>,
    /// The failing tests.
    pub failing: Vec<FailureEvidence>,
    /// Tests of the patch that already pass on the old code.
    pub passing: Vec<String>,
    /// Parts of the patch that were dropped, with reasons.
    pub dropped: Vec<String>,
    /// Notes that are not faults, but worth a second look.
    pub notes: Vec<String>,
    /// Effects of a model's candidate fixes on the test; empty without a model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<FixTrial>,
    /// Opinion of the reviewer; `None` without a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    /// Probability, from 0 to 1, that the test fails for the reason of the issue and passes once the issue is fixed.
    #[serde(default = "unknown_probability")]
    pub probability: f64,
    /// Facts from which the probability is estimated.
    #[serde(default)]
    pub signals: Signals,
    /// Test as the gate ran it, as a patch for `git apply`.
    pub patch: String,
}

/// A failing test on the old code, and how its failure relates to the issue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailureEvidence {
    /// Node id, including parameters.
    pub id: String,
    /// Description of the failure.
    pub fails: String,
    /// Class of the failure.
    pub class: FailureClass,
    /// Class of the exception.
    pub exception: String,
    /// First line of the exception's message.
    pub message: String,
    /// Frame in which the exception arose.
    pub frame: Option<Frame>,
    /// Whether the issue names the exception.
    pub exception_in_issue: bool,
    /// Whether the issue contains the message, or a quoted value of it with at least 4 characters.
    pub message_in_issue: bool,
    /// Classes and functions under test that the issue names, if the exception arose in them or the test names them.
    pub code_in_issue: Vec<String>,
    /// Sentence of the issue that the failure corresponds to.
    pub issue_sentence: Option<String>,
    /// Number of files under test in which the test ran code.
    pub files_run: usize,
    /// Whether the test reads something that no behaviour depends on, such as the host's name; a note names it.
    #[serde(default)]
    pub unrelated_inputs: bool,
    /// Code that the test replaces while it runs, such as `pkg.module.function`.
    #[serde(default)]
    pub replaced_code: Vec<String>,
    /// Reruns of the unchanged code under other conditions.
    pub reruns: Vec<RerunEvidence>,
    /// Whether the test failed again with a placebo in the code under test (an edit that does not change its meaning);
    /// `None` if no such run was completed.
    pub placebo_held: Option<bool>,
}

/// The outcome of a failing test in a rerun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RerunEvidence {
    /// Differences from the conditions of the first run.
    pub conditions: String,
    /// Whether the test failed again.
    pub failed_again: bool,
}

impl CheckEvidence {
    /// Gathers the evidence on a submission that the gate has judged, but for the probability.
    pub(super) fn without_probability(
        submission: &Submission,
        verdict: &Verdict,
        issue: &str,
        tree: &Tree,
    ) -> Result<Self, SandboxError> {
        let definitions = definitions_in_issue(&verdict.failing, issue, tree)?;
        let failing = verdict.failing.iter();
        Ok(CheckEvidence {
            accepted: verdict.accepted(),
            refused: None,
            failing: failing
                .map(|test| FailureEvidence::new(test, submission, issue, &definitions))
                .collect(),
            findings: verdict.findings.clone(),
            passing: verdict.passing.clone(),
            dropped: verdict.dropped.clone(),
            notes: verdict.notes.clone(),
            patch: submission.patch.clone(),
            ..CheckEvidence::default()
        })
    }

    /// Returns whether the test is accepted and has at least the minimum probability.
    pub fn is_kept(&self, minimum: Option<f64>) -> bool {
        self.accepted && minimum.is_none_or(|minimum| self.probability >= minimum)
    }

    /// Returns the verdict in words. A test with a lower probability than the minimum is withheld.
    pub fn verdict(&self, minimum: Option<f64>) -> &'static str {
        match (self.accepted, self.is_kept(minimum)) {
            (true, true) if self.is_doubted() => "accepted by the gate but doubted",
            (true, true) => "accepted",
            (true, false) => "withheld",
            (false, _) => "not accepted",
        }
    }

    /// Returns whether a model's checks contradict the gate: no candidate fix holds, or the reviewer finds that the
    /// failure is a different one.
    pub fn is_doubted(&self) -> bool {
        let checks = self.model_checks();
        let no_fix_holds = checks.fixes_held == 0 && checks.fixes_failed > 0;
        no_fix_holds || checks.opinion == Some(Opinion::No)
    }

    /// Computes the probability from the signals, the fixes and the review.
    pub(crate) fn estimate_probability(&mut self) {
        self.probability = self.signals.probability(&self.model_checks());
    }

    fn model_checks(&self) -> ModelChecks {
        let tests: Vec<&str> = self.failing.iter().map(|test| test.id.as_str()).collect();
        gate::model_checks(&self.fixes, self.review.as_ref(), &tests)
    }

    /// Returns the evidence on a test that cannot be run.
    pub fn refused(reason: String) -> Self {
        let mut evidence = CheckEvidence {
            refused: Some(reason),
            ..CheckEvidence::default()
        };
        evidence.estimate_probability();
        evidence
    }
}

impl FailureEvidence {
    fn new(
        test: &TestEvidence,
        submission: &Submission,
        issue: &str,
        definitions: &BTreeMap<&str, Vec<String>>,
    ) -> Self {
        let mut contributed = submission.contributed.iter();
        let own = contributed.find(|own| belongs_to_test(&test.id, &own.id));
        let source = own.map_or("", |own| own.source.as_str());
        let words = format!("{} {} {} {source}", test.exception, test.message, test.id);
        let message = headline(&test.message);
        let is_long = message.chars().count() >= MIN_MESSAGE_LEN;
        let reruns = gate::failed_again(submission, &test.id);
        FailureEvidence {
            id: test.id.clone(),
            fails: format!("{}{}", test.line(), test.limits()),
            class: test.class,
            exception: test.exception.clone(),
            message: message.to_owned(),
            frame: test.frame.clone(),
            exception_in_issue: is_named_in(&test.exception, issue),
            message_in_issue: (is_long && issue.contains(message))
                || gate::longest_quotation(issue, &test.message, MIN_MESSAGE_LEN).is_some(),
            code_in_issue: code_in_issue(test, source, issue, definitions),
            issue_sentence: gate::best_sentence(issue, &words),
            files_run: test.executed.len(),
            unrelated_inputs: !unrelated_inputs(source).is_empty(),
            replaced_code: own.map_or_else(Vec::new, |own| own.replaced_code.clone()),
            reruns: reruns
                .map(|(rerun, failed_again)| RerunEvidence {
                    conditions: rerun.conditions().to_owned(),
                    failed_again,
                })
                .collect(),
            placebo_held: gate::holds_placebo(submission, &test.id),
        }
    }

    /// Returns the sentence of the issue in quotation marks, or says that no sentence matches.
    pub fn sentence_text(&self) -> String {
        match &self.issue_sentence {
            Some(sentence) => format!("“{sentence}”"),
            None => "no sentence matches the failure".to_owned(),
        }
    }
}

/// Returns the probability of a record without one: that of a test which was not checked.
fn unknown_probability() -> f64 {
    1.0
}

/// Returns the names of the classes and functions that the issue names, by file that a failing test ran.
fn definitions_in_issue<'a>(
    failing: &'a [TestEvidence],
    issue: &str,
    tree: &Tree,
) -> Result<BTreeMap<&'a str, Vec<String>>, SandboxError> {
    let mut definitions: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for path in failing.iter().flat_map(|test| &test.executed) {
        if definitions.contains_key(path.as_str()) {
            continue;
        }
        let text = tree.text(path)?.unwrap_or_default();
        let outline = Module::parse(&text).outline();
        let names = flatten(&outline).into_iter().map(|found| &found.name);
        let names = names.filter(|name| is_named_in(name, issue)).cloned();
        definitions.insert(path.as_str(), names.collect());
    }
    Ok(definitions)
}

/// Returns the code under test that the issue names, and that raised the exception or is named in the test's `source`.
fn code_in_issue(
    test: &TestEvidence,
    source: &str,
    issue: &str,
    definitions: &BTreeMap<&str, Vec<String>>,
) -> Vec<String> {
    let frame = test.frame.iter().find(|frame| frame.place == Place::Source);
    let raised_in = frame.and_then(|frame| frame.function.rsplit('.').next());
    // Tracebacks name `<module>` and `<lambda>`.
    let raised_in = raised_in.filter(|name| !name.starts_with('<') && is_named_in(name, issue));
    let executed = test.executed.iter();
    let defined = executed.filter_map(|path| definitions.get(path.as_str()));
    let used = defined.flatten().filter(|name| is_named_in(name, source));
    let names: BTreeSet<&str> = used.map(String::as_str).chain(raised_in).collect();
    names.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
