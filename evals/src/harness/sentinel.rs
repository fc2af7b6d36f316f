//! Detects forged outcomes: a test that must fail runs with the tests that decide a verdict on code. If it does not
//! fail, something other than the tests decides how they come out.

use testwright_sandboxes::repository::{File, FileKind, Files};
use testwright_tools::outcomes::file_of;
use testwright_tools::outcomes::report::{Outcome, TestReport};

use super::changed_lines::Lines;
use super::instance::CodeState;
use super::outcome_pairs::contradiction;
use super::test_run_cache::{RecordKey, RunRecord, TestRun};
use super::timeline::{Activity, Timeline};
use super::{GradingFailure, Harness, at_stage};

/// Hexadecimal digits in the name of a sentinel.
const NAME_DIGITS: usize = 10;

/// A test that must fail, in its own file.
struct Sentinel {
    path: String,
    name: String,
}

impl Sentinel {
    /// Creates the sentinel of a run. It is beside the first file of the run, because pytest derives its root folder
    /// from the folders of its arguments. `None` if nothing runs.
    fn new(digest: &str, ids: &[String]) -> Option<Sentinel> {
        let file = file_of(ids.first()?);
        let name = format!("test_{}", digest.get(..NAME_DIGITS).unwrap_or(digest));
        let path = match file.rsplit_once('/') {
            Some((folder, _)) => format!("{folder}/{name}.py"),
            None => format!("{name}.py"),
        };
        Some(Sentinel { path, name })
    }

    fn file(&self) -> File {
        File {
            content: format!("def {}():\n    assert False\n", self.name).into_bytes(),
            kind: FileKind::Plain,
        }
    }

    /// Removes the sentinel from a report, and returns how it ended; `None` if its outcome says nothing.
    fn take(&self, report: &mut TestReport) -> Option<SentinelEnd> {
        let is_own = |id: &str| file_of(id) == self.path;
        let outcomes: Vec<Outcome> = (report.tests.iter())
            .filter(|test| is_own(&test.id))
            .map(|test| test.outcome)
            .collect();
        let has_failed = outcomes
            .iter()
            .any(|outcome| matches!(outcome, Outcome::Failed | Outcome::Error));
        report.tests.retain(|test| !is_own(&test.id));
        report.not_found.retain(|id| !is_own(id));
        let errors = report.collection_errors.len();
        report.collection_errors.retain(|error| !is_own(&error.id));
        if has_failed || errors > report.collection_errors.len() {
            return Some(SentinelEnd::Failed);
        }
        let passes = |outcome: &Outcome| {
            matches!(
                outcome,
                Outcome::Passed | Outcome::Xpassed | Outcome::Xfailed
            )
        };
        if outcomes.iter().any(passes) {
            return Some(SentinelEnd::Passed);
        }
        if outcomes.contains(&Outcome::Skipped) || !report.collection_errors.is_empty() {
            return None;
        }
        // A process that dies or times out leaves a test that it did not finish.
        let is_unfinished = |outcome: Outcome| matches!(outcome, Outcome::Absent | Outcome::Error);
        let is_finished = !report.tests.is_empty()
            && !report.tests.iter().any(|test| is_unfinished(test.outcome));
        is_finished.then_some(SentinelEnd::Missing)
    }
}

/// End of a test that must fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SentinelEnd {
    Failed,
    Passed,
    /// The test did not run, although all other tests did.
    Missing,
}

/// The outcomes of a run, and what shows that they are forged.
#[derive(Debug, Default)]
pub(super) struct CheckedRun {
    /// Report without the sentinel.
    pub report: TestReport,
    contradiction: Option<&'static str>,
    sentinel: Option<SentinelEnd>,
}

impl CheckedRun {
    fn new(ran: RunRecord, sentinel: Option<&Sentinel>) -> CheckedRun {
        let mut report = ran.answer.report;
        let Some(sentinel) = sentinel else {
            return CheckedRun {
                report,
                ..CheckedRun::default()
            };
        };
        let contradiction = contradiction(&report).or_else(|| {
            let why = "the recorded outcomes contradict the end of the process";
            report.contradicted.then_some(why)
        });
        CheckedRun {
            contradiction,
            sentinel: sentinel.take(&mut report),
            report,
        }
    }

    /// Returns why the outcomes are forged, if they are. `reference` is a run of the same tests on trusted code. If it
    /// shows the same, the repository is the cause.
    pub(super) fn forgery(&self, reference: &CheckedRun) -> Option<&'static str> {
        let ends = (self.sentinel, reference.sentinel);
        match ends {
            (Some(SentinelEnd::Passed), Some(SentinelEnd::Failed) | None) => {
                Some("a test that must fail passed with this patch")
            }
            (Some(SentinelEnd::Missing), Some(SentinelEnd::Failed)) => {
                Some("a test that must fail did not run with this patch")
            }
            _ if reference.contradiction.is_none() => self.contradiction,
            _ => None,
        }
    }
}

impl Harness {
    /// Runs tests with a sentinel, if the runner is pytest. The sentinel's name comes from a digest of the code and of
    /// the tests, so the code cannot contain it, and the run can be cached.
    pub(super) async fn run_with_sentinel(
        &self,
        state: &CodeState,
        files: &Files,
        ids: &[String],
        hash_seed: u32,
        timeline: &Timeline<'_>,
    ) -> Result<CheckedRun, GradingFailure> {
        let mut key = RecordKey::new(self);
        key.add(b"sentinel");
        key.state(state);
        key.files(files);
        let is_pytest = state.environment.recipe.runner.kind == "pytest";
        let sentinel = is_pytest
            .then(|| Sentinel::new(&key.digest(), ids))
            .flatten();
        let (mut files, mut ids) = (files.clone(), ids.to_vec());
        if let Some(sentinel) = &sentinel {
            files.insert(sentinel.path.clone(), Some(sentinel.file()));
            // It runs last, so it also shows what the tests before it changed.
            ids.push(sentinel.path.clone());
        }
        let run = TestRun {
            state,
            files: &files,
            ids,
            measure: Vec::new(),
            counted: false,
            until: Lines::new(),
            of_prediction: true,
            hash_seed,
            part: Activity::New,
        };
        let ran = self.run(&run, timeline).await.map_err(at_stage("new"))?;
        Ok(CheckedRun::new(ran, sentinel.as_ref()))
    }
}

#[cfg(test)]
mod tests;
