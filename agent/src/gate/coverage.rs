//! The decision on a test that is wanted for coverage. Only test files change; the test passes, breaks
//! nothing and asserts something; and every wanted line runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use testwright_tools::outcomes::report::{Outcome, TestReport, TestResult, belongs_to_test};
use testwright_tools::outcomes::text::headline;
use testwright_tools::python::contains_check;
use testwright_tools::tools::cover::CoverResult;
use testwright_tools::tools::submission::{ContributedTest, Submission};

use super::case::{Case, contributed};
use super::rules::{self, Finding, Rule};

/// Maximum number of missed ranges to list.
const MAX_LISTED_RANGES: usize = 20;

/// The gate's decision on a test that is wanted for coverage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoverageVerdict {
    /// Findings; empty if the submission is accepted.
    pub findings: Vec<Finding>,
    /// Changes omitted from the patch, as `path: reason`.
    pub dropped: Vec<String>,
    /// Contributed tests that pass.
    pub passing: Vec<String>,
    /// Wanted statements that run, by file.
    pub hit: BTreeMap<String, Vec<u32>>,
}

impl CoverageVerdict {
    /// Returns whether the gate accepts the submission.
    pub fn accepted(&self) -> bool {
        self.findings.is_empty()
    }

    /// Returns the message to the model.
    pub fn text(&self) -> String {
        let mut lines = rules::describe(&self.findings);
        if self.accepted() {
            lines.push("The checks of the submission passed: all wanted lines run.".to_owned());
        }
        lines.extend(super::describe_dropped(&self.dropped));
        lines.join("\n")
    }
}

/// Decides on a submission. `covered` comes from a run of only the contributed tests, after the run of the
/// whole files.
pub fn decide_coverage(
    submission: &Submission,
    covered: &CoverResult,
    applies: &Result<(), String>,
) -> CoverageVerdict {
    let case = Case {
        submission,
        issue: "",
        applies,
        failing: &[],
    };
    let mut findings = rules::findings(&case, is_for_any_goal);
    let tests: Vec<&ContributedTest> = contributed(submission).collect();
    let mut wrong = |rule, text| findings.push(Finding { rule, text });
    for test in &tests {
        for report in [&submission.old, &covered.report] {
            if let Some(text) = not_passed(report, test) {
                wrong(Rule::Passes, text);
                break;
            }
        }
        if !contains_check(&test.source) {
            let text = format!(
                "{} asserts nothing of what the code does: check a value, an effect or an error.",
                test.id
            );
            wrong(Rule::Asserts, text);
        }
    }
    if !tests.is_empty() {
        for missed in covered.missed.iter().take(MAX_LISTED_RANGES) {
            wrong(Rule::RunsWantedLines, format!("not run: {missed}"));
        }
        if covered.missed.len() > MAX_LISTED_RANGES {
            let more = covered.missed.len() - MAX_LISTED_RANGES;
            wrong(
                Rule::RunsWantedLines,
                format!("{more} more stretches are not run"),
            );
        }
    }
    CoverageVerdict {
        findings,
        dropped: super::dropped(submission),
        passing: rules::passing(submission),
        hit: covered.hit.clone(),
    }
}

/// Returns whether a rule applies regardless of the goal of a test.
fn is_for_any_goal(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::TestsOnly | Rule::Applies | Rule::Contributes | Rule::BreaksNothing
    )
}

/// Returns why the test cannot be said to pass.
fn not_passed(report: &TestReport, test: &ContributedTest) -> Option<String> {
    let results: Vec<&TestResult> = (report.tests.iter())
        .filter(|result| belongs_to_test(&result.id, &test.id))
        .collect();
    if results.is_empty() {
        return Some(format!("{} did not run.", test.id));
    }
    let is_passed = |result: &&TestResult| result.outcome == Outcome::Passed;
    let passes = results.iter().any(is_passed);
    // A skipped parameter set says nothing about the others.
    let is_skipped_set =
        |result: &TestResult| passes && result.outcome == Outcome::Skipped && result.id != test.id;
    let mut results = results.into_iter();
    let other = results.find(|result| !is_passed(result) && !is_skipped_set(result))?;
    let failure = other.failure.as_ref();
    Some(match failure.map_or("", |f| headline(&f.message)) {
        "" => format!(
            "{} does not pass ({}).",
            other.id,
            outcome_word(other.outcome)
        ),
        message => format!("{} does not pass: {message}", other.id),
    })
}

fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Failed => "failed",
        Outcome::Error => "error",
        Outcome::Skipped => "skipped",
        Outcome::Xfailed => "failed as expected",
        Outcome::Xpassed => "passed against expectation",
        Outcome::Absent => "did not end",
    }
}

#[cfg(test)]
mod tests;
