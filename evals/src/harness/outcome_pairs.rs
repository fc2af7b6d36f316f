//! Converts reports of runs to observations of a prediction.

use std::collections::{BTreeMap, BTreeSet};

use testwright_tools::outcomes::report::{
    Failure, FailureClass, Outcome, TestReport, belongs_to_test, is_named_in,
};
use testwright_tools::outcomes::{covers, file_of};

use crate::verdict::{Pair, Pairs};

/// Pairs the outcomes of both sides. `expected` are tests, without parameters, that should exist; they are included
/// even if neither side collected them.
pub(super) fn pairs(old: &TestReport, new: &TestReport, expected: &[String]) -> Pairs {
    let (then, now) = (outcomes(old), outcomes(new));
    let mut pairs = Pairs::new();
    let with_parameters: BTreeSet<&str> = then
        .keys()
        .chain(now.keys())
        .filter_map(|id| test_of(id))
        .collect();
    // A side that could not collect a test reports it without parameters.
    let on = |outcomes: &BTreeMap<&str, Outcome>, report: &TestReport, id: &str| {
        let of_id = outcomes.get(id);
        let of_test = || test_of(id).and_then(|test| outcomes.get(test));
        let outcome = of_id.or_else(of_test).copied();
        outcome.unwrap_or_else(|| unseen(report, id))
    };
    for id in then.keys().chain(now.keys()) {
        if with_parameters.contains(id) {
            continue;
        }
        let pair = Pair {
            old: on(&then, old, id),
            new: on(&now, new, id),
        };
        pairs.insert((*id).to_owned(), pair);
    }
    for test in expected {
        if !pairs.keys().any(|id| belongs_to_test(id, test)) {
            let (old, new) = (unseen(old, test), unseen(new, test));
            if (old, new) != (Outcome::Absent, Outcome::Absent) {
                pairs.insert(test.clone(), Pair { old, new });
            }
        }
    }
    pairs
}

/// Returns whether all tests that pass on the old side also pass on the new side; `None` if no test passes on the old.
pub(super) fn all_still_pass(pairs: &Pairs) -> Option<bool> {
    let passing = pairs.values().filter(|pair| pair.old == Outcome::Passed);
    let still_passes = passing.map(|pair| pair.new == Outcome::Passed);
    still_passes.reduce(|all, one| all && one)
}

fn outcomes(report: &TestReport) -> BTreeMap<&str, Outcome> {
    let mut outcomes: BTreeMap<&str, Outcome> = BTreeMap::new();
    for test in &report.tests {
        // If a test ran twice, the worse outcome counts.
        let outcome = outcomes.entry(&test.id).or_insert(test.outcome);
        if rank(test.outcome) > rank(*outcome) {
            *outcome = test.outcome;
        }
    }
    outcomes
}

fn rank(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Passed => 1,
        Outcome::Failed => 3,
        Outcome::Error => 2,
        _ => 0,
    }
}

/// Returns ids that one side does not report, although it finished and ran the same test with other parameters.
pub(super) fn unmatched_parameters(old: &TestReport, new: &TestReport) -> BTreeSet<String> {
    let (then, now) = (outcomes(old), outcomes(new));
    let mut unmatched_ids = BTreeSet::new();
    for (report, here, there) in [(old, &then, &now), (new, &now, &then)] {
        if report.timed_out || report.exit_code.is_none() {
            continue;
        }
        let tests: BTreeSet<&str> = here.keys().filter_map(|id| test_of(id)).collect();
        let missing = there.keys().filter(|id| !here.contains_key(*id));
        let missing = missing.filter(|id| test_of(id).is_some_and(|test| tests.contains(test)));
        unmatched_ids.extend(missing.map(|id| (*id).to_owned()));
    }
    unmatched_ids
}

/// Compares pytest's exit status with the outcomes: it must be 0 if no test failed, and 1 if a test failed.
pub(super) fn contradiction(report: &TestReport) -> Option<&'static str> {
    let is_bad = |outcome| {
        !matches!(
            outcome,
            Outcome::Passed | Outcome::Skipped | Outcome::Xfailed
        )
    };
    let ran = report.tests.iter().map(|test| test.outcome);
    let has_errors = !report.collection_errors.is_empty();
    match report.exit_code {
        Some(0)
            if has_errors
                || ran
                    .clone()
                    .any(|o| matches!(o, Outcome::Failed | Outcome::Error)) =>
        {
            Some("tests failed, but pytest's exit status reports success")
        }
        Some(1) if !has_errors && !report.timed_out && !ran.clone().any(is_bad) => {
            Some("no test failed, but pytest's exit status reports failures")
        }
        _ => None,
    }
}

/// Returns the test of an id with parameters.
fn test_of(id: &str) -> Option<&str> {
    id.split_once('[').map(|(test, _)| test)
}

/// Returns the outcome of a test that a run does not report: an error if its module could not be collected, otherwise
/// absent.
fn unseen(report: &TestReport, id: &str) -> Outcome {
    match collection_error(report, id) {
        Some(_) => Outcome::Error,
        None => Outcome::Absent,
    }
}

fn collection_error<'a>(report: &'a TestReport, id: &str) -> Option<&'a Failure> {
    let error = report.collection_errors.iter().find(|error| {
        let folder = error.id.strip_suffix("conftest.py");
        covers(&error.id, id) || folder.is_some_and(|folder| file_of(id).starts_with(folder))
    });
    error.map(|error| &error.failure)
}

/// Returns how tests failed on the old code.
pub(super) fn failures(report: &TestReport) -> BTreeMap<String, FailureClass> {
    let of_test = |test: &testwright_tools::outcomes::report::TestResult| {
        Some((test.id.clone(), test.failure.as_ref()?.class))
    };
    report.tests.iter().filter_map(of_test).collect()
}

/// Returns contributed tests that could not run on the old code because a name is missing that the issue asks for.
pub(super) fn tests_of_requested_names(
    report: &TestReport,
    contributed: &[String],
    issue: &str,
) -> Vec<String> {
    let asks = |failure: &Failure| {
        let name = failure.missing_name.as_deref();
        name.is_some_and(|name| is_named_in(name, issue))
    };
    let is_requested = |test: &&String| {
        let of_test = report
            .tests
            .iter()
            .filter(|result| belongs_to_test(&result.id, test));
        let mut failures = of_test.filter_map(|result| result.failure.as_ref());
        failures.any(asks) || collection_error(report, test).is_some_and(asks)
    };
    contributed.iter().filter(is_requested).cloned().collect()
}

#[cfg(test)]
mod tests;
