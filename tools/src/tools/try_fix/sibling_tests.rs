//! Selects the tests for a fix: first the requested ones, then their siblings in the same files, so that
//! a fix that breaks something is noticed.

use std::fmt::Write;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;

use crate::outcomes::report::{Outcome, TestReport, TestResult};
use crate::outcomes::{covers, file_of, files_of, text};
use crate::runners::{self, Options};
use crate::tool::{Context, Result};
use crate::tools::line_numbers::count;
use crate::tools::run_pytest::failing;

/// Maximum seconds for siblings that were not requested.
const SECONDS: u64 = 30;
/// Maximum number of failing siblings that run without the fix.
const MAX_COMPARED: usize = 25;
/// Maximum number of siblings described in detail, and named.
const DETAILED: usize = 3;
const MAX_NAMED: usize = 12;
/// Maximum number of sibling files that are named.
const FILES: usize = 3;

/// The tests of one trial.
pub(super) struct TrialScope {
    pub own: Vec<String>,
    /// Files and folders to run.
    pub run: Vec<String>,
    /// Words for how the tests were requested.
    chosen: &'static str,
}

impl TrialScope {
    /// Creates a scope. `targets` are node ids, files or folders; `by_name` says whether the caller named them.
    pub(super) fn new(targets: &[String], by_name: bool) -> Self {
        TrialScope {
            own: targets.to_vec(),
            run: files_of(targets),
            chosen: match by_name {
                true => "that you named",
                false => "that you added or changed",
            },
        }
    }

    /// Returns the run options for a fix of functions and classes with these names.
    pub(super) fn options(&self, edited: &[String], deadline: Instant) -> Options {
        let mut options = Options::with_deadline(deadline);
        options.near = edited.to_vec();
        options.first.clone_from(&self.own);
        options.rest_seconds = Some(SECONDS);
        options.whole_values.clone_from(&self.own);
        options
    }

    /// Splits a report into the requested tests and the siblings.
    pub(super) fn split(&self, mut report: TestReport) -> (TestReport, SiblingTests) {
        let is_own = |test: &TestResult| self.own.iter().any(|id| covers(id, &test.id));
        let (own, others): (Vec<_>, Vec<_>) = report.tests.drain(..).partition(is_own);
        report.tests = own;
        // If a whole file is missing, its tests were requested and not the file itself.
        let (mut missing, files): (Vec<_>, Vec<_>) =
            (report.not_found.drain(..)).partition(|id| self.own.contains(id));
        for id in &self.own {
            if !missing.contains(id) && files.iter().any(|file| covers(file, id)) {
                missing.push(id.clone());
            }
        }
        report.not_found = missing;
        let siblings = SiblingTests::new(others, &report);
        (report, siblings)
    }

    /// Summarizes the outcomes of the requested tests.
    pub(super) fn verdict(&self, report: &TestReport) -> String {
        let chosen = self.chosen;
        if let Some(error) = &report.runner_error {
            return format!(
                "The tests could not be run, so this says nothing about the fix: {error}."
            );
        }
        let outcomes = || report.tests.iter().map(|test| test.outcome);
        let passed = outcomes().filter(|o| *o == Outcome::Passed).count();
        // A skipped or expectedly failing parameter set is neither.
        let is_skipped = |o: &Outcome| matches!(o, Outcome::Skipped | Outcome::Xfailed);
        let skipped = outcomes().filter(is_skipped).count();
        let all = report.tests.len() - skipped + report.not_found.len();
        let no_errors = report.collection_errors.is_empty();
        if passed == 1 && all == 1 && no_errors {
            format!("The test {chosen} passes with this fix.")
        } else if passed == all && passed > 0 && no_errors {
            format!("All {all} tests {chosen} pass with this fix.")
        } else if passed == 0 && failing(report).next().is_none() && no_errors {
            format!("None of the tests {chosen} ran with this fix.")
        } else if passed == 0 {
            format!(
                "None of the tests {chosen} passes with this fix: the fix is incomplete, or the test asks for something else."
            )
        } else {
            let beside = if no_errors {
                ""
            } else {
                "; others could not be collected"
            };
            let pass = if passed == 1 { "passes" } else { "pass" };
            format!("{passed} of the {all} tests {chosen} {pass} with this fix{beside}.")
        }
    }
}

/// The tests beside the requested ones.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct SiblingTests {
    /// Number of siblings that did not fail.
    good: usize,
    /// The reason why some did not run.
    #[serde(skip)]
    stopped: Option<StopReason>,
    /// Number of siblings that did not start.
    not_run: usize,
    /// Siblings that started but did not finish in time.
    unfinished: Vec<String>,
    failing: Vec<SiblingTest>,
    /// The files of the siblings that ran.
    #[serde(skip)]
    files: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
enum StopReason {
    /// The time for siblings was over.
    Limit,
    /// The time for the whole run was over.
    Deadline,
    Ended,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SiblingTest {
    with_fix: TestResult,
    /// Outcome of a run with only the failing siblings, with the fix; `None` if unknown.
    alone: Option<Outcome>,
    /// Outcome in the same run without the fix.
    without_fix: Option<Outcome>,
}

/// The part that the fix has in the failure of a sibling.
#[derive(PartialEq, Eq)]
enum Verdict {
    /// The sibling passes without the fix.
    Broken,
    /// The sibling fails without the fix, too.
    FailsAnyway,
    /// The sibling passes with the fix if it runs with the other failing siblings only.
    FailsAmongOthers,
    Unknown,
}

impl SiblingTest {
    fn verdict(&self) -> Verdict {
        match (
            self.alone.map(Outcome::is_bad),
            self.without_fix.map(Outcome::is_bad),
        ) {
            (Some(false), _) => Verdict::FailsAmongOthers,
            (Some(true), Some(false)) => Verdict::Broken,
            (Some(true), Some(true)) => Verdict::FailsAnyway,
            (Some(true), None) | (None, _) => Verdict::Unknown,
        }
    }
}

impl SiblingTests {
    fn new(tests: Vec<TestResult>, report: &TestReport) -> Self {
        let mut all = SiblingTests::default();
        for test in tests {
            let file = file_of(&test.id);
            let did_run = test.outcome != Outcome::Absent || test.failure.is_some();
            if did_run && !all.files.iter().any(|other| other == file) {
                all.files.push(file.to_owned());
            }
            match test.outcome {
                Outcome::Absent if is_unfinished(&test, report) => all.unfinished.push(test.id),
                Outcome::Absent if test.failure.is_none() => all.not_run += 1,
                Outcome::Failed | Outcome::Error | Outcome::Absent => {
                    all.failing.push(SiblingTest {
                        with_fix: test,
                        alone: None,
                        without_fix: None,
                    })
                }
                _ => all.good += 1,
            }
        }
        if all.not_run > 0 || !all.unfinished.is_empty() {
            all.stopped = Some(if report.timed_out {
                StopReason::Deadline
            } else if report.rest_timed_out {
                StopReason::Limit
            } else {
                StopReason::Ended
            });
        }
        all
    }

    /// Runs the failing siblings again, with the fix. Only equal runs are comparable: among others, a test may fail
    /// because of their leftovers.
    ///
    /// # Errors
    ///
    /// Fails if the run cannot be made.
    pub(super) fn run_alone(&mut self, context: &Context<'_>) -> Result<()> {
        let failing = self.failing.iter().take(MAX_COMPARED);
        let ids: Vec<String> = failing.map(|n| n.with_fix.id.clone()).collect();
        let Some(alone) = run_some(context, &ids, &[], 3)? else {
            return Ok(());
        };
        for sibling in &mut self.failing {
            sibling.alone = outcome(&alone, &sibling.with_fix.id);
        }
        Ok(())
    }

    /// Returns the siblings that fail with the fix, both with and without the other tests.
    pub(super) fn failing_alone(&self) -> impl Iterator<Item = String> {
        let failing = self
            .failing
            .iter()
            .filter(|n| n.alone.is_some_and(Outcome::is_bad));
        failing.map(|n| n.with_fix.id.clone())
    }

    /// Adds the outcomes without the fix.
    pub(super) fn compare(&mut self, without: &[TestResult]) {
        for sibling in &mut self.failing {
            if sibling.alone.is_some_and(Outcome::is_bad) {
                sibling.without_fix = outcome(without, &sibling.with_fix.id);
            }
        }
    }

    /// Returns the failing siblings with this verdict.
    fn of(&self, verdict: Verdict) -> Vec<&SiblingTest> {
        let failing = self.failing.iter();
        failing.filter(|n| n.verdict() == verdict).collect()
    }

    /// Summarizes the siblings in a few sentences, one per line; empty if there are no siblings.
    pub(super) fn summary(&self) -> String {
        let ran = self.good + self.failing.len();
        let all = ran + self.not_run + self.unfinished.len();
        let mut out = String::new();
        let neighbours = match self.stopped {
            None => count(ran, "neighbour"),
            Some(_) => format!("{} that ran, of {all}", count(ran, "neighbour")),
        };
        let neighbours = format!("{neighbours}{}", self.within());
        if ran == 1 && self.failing.is_empty() && self.stopped.is_none() {
            let within = self.within();
            let _ = write!(out, "\nThe fix does not break the one neighbour{within}.");
        } else if ran > 0 && self.failing.is_empty() {
            let _ = write!(out, "\nThe fix breaks none of {neighbours}.");
        } else if !self.failing.is_empty() {
            let broken = self.of(Verdict::Broken);
            let names: Vec<&str> = (broken.iter().take(MAX_NAMED))
                .map(|sibling| sibling.with_fix.id.as_str())
                .collect();
            let mut parts = vec![match broken.len() {
                0 => format!("The fix breaks none of {neighbours}"),
                number => format!(
                    "The fix breaks {number} of {neighbours}: {}{}",
                    names.join(", "),
                    if number > MAX_NAMED { " …" } else { "" }
                ),
            }];
            for (verdict, one, many, what) in [
                (Verdict::FailsAnyway, "fails", "fail", "with and without it"),
                (
                    Verdict::FailsAmongOthers,
                    "fails",
                    "fail",
                    "only among the others",
                ),
                (
                    Verdict::Unknown,
                    "fails and was",
                    "fail and were",
                    "not tried without it",
                ),
            ] {
                match self.of(verdict).len() {
                    0 => {}
                    1 => parts.push(format!("1 {one} {what}")),
                    number => parts.push(format!("{number} {many} {what}")),
                }
            }
            let _ = write!(out, "\n{}.", parts.join("; "));
            out.push_str(match broken.len() {
                0 => "",
                1 => " (It may pin what the issue calls wrong.)",
                _ => " (They may pin what the issue calls wrong.)",
            });
        }
        let why = match self.stopped {
            None => return out,
            Some(StopReason::Limit) => format!("within {SECONDS} s"),
            Some(StopReason::Deadline) => "before the time for the whole run was over".to_owned(),
            Some(StopReason::Ended) => "before pytest ended".to_owned(),
        };
        let _ = write!(
            out,
            "\nNot all of the neighbours ran {why}; the nearest ran first."
        );
        for id in &self.unfinished {
            let _ = write!(out, "\n{id} was not finished in time.");
        }
        out
    }

    /// Formats the files as ` in FILE, FILE`.
    fn within(&self) -> String {
        let first_files = self.files.get(..FILES).unwrap_or(&self.files);
        match self.files.len() {
            0 => String::new(),
            1..=FILES => format!(" in {}", first_files.join(", ")),
            more => format!(
                " in {} and {}",
                first_files.join(", "),
                count(more - FILES, "more file")
            ),
        }
    }

    /// Describes the failures of siblings, starting with those that the fix caused, in more detail.
    pub(super) fn details(&self) -> String {
        let mut out = String::new();
        let mut listed = |title: &str, verdict: Verdict, detailed: usize| {
            let mut remaining = self.of(verdict);
            if remaining.is_empty() {
                return;
            }
            let _ = write!(out, "\n\n{title}");
            for _ in 0..detailed.min(remaining.len()) {
                let first = remaining.remove(0);
                out.push_str(&text::one_failure(&first.with_fix));
                let (others, unmatched): (Vec<_>, Vec<_>) =
                    (remaining.into_iter()).partition(|other| is_other_parameter_set(first, other));
                if !others.is_empty() {
                    let ids = others.iter().map(|other| other.with_fix.id.as_str());
                    out.push_str(&text::more_parameter_sets(ids));
                }
                remaining = unmatched;
                if remaining.is_empty() {
                    break;
                }
            }
            let groups = alike(&remaining);
            for (why, ids) in groups.iter().take(MAX_NAMED) {
                let [first, others @ ..] = ids.as_slice() else {
                    continue;
                };
                let others = match others.len() {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let _ = write!(out, "\n{first}{others}{why}");
            }
            let others = groups.iter().skip(MAX_NAMED);
            let more: usize = others.map(|(_, ids)| ids.len()).sum();
            if more > 0 {
                let _ = write!(out, "\n... and {more} more");
            }
        };
        listed("The fix breaks:", Verdict::Broken, DETAILED);
        listed("Not tried without the fix:", Verdict::Unknown, 1);
        let anyway = "Failing with and without the fix:";
        listed(anyway, Verdict::FailsAnyway, 0);
        let among = "Failing only among the others:";
        listed(among, Verdict::FailsAmongOthers, 0);
        out
    }
}

/// Returns whether both are the same test function with different parameters, and fail with the same text except
/// numbers.
fn is_other_parameter_set(a: &SiblingTest, b: &SiblingTest) -> bool {
    let function = |sibling: &SiblingTest| {
        let id = sibling.with_fix.id.split_once('[');
        id.map(|(function, _)| function.to_owned())
    };
    function(a).is_some() && function(a) == function(b) && alike(&[a, b]).len() == 1
}

/// Groups ids by failure text except numbers, with `: EXCEPTION: MESSAGE` of the first test in each group.
fn alike<'a>(siblings: &[&'a SiblingTest]) -> Vec<(String, Vec<&'a str>)> {
    let plain = |why: &str| why.replace(|c: char| c.is_ascii_digit(), "");
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for sibling in siblings {
        let failure = sibling.with_fix.failure.as_ref();
        let why = failure.map_or_else(String::new, |failure| {
            format!(": {}", text::one_line(failure))
        });
        let id = sibling.with_fix.id.as_str();
        match groups
            .iter_mut()
            .find(|(reason, _)| plain(reason) == plain(&why))
        {
            Some((_, ids)) => ids.push(id),
            None => groups.push((why, vec![id])),
        }
    }
    groups
}

/// Returns whether a test started, but the time was over before its end.
fn is_unfinished(test: &TestResult, report: &TestReport) -> bool {
    test.outcome == Outcome::Absent
        && if report.timed_out {
            test.failure.is_some()
        } else {
            !test.captured.is_empty()
        }
}

/// Runs these tests in a part of the time left, and returns those with a known outcome; `None` if there are no tests,
/// or too little time.
///
/// # Errors
///
/// Fails if the run cannot be made.
pub(super) fn run_some(
    context: &Context<'_>,
    ids: &[String],
    whole_values: &[String],
    parts: u32,
) -> Result<Option<Vec<TestResult>>> {
    let time = Duration::from_secs(SECONDS).min(context.left() / parts);
    if ids.is_empty() || time < Duration::from_secs(5) {
        return Ok(None);
    }
    let mut options = Options::with_deadline(Instant::now() + time);
    options.whole_values = whole_values.to_vec();
    let report = runners::run(context.workspace.checkout(), ids, &options)?;
    Ok(Some(known(report)))
}

fn outcome(tests: &[TestResult], id: &str) -> Option<Outcome> {
    let test = tests.iter().find(|test| test.id == id);
    test.map(|test| test.outcome)
}

/// Keeps the known outcomes: a test at which pytest died counts, one that did not start or took too long does not.
fn known(mut report: TestReport) -> Vec<TestResult> {
    let timed_out = report.timed_out;
    report
        .tests
        .retain(|test| test.outcome != Outcome::Absent || (test.failure.is_some() && !timed_out));
    report.tests
}

#[cfg(test)]
mod tests;
