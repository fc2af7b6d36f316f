//! Which tests a fix is tried on: those asked for, and after them their neighbours in the same files, so that a
//! fix that breaks something is seen.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::pytest::report::{Outcome, Report, TestResult};
use crate::pytest::{self, Options, covers, file_of, text};
use crate::tool::{Context, ToolError};
use crate::tools::run_pytest::failing;
use crate::tools::window::count;

/// Seconds that the neighbours get where nobody asked for them.
const SECONDS: u64 = 30;
/// Failing neighbours that are run without the fix.
const COMPARED: usize = 25;
/// Neighbours told at length, and named.
const DETAILED: usize = 3;
const NAMED: usize = 12;

/// The tests of one trial.
pub struct Scope {
    own: Vec<String>,
    /// Files and folders to run.
    pub run: Vec<String>,
    /// Seconds for the neighbours.
    limit: Option<u64>,
}

impl Scope {
    /// `asked` are node ids, files or folders. Of files and folders the contributed tests are the ones that count,
    /// where they hold any.
    pub fn new(asked: &[String], contributed: &[String]) -> Self {
        let by_id = |id: &String| id.contains("::");
        let mut own: Vec<String> = asked.iter().filter(|id| by_id(id)).cloned().collect();
        let wide: Vec<&String> = asked.iter().filter(|id| !by_id(id)).collect();
        for id in contributed {
            if wide.iter().any(|w| covers(w, id)) && !own.contains(id) {
                own.push(id.clone());
            }
        }
        if own.is_empty() {
            own = asked.to_vec();
        }
        let mut run: Vec<String> = Vec::new();
        for file in asked.iter().map(|id| file_of(id)) {
            if !run.iter().any(|f| f == file) {
                run.push(file.to_owned());
            }
        }
        let limit = wide.is_empty().then_some(SECONDS);
        Scope { own, run, limit }
    }

    pub fn options(&self, deadline: Instant) -> Options {
        let mut options = Options::until(deadline);
        options.first.clone_from(&self.own);
        options.rest_seconds = self.limit;
        options
    }

    /// The report on the tests asked for, and the neighbours.
    pub fn split(&self, mut report: Report) -> (Report, Neighbours) {
        let is_own = |test: &TestResult| self.own.iter().any(|id| covers(id, &test.id));
        let (own, others): (Vec<_>, Vec<_>) = report.tests.drain(..).partition(is_own);
        report.tests = own;
        // Asked for by name, and not there.
        for id in self.own.iter().filter(|id| id.contains("::")) {
            let known = report.tests.iter().any(|test| covers(id, &test.id))
                || report.not_found.contains(id)
                || report.collection_errors.iter().any(|e| covers(&e.id, id));
            if !known {
                report.not_found.push(id.clone());
            }
        }
        (report, Neighbours::new(others))
    }
}

/// The tests beside those asked for.
#[derive(Debug, Default, Serialize)]
pub struct Neighbours {
    /// How many did not fail.
    good: usize,
    /// How many did not run: there was no time, or the process had ended.
    not_run: usize,
    failing: Vec<Neighbour>,
}

#[derive(Debug, Serialize)]
struct Neighbour {
    with_fix: TestResult,
    /// How it ended without the fix; `None` where that was not found out.
    without_fix: Option<Outcome>,
}

impl Neighbours {
    fn new(tests: Vec<TestResult>) -> Self {
        let mut all = Neighbours::default();
        for test in tests {
            match test.outcome {
                Outcome::Absent if test.failure.is_none() => all.not_run += 1,
                Outcome::Failed | Outcome::Error | Outcome::Absent => all.failing.push(Neighbour {
                    with_fix: test,
                    without_fix: None,
                }),
                _ => all.good += 1,
            }
        }
        all
    }

    /// Runs those that fail once more, without the fix: `without` is what its files held before.
    pub fn compare(
        &mut self,
        context: &mut Context<'_>,
        without: &BTreeMap<PathBuf, Option<String>>,
    ) -> Result<(), ToolError> {
        let time = Duration::from_secs(SECONDS).min(context.left() / 2);
        if self.failing.is_empty() || time < Duration::from_secs(5) {
            return Ok(());
        }
        for (path, text) in without {
            match text {
                Some(text) => context.workspace.write_text(path, text)?,
                None => context.workspace.remove(path)?,
            }
        }
        let ids: Vec<String> = self
            .failing
            .iter()
            .take(COMPARED)
            .map(|n| n.with_fix.id.clone())
            .collect();
        let options = Options::until(Instant::now() + time);
        let report = pytest::run(context.workspace, &ids, &options)?;
        for neighbour in &mut self.failing {
            let mut there = report.tests.iter();
            let found = there.find(|test| test.id == neighbour.with_fix.id);
            // One that began and did not come to its end is known; one that did not begin is not.
            neighbour.without_fix = found
                .filter(|test| test.outcome != Outcome::Absent || test.failure.is_some())
                .map(|test| test.outcome);
        }
        Ok(())
    }

    fn broken(&self) -> impl Iterator<Item = &Neighbour> {
        let failing = self.failing.iter();
        failing.filter(|n| n.without_fix.is_some_and(|outcome| !is_bad(outcome)))
    }

    fn failing_anyway(&self) -> impl Iterator<Item = &Neighbour> {
        let failing = self.failing.iter();
        failing.filter(|n| n.without_fix.is_some_and(is_bad))
    }

    fn unknown(&self) -> impl Iterator<Item = &Neighbour> {
        self.failing.iter().filter(|n| n.without_fix.is_none())
    }

    /// One or two sentences, each on a line of its own; empty where there are no neighbours.
    pub fn summary(&self) -> String {
        let ran = self.good + self.failing.len();
        let mut out = String::new();
        if ran > 0 && self.failing.is_empty() {
            let _ = match ran {
                1 => write!(out, "\nThe other test of the same files does not fail."),
                many => write!(
                    out,
                    "\nOf the {many} other tests of the same files none fails."
                ),
            };
        } else if ran > 0 {
            let broken = self.broken().count();
            let anyway = self.failing_anyway().count();
            let mut parts = Vec::new();
            let mut part = |number: usize, one: &str, many: &str| match number {
                0 => {}
                1 => parts.push(format!("1 {one} without it")),
                _ => parts.push(format!("{number} {many} without it")),
            };
            part(broken, "passes", "pass");
            part(anyway, "also fails", "also fail");
            part(self.unknown().count(), "was not tried", "were not tried");
            let _ = write!(
                out,
                "\n{} of {} of the same files {} with this fix: {}.",
                self.failing.len(),
                count(ran, "other test"),
                if self.failing.len() == 1 {
                    "fails"
                } else {
                    "fail"
                },
                parts.join(", ")
            );
            if broken > 0 {
                out.push_str(" The fix breaks something, or the old tests ask for what the issue calls wrong.");
            }
        }
        if self.not_run > 0 {
            let _ = write!(
                out,
                "\n{} of the same files did not run: the time for neighbours ({SECONDS} s) was over, or pytest had ended.",
                count(self.not_run, "other test")
            );
        }
        out
    }

    /// The failures of neighbours: those that the fix brought first, and at some length.
    pub fn details(&self) -> String {
        let mut out = String::new();
        let mut listed = |title: &str, neighbours: Vec<&Neighbour>, detailed: usize| {
            if neighbours.is_empty() {
                return;
            }
            let _ = write!(out, "\n\n{title}");
            for neighbour in neighbours.iter().take(detailed) {
                out.push_str(&text::one_failure(&neighbour.with_fix));
            }
            let rest = neighbours.get(detailed..).unwrap_or_default();
            for neighbour in rest.iter().take(NAMED) {
                let _ = write!(out, "\n{}", neighbour.with_fix.id);
            }
            if rest.len() > NAMED {
                let _ = write!(out, "\n... and {} more", rest.len() - NAMED);
            }
        };
        listed(
            "These pass without the fix:",
            self.broken().collect(),
            DETAILED,
        );
        listed(
            "These fail, and were not tried without the fix:",
            self.unknown().collect(),
            1,
        );
        listed(
            "These fail without the fix too:",
            self.failing_anyway().collect(),
            0,
        );
        out
    }
}

fn is_bad(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Failed | Outcome::Error | Outcome::Absent)
}

/// How the tests asked for did.
pub fn verdict(report: &Report) -> String {
    let count = |wanted| report.tests.iter().filter(|t| t.outcome == wanted).count();
    let passed = count(Outcome::Passed);
    let all = report.tests.len() + report.not_found.len();
    if passed == all && passed > 0 && report.collection_errors.is_empty() {
        "All of the tests pass with this fix.".to_owned()
    } else if passed == 0 && failing(report).next().is_none() && report.collection_errors.is_empty()
    {
        "None of the tests ran with this fix.".to_owned()
    } else if passed == 0 {
        "None of the tests passes with this fix: the fix is incomplete, or the test asks for something else.".to_owned()
    } else {
        format!("{passed} of {all} tests pass with this fix.")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ids(of: &[&str]) -> Vec<String> {
        of.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn whole_files_are_run_and_what_was_asked_for_comes_first() {
        let contributed = ids(&["t/test_a.py::test_new", "t/test_b.py::A::test_new"]);
        let scope = Scope::new(&contributed, &contributed);
        assert_eq!(
            (scope.own, scope.run, scope.limit),
            (
                contributed.clone(),
                ids(&["t/test_a.py", "t/test_b.py"]),
                Some(SECONDS)
            )
        );
        let scope = Scope::new(&ids(&["t/test_b.py"]), &contributed);
        assert_eq!(
            (scope.own, scope.run, scope.limit),
            (
                ids(&["t/test_b.py::A::test_new"]),
                ids(&["t/test_b.py"]),
                None
            )
        );
        let scope = Scope::new(&ids(&["t/test_c.py"]), &contributed);
        assert_eq!(scope.own, ids(&["t/test_c.py"]));
    }

    #[test]
    fn neighbours_are_told_by_what_they_did_without_the_fix() {
        let test = |id: &str, outcome: Outcome| TestResult {
            id: id.to_owned(),
            outcome,
            failure: None,
            captured: String::new(),
            seconds: 0.0,
            executed: Vec::new(),
        };
        let mut all = Neighbours::new(vec![
            test("a", Outcome::Passed),
            test("b", Outcome::Failed),
            test("c", Outcome::Error),
            test("d", Outcome::Failed),
            test("e", Outcome::Absent),
            test("f", Outcome::Xfailed),
        ]);
        all.failing[0].without_fix = Some(Outcome::Passed);
        all.failing[1].without_fix = Some(Outcome::Error);
        insta::assert_snapshot!(format!("{}{}", all.summary().trim_start(), all.details()), @r"
        3 of 5 other tests of the same files fail with this fix: 1 passes without it, 1 also fails without it, 1 was not tried without it. The fix breaks something, or the old tests ask for what the issue calls wrong.
        1 other test of the same files did not run: the time for neighbours (30 s) was over, or pytest had ended.

        These pass without the fix:

        FAILED b

        These fail, and were not tried without the fix:

        FAILED d

        These fail without the fix too:
        c
        ");
        assert_eq!(Neighbours::default().summary(), "");
        let good = Neighbours::new(vec![
            test("a", Outcome::Passed),
            test("b", Outcome::Skipped),
        ]);
        assert_eq!(
            good.summary(),
            "\nOf the 2 other tests of the same files none fails."
        );
    }
}
