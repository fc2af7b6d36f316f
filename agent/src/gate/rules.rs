//! The gate's rules, one function each, in one list.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_tools::outcomes::file_of;
use testwright_tools::outcomes::report::{
    Failure, FailureClass, Frame, Outcome, Phase, Place, TestReport, TestResult, belongs_to_test,
    is_named_in,
};
use testwright_tools::outcomes::text::headline;
use testwright_tools::python::unreached_assertions;
use testwright_tools::tools::submission::{ProblemKind, SiblingTests, Submission};

use super::case::{Case, contributed, failed, is_in_module};
use super::evidence::TestEvidence;
use super::{record, reruns};

/// A rule's finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Rule that is broken.
    pub rule: Rule,
    /// Message for the model: the problem and what to do about it.
    pub text: String,
}

/// A rule of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The patch changes test files only, and only those that the user named, if any.
    TestsOnly,
    /// The patch applies to the clean base commit.
    Applies,
    /// The patch adds or changes a test that pytest finds.
    Contributes,
    /// A contributed test fails on the old code.
    Fails,
    /// The failure is about the code, not a mistake in the test or its surroundings.
    Sound,
    /// Existing tests pass as before.
    BreaksNothing,
    /// The tests fail again when they are repeated.
    FailsAgain,
    /// The tests also fail with a placebo: an edit of the code under test that does not change its meaning, such as a
    /// comment.
    HoldsWithPlacebo,
    /// The failing tests run code under test.
    RunsCodeUnderTest,
    /// The tests pass. This rule and the following ones apply to tests for given lines (`testwright cover`).
    Passes,
    /// The tests contain an assertion.
    Asserts,
    /// The tests run all wanted lines.
    RunsWantedLines,
}

/// A rule, and the check that reports what breaks it.
type Check = (Rule, fn(&Case<'_>, &mut dyn FnMut(String)));

const ALL: [Check; 10] = [
    (Rule::TestsOnly, tests_only),
    (Rule::Applies, applies),
    (Rule::Contributes, contributes),
    (Rule::Fails, fails),
    (Rule::Sound, sound),
    (Rule::BreaksNothing, breaks_nothing),
    (Rule::BreaksNothing, breaks_no_sibling_tests),
    (Rule::FailsAgain, reruns::fails_again),
    (Rule::HoldsWithPlacebo, reruns::holds_with_placebo),
    (Rule::RunsCodeUnderTest, runs_code_under_test),
];

/// Returns the findings of the rules that apply.
pub(super) fn findings(case: &Case<'_>, applies: fn(Rule) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (rule, check) in ALL.into_iter().filter(|(rule, _)| applies(*rule)) {
        check(case, &mut |text| findings.push(Finding { rule, text }));
    }
    findings
}

/// Returns the findings as a list for the model; empty if the submission is accepted.
pub(super) fn describe(findings: &[Finding]) -> Vec<String> {
    let texts: Vec<&str> = findings.iter().map(|f| f.text.as_str()).collect();
    list("Not accepted:", &texts)
}

/// Returns lines with a heading; none if there are no items.
pub(super) fn list(heading: &str, items: &[impl std::fmt::Display]) -> Vec<String> {
    let heading = (!items.is_empty()).then(|| heading.to_owned());
    let lines = items.iter().map(|item| format!("- {item}"));
    heading.into_iter().chain(lines).collect()
}

fn contributed_ids(submission: &Submission) -> impl Iterator<Item = &str> {
    contributed(submission).map(|test| test.id.as_str())
}

fn is_contributed(submission: &Submission, id: &str) -> bool {
    contributed_ids(submission).any(|test| belongs_to_test(id, test))
}

/// Returns the assertions of the contributed test that did not run.
fn unreached(submission: &Submission, id: &str, failure: &Failure) -> Vec<(usize, usize)> {
    let mut tests = submission.contributed.iter();
    let Some(test) = tests.find(|test| belongs_to_test(id, &test.id)) else {
        return Vec::new();
    };
    let first = test.line as usize;
    let last = first + test.source.lines().count();
    let file = file_of(&test.id);
    let own = failure.frames.iter().find(|frame| {
        let line = frame.line as usize;
        frame.file == file && (first..last).contains(&line)
    });
    match own {
        Some(frame) => unreached_assertions(&test.source, first, frame.line as usize),
        None => Vec::new(),
    }
}

/// Returns the contributed tests that did not pass on the old code. If a module could not be collected, it
/// counts as its contributed tests.
pub(super) fn failing(submission: &Submission) -> Vec<TestEvidence> {
    let is_failing = |test: &&TestResult| failed(test) && is_contributed(submission, &test.id);
    let evidence = |test: &TestResult| {
        let failure = test.failure.as_ref()?;
        Some(TestEvidence {
            unreached: unreached(submission, &test.id, failure),
            executed: test.executed.clone(),
            ..TestEvidence::from_failure(&test.id, test.outcome, failure)
        })
    };
    let tests = submission.old.tests.iter();
    let mut failing_tests: Vec<TestEvidence> =
        tests.filter(is_failing).filter_map(evidence).collect();
    for error in &submission.old.collection_errors {
        for id in contributed_ids(submission) {
            // The results of a run of node ids contain these tests too.
            let is_listed = (failing_tests.iter()).any(|test| belongs_to_test(&test.id, id));
            if is_in_module(id, error) && !is_listed {
                let failure = &error.failure;
                failing_tests.push(TestEvidence::from_failure(id, Outcome::Error, failure));
            }
        }
    }
    failing_tests
}

/// Returns the contributed tests that pass on the old code.
pub(super) fn passing(submission: &Submission) -> Vec<String> {
    let passed = (submission.old.tests.iter()).filter(|test| test.outcome == Outcome::Passed);
    let ids = passed.map(|test| &test.id);
    ids.filter(|id| is_contributed(submission, id))
        .cloned()
        .collect()
}

/// Returns whether the test itself uses an undefined name. No issue asks for that: a name missing in a module
/// fails as an import or an attribute.
fn is_own_name(test: &TestEvidence) -> bool {
    let exception = test.exception.rsplit('.').next().unwrap_or_default();
    let frame = test.frame.as_ref();
    let in_test = frame.is_some_and(|frame| frame.place == Place::Test);
    in_test && matches!(exception, "NameError" | "UnboundLocalError")
}

/// Messages of the C library if there is no network.
const NO_NETWORK: [&str; 2] = [
    "Temporary failure in name resolution",
    "Network is unreachable",
];

/// Returns whether the test fails for lack of a network, which the issue does not mention.
fn wants_network(test: &TestEvidence, issue: &str) -> bool {
    let is_said = |words: &&str| test.message.contains(words) && !issue.contains(words);
    test.class != FailureClass::Assertion && NO_NETWORK.iter().any(is_said)
}

/// Returns whether the issue asks for the missing name, or shows the very error that Python raised in the
/// test.
fn asked_for(test: &TestEvidence, issue: &str) -> bool {
    if let Some(name) = &test.missing_name {
        return is_named_in(name, issue);
    }
    let class = test.exception.rsplit('.').next().unwrap_or_default();
    let message = test.message.lines().next().unwrap_or_default().trim();
    let line = format!("{class}: {message}");
    let is_raised = |frame: &Frame| frame.code.starts_with("raise");
    !message.is_empty()
        && test.phase == Phase::Call
        && !test.frame.as_ref().is_some_and(is_raised)
        && issue
            .lines()
            .any(|issue_line| issue_line.trim().ends_with(&line))
}

fn tests_only(case: &Case<'_>, wrong: &mut dyn FnMut(String)) {
    for problem in &case.submission.problems {
        if problem.kind != ProblemKind::NothingContributed {
            wrong(problem.text.clone());
        }
    }
    if case.submission.patch.is_empty() {
        wrong("the patch changes no test file. Add a test to one.".to_owned());
    }
}

fn applies(case: &Case<'_>, wrong: &mut dyn FnMut(String)) {
    if let Err(problem) = case.applies {
        wrong(format!(
            "the patch does not apply to the clean base commit: {problem}"
        ));
    }
}

fn contributes(case: &Case<'_>, wrong: &mut dyn FnMut(String)) {
    if !case.submission.patch.is_empty() && contributed_ids(case.submission).next().is_none() {
        wrong(
            "no test function was added or changed. pytest must be able to find it: its name, its class and its \
             file have to follow the repository's naming."
                .to_owned(),
        );
    }
}

fn fails(case: &Case<'_>, wrong: &mut dyn FnMut(String)) {
    if contributed_ids(case.submission).next().is_none() || !case.failing.is_empty() {
        return;
    }
    let old = &case.submission.old;
    let tests = old.tests.iter();
    let own: Vec<&TestResult> = tests
        .filter(|test| is_contributed(case.submission, &test.id))
        .collect();
    let first = |outcome: Outcome| own.iter().find(|test| test.outcome == outcome);
    wrong(if old.timed_out {
        "the tests timed out. Make them faster.".to_owned()
    } else if first(Outcome::Passed).is_some() {
        "no contributed test fails on this code: they pass, so they do not show the issue. The test must fail now and \
         pass once the issue is fixed."
            .to_owned()
    } else if own.is_empty() || first(Outcome::Absent).is_some() {
        format!(
            "pytest did not run the contributed tests ({}). Run them with `run_pytest` and see why.",
            contributed_ids(case.submission)
                .collect::<Vec<_>>()
                .join(", ")
        )
    } else if let Some(skipped) = first(Outcome::Skipped) {
        let reason = match headline(&skipped.captured) {
            "" => String::new(),
            reason => format!(" ({reason})"),
        };
        format!(
            "no contributed test fails on this code: {} is skipped{reason}. Make it run here.",
            skipped.id
        )
    } else {
        "no contributed test fails on this code: they are marked as expected to fail. Remove the mark."
            .to_owned()
    });
}

fn sound(case: &Case<'_>, wrong: &mut dyn FnMut(String)) {
    let again = case.submission.reruns.iter().map(|rerun| &rerun.report);
    let mut reports = again.chain([&case.submission.old]);
    if reports.any(|report| report.contradicted) {
        wrong(
            "the record of a run of the tests contradicts pytest's exit status: something in the tests interferes with \
             how outcomes are recorded."
                .to_owned(),
        );
    }
    record::holds_lines_of_files(case, wrong);
    record::fails_in_own_code(case, wrong);
    record::depends_on_code(case, wrong);
    for test in case.failing {
        if is_own_name(test) {
            wrong(format!(
                "{} uses a name that is not defined, which is a mistake in the test: {}.",
                test.id,
                test.line()
            ));
            continue;
        }
        if wants_network(test, case.issue) {
            wrong(format!(
                "{} fails because the sandbox has no network, whatever the code does: {}. Use a server on loopback or a stand-in for the \
                 connection.",
                test.id,
                test.line()
            ));
            continue;
        }
        if test.class != FailureClass::Error || asked_for(test, case.issue) {
            continue;
        }
        wrong(format!(
            "{} does not fail in an assertion or in the code under test: {}. {}.",
            test.id,
            test.line(),
            advice(test)
        ));
    }
}

/// Returns the reason to refuse an error, and what to do if the issue reports it.
fn advice(test: &TestEvidence) -> String {
    if let Some(name) = &test.missing_name {
        return format!("`{name}` does not exist, and the issue does not ask for it");
    }
    let is_absent = test.outcome == Outcome::Absent;
    let reason = match test.phase {
        _ if is_absent => "it did not end in time, or ended the whole run",
        Phase::Collect => "it is raised while the file is imported",
        Phase::Setup => "it is raised before the test, in a fixture or a setup method",
        Phase::Teardown => "it is raised after the test, in a fixture or a teardown method",
        Phase::Call => "it is raised by the test itself and not by the code under test",
    };
    let action = match test.phase {
        _ if is_absent => {
            "run the code in a child process with a timeout, and assert on how that ends"
        }
        Phase::Call => "assert on it explicitly",
        _ => "run that code in the test",
    };
    format!("{reason}. If that is what the issue shows, {action}")
}

fn breaks_nothing(case: &Case<'_>, wrong: &mut dyn FnMut(String)) {
    let Some(before) = &case.submission.before else {
        return;
    };
    let now = &case.submission.old;
    let is_in_patch = |test: &TestResult| {
        let mut own = case.submission.contributed.iter();
        own.any(|own| belongs_to_test(&test.id, &own.id))
    };
    let passed = (before.tests.iter()).filter(|test| test.outcome == Outcome::Passed);
    for was in passed.filter(|test| !is_in_patch(test)) {
        let broken = match now.tests.iter().find(|test| test.id == was.id) {
            Some(test) => failed(test),
            None => !now.timed_out,
        };
        if broken {
            wrong(format!(
                "{} passed before your change and does not any more. Leave existing tests as they are.",
                was.id
            ));
        }
    }
}

/// Maximum number of test names to list.
const MAX_LISTED: usize = 5;

/// Checks the unchanged tests next to files of the patch that they may use.
fn breaks_no_sibling_tests(case: &Case<'_>, wrong: &mut dyn FnMut(String)) {
    let Some(SiblingTests {
        shared,
        before,
        now,
    }) = &case.submission.neighbours
    else {
        return;
    };
    let passed = |report: &TestReport, id: &str| {
        let mut tests = report.tests.iter();
        tests.any(|test| test.id == id && test.outcome == Outcome::Passed)
    };
    // A test that had not started before the deadline is no evidence.
    let began = |id: &str| {
        let mut tests = now.tests.iter();
        !now.timed_out || tests.any(|test| test.id == id && test.outcome != Outcome::Absent)
    };
    let broken: Vec<&str> = (before.tests.iter())
        .map(|test| test.id.as_str())
        .filter(|id| passed(before, id) && !passed(now, id) && began(id))
        .collect();
    if broken.is_empty() {
        return;
    }
    let names = broken[..broken.len().min(MAX_LISTED)].join(", ");
    let more = match broken.len().saturating_sub(MAX_LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    wrong(format!(
        "the change breaks existing tests, which pass without it: {names}{more}. They share {} with the new tests; put what \
         the new tests need into their own file.",
        shared.join(", ")
    ));
}

fn runs_code_under_test(case: &Case<'_>, wrong: &mut dyn FnMut(String)) {
    for test in case.failing {
        // Missing names cannot run either: they cannot be imported, called or found yet.
        if test.executed.is_empty() && test.class != FailureClass::Error {
            wrong(format!(
                "{} fails without running any code of the repository that is not test code. Test a value through a \
                 function that uses it.",
                test.id
            ));
        }
    }
}

#[cfg(test)]
mod tests;
