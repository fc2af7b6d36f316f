//! Makes the test runs of a submission.

use crate::outcomes;
use crate::outcomes::report::{Outcome, TestReport, TestResult};
use crate::python;
use crate::runners::{self, Options};
use crate::tool::{Context, Result};
use crate::tools::collected_tests::without;
use crate::tools::contribution;
use crate::tools::run_pytest::failing;
use crate::tools::submission::{Change, ContributedTest, Rerun, SiblingTests};
use crate::workspace::{FileChange, decode_source};

use super::failures::is_contributed;
use super::{path, placebo_run, reruns, sibling_tests, unless_refused};

/// Printed if the run of whole files took too long.
const TIMEOUT_NOTE: &str =
    "[the changed files took too long as a whole; the contributed tests were run on their own]\n";

#[derive(Default)]
pub(super) struct Runs {
    pub before: Option<TestReport>,
    pub changed_before: Option<TestReport>,
    pub neighbours: Option<SiblingTests>,
    pub old: TestReport,
    pub reruns: Vec<Rerun>,
}

/// Makes the runs. Each may take a share of the time left, so that enough remains for the later ones.
///
/// # Errors
///
/// Fails if a run cannot be made, or the workspace cannot be changed.
pub(super) fn run(
    context: &mut Context<'_>,
    kept_changes: &[FileChange],
    contributed: &[ContributedTest],
) -> Result<Runs> {
    let ids = contribution::ids(contributed);
    let is_test = |change: &&FileChange| context.workspace.layout().is_test_file(&change.path);
    let of_kind = |kinds: &[Change]| -> Vec<String> {
        let files = kept_changes
            .iter()
            .filter(is_test)
            .filter(|c| kinds.contains(&c.change));
        files.map(|change| change.path.clone()).collect()
    };
    let modified = of_kind(&[Change::Modified]);
    let mut changed = of_kind(&[Change::Added, Change::Modified]);
    // Tests that a plugin collects from data files, or in modules that read such files.
    let elsewhere = ids
        .iter()
        .filter(|id| !changed.iter().any(|file| file == outcomes::file_of(id)));
    let elsewhere: Vec<String> = elsewhere.cloned().collect();
    changed.extend(elsewhere);
    if changed.is_empty() || ids.is_empty() {
        return Ok(Runs::default());
    }
    let mut runs = SubmissionRuns {
        context,
        kept_changes,
        contributed,
        modified: &modified,
    };
    if let Some((old, reruns)) = reruns::with_others(runs.context, &changed, &ids, contributed)? {
        runs.revert_test_changes()?;
        let suspects = runs.suspects(&old);
        let before = runs.before(&suspects)?;
        // A test that failed in a concurrent run may pass without the others.
        if !before.as_ref().is_some_and(any_passes) {
            runs.revert_test_changes()?;
            return runs.finish(before, old, reruns);
        }
    }
    let mut options = Options::with_deadline(runs.context.share_of_time(3));
    options.trace.clone_from(&ids);
    options.whole_values.clone_from(&ids);
    let mut old = runs.run(&changed, &options)?;
    let is_whole = !old.timed_out;
    if !is_whole {
        options.deadline = runs.context.share_of_time(3);
        let of_contributed = runs.run(&ids, &options)?;
        old = without_the_rest(old, of_contributed, contributed);
    }
    runs.revert_test_changes()?;
    let suspects = match is_whole {
        true => runs.suspects(&old),
        false => runs.failing(&old),
    };
    let before = runs.before(&suspects)?;
    runs.revert_test_changes()?;
    let reruns = reruns::one_by_one(runs.context, &old, contributed)?;
    runs.finish(before, old, reruns)
}

struct SubmissionRuns<'a, 'w> {
    context: &'a mut Context<'w>,
    kept_changes: &'a [FileChange],
    contributed: &'a [ContributedTest],
    /// Paths of the modified test files.
    modified: &'a [String],
}

impl SubmissionRuns<'_, '_> {
    fn run(&self, ids: &[String], options: &Options) -> Result<TestReport> {
        runners::run(self.context.workspace.checkout(), ids, options)
    }

    fn finish(
        mut self,
        before: Option<TestReport>,
        old: TestReport,
        mut reruns: Vec<Rerun>,
    ) -> Result<Runs> {
        let neighbours = self.sibling_tests()?;
        let changed_before = self.changed_before()?;
        // The last run and the only one at that time, because it changes files that all tests share.
        let (kept_changes, contributed) = (self.kept_changes, self.contributed);
        reruns.extend(placebo_run::rerun(
            self.context,
            kept_changes,
            contributed,
            &old,
        )?);
        self.revert_test_changes()?;
        Ok(Runs {
            before,
            changed_before,
            neighbours,
            old,
            reruns,
        })
    }

    /// Runs existing tests, if the patch contains files that they may use.
    fn sibling_tests(&mut self) -> Result<Option<SiblingTests>> {
        let shared = sibling_tests::shared(self.context.workspace, self.kept_changes);
        let files = sibling_tests::find_files(self.context.workspace, &shared, self.kept_changes);
        if files.is_empty() {
            return Ok(None);
        }
        self.revert_test_changes()?;
        let options = Options::with_deadline(self.context.share_of_time(3));
        let now = self.run(&files, &options)?;
        self.revert_test_changes()?;
        let before = self.run_at_base(&files, 2)?;
        self.revert_test_changes()?;
        Ok(Some(sibling_tests::compared(shared, before, now)))
    }

    /// Runs the existing tests that do not pass now, the suspects, at the base commit.
    fn before(&mut self, suspects: &[String]) -> Result<Option<TestReport>> {
        if suspects.is_empty() {
            return Ok(None);
        }
        let few = self.run_at_base(suspects, 4)?;
        if !any_passes(&few) {
            return Ok(Some(few));
        }
        // A test may pass on its own but fail among others, with or without the patch, so only equal runs are
        // comparable.
        let mut whole = self.run_at_base(self.modified, 3)?;
        if whole.timed_out {
            whole = few;
        }
        whole
            .tests
            .retain(|test| suspects.iter().any(|id| outcomes::covers(id, &test.id)));
        Ok(Some(whole))
    }

    /// Runs the tests that the patch changes at the base commit.
    fn changed_before(&mut self) -> Result<Option<TestReport>> {
        let is_changed = |test: &&ContributedTest| test.change == Change::Modified;
        let changed = self.contributed.iter().filter(is_changed);
        let ids: Vec<String> = changed.map(|test| test.id.clone()).collect();
        if ids.is_empty() {
            return Ok(None);
        }
        let report = self.run_at_base(&ids, 2)?;
        self.revert_test_changes()?;
        Ok(Some(report))
    }

    /// Runs tests for `1/parts` of the time left, with the kept changes reverted. Then reapplies these.
    fn run_at_base(&mut self, targets: &[String], parts: u32) -> Result<TestReport> {
        let options = Options::with_deadline(self.context.share_of_time(parts));
        without(self.context.workspace, self.kept_changes, |workspace| {
            runners::run(workspace.checkout(), targets, &options)
        })
    }

    /// Reverts changes that a test run made, so that they do not influence the next run.
    fn revert_test_changes(&mut self) -> Result<()> {
        let workspace = &mut *self.context.workspace;
        for change in workspace.changes()? {
            let mut kept_changes = self.kept_changes.iter();
            let kept_change = kept_changes.find(|other| other.path == change.path);
            let put = match kept_change.map(|kept_change| &kept_change.now) {
                Some(now) if *now == change.now => continue,
                Some(Some(bytes)) => workspace.write(path(&change), bytes),
                _ => workspace.restore(path(&change)),
            };
            // The content of files that were generated with the environment is not known.
            unless_refused(put)?;
        }
        for kept_change in self.kept_changes {
            let there = workspace.root().join(&kept_change.path);
            if let Some(bytes) = &kept_change.now
                && !there.exists()
            {
                workspace.write(path(kept_change), bytes)?;
            }
        }
        Ok(())
    }

    /// Returns whether a test belongs to a modified file, and the patch does not contribute it.
    fn is_existing(&self, id: &str) -> bool {
        self.modified.iter().any(|file| outcomes::covers(file, id))
            && !self.contributed.iter().any(|t| outcomes::covers(&t.id, id))
    }

    /// Returns the existing tests that failed, or that are missing from a complete run.
    fn suspects(&self, old: &TestReport) -> Vec<String> {
        let mut suspects = self.failing(old);
        let layout = self.context.workspace.layout();
        let is_modified = |change: &&FileChange| self.modified.contains(&change.path);
        for change in self.kept_changes.iter().filter(is_modified) {
            let Some(base) = &change.base else { continue };
            // All test functions of the original file.
            let then = python::contributed(&change.path, None, &decode_source(base), layout);
            suspects.extend(then.into_iter().map(|test| test.id).filter(|id| {
                let mut tests = old.tests.iter();
                self.is_existing(id) && !tests.any(|test| outcomes::covers(id, &test.id))
            }));
        }
        suspects
    }

    fn failing(&self, old: &TestReport) -> Vec<String> {
        let ids = failing(old).map(|test| test.id.clone());
        ids.filter(|id| self.is_existing(id)).collect()
    }
}

fn any_passes(report: &TestReport) -> bool {
    let mut tests = report.tests.iter();
    tests.any(|test| test.outcome == Outcome::Passed)
}

/// Combines the partial results of whole files that took too long with a separate run of the contributed tests.
fn without_the_rest(
    whole: TestReport,
    mut own: TestReport,
    contributed: &[ContributedTest],
) -> TestReport {
    let mut tests: Vec<TestResult> = whole
        .tests
        .into_iter()
        .filter(|test| test.outcome != Outcome::Absent && !is_contributed(&test.id, contributed))
        .collect();
    tests.append(&mut own.tests);
    own.tests = tests;
    own.printed.insert_str(0, TIMEOUT_NOTE);
    own.seconds += whole.seconds;
    own
}
