//! Makes the test runs of a submission.

use crate::outcomes;
use crate::outcomes::report::{Outcome, TestReport, TestResult};
use crate::python;
use crate::runners::{self, Options};
use crate::tool::{Context, Result, ToolError};
use crate::tools::contribution;
use crate::tools::run_pytest::failing;
use crate::tools::submission::{Change, ContributedTest, Rerun, SiblingTests};
use crate::workspace::{FileChange, Workspace};

use super::failures::is_contributed;
use super::{placebo_run, reruns, sibling_tests};

/// Printed if the run of whole files took too long.
const TIMEOUT_NOTE: &str =
    "[the changed files took too long as a whole; the contributed tests were run on their own]\n";

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
        return Ok(Runs {
            before: None,
            changed_before: None,
            neighbours: None,
            old: TestReport::default(),
            reruns: Vec::new(),
        });
    }
    let existing_tests = ExistingTests {
        kept_changes,
        contributed,
        modified: &modified,
    };
    if let Some((old, reruns)) = reruns::with_others(context, &changed, &ids, contributed)? {
        revert_test_changes(context.workspace, kept_changes)?;
        let suspects = existing_tests.suspects(context.workspace, &old);
        let before = before(context, kept_changes, &modified, &suspects)?;
        // A test that failed in a concurrent run may pass without the others.
        if !before.as_ref().is_some_and(any_passes) {
            revert_test_changes(context.workspace, kept_changes)?;
            return finish(context, kept_changes, contributed, before, old, reruns);
        }
    }
    let mut options = Options::with_deadline(context.share_of_time(3));
    options.trace.clone_from(&ids);
    options.whole_values.clone_from(&ids);
    let mut old = runners::run(context.workspace.checkout(), &changed, &options)?;
    let is_whole = !old.timed_out;
    if !is_whole {
        options.deadline = context.share_of_time(3);
        let of_contributed = runners::run(context.workspace.checkout(), &ids, &options)?;
        old = without_the_rest(old, of_contributed, contributed);
    }
    revert_test_changes(context.workspace, kept_changes)?;
    let suspects = match is_whole {
        true => existing_tests.suspects(context.workspace, &old),
        false => existing_tests.failing(&old),
    };
    let before = before(context, kept_changes, &modified, &suspects)?;
    revert_test_changes(context.workspace, kept_changes)?;
    let reruns = reruns::one_by_one(context, &old, contributed)?;
    finish(context, kept_changes, contributed, before, old, reruns)
}

fn finish(
    context: &mut Context<'_>,
    kept_changes: &[FileChange],
    contributed: &[ContributedTest],
    before: Option<TestReport>,
    old: TestReport,
    mut reruns: Vec<Rerun>,
) -> Result<Runs> {
    let neighbours = sibling_tests(context, kept_changes)?;
    let changed_before = changed_before(context, kept_changes, contributed)?;
    // The last run and the only one at that time, because it changes files that all tests share.
    reruns.extend(placebo_run::rerun(
        context,
        kept_changes,
        contributed,
        &old,
    )?);
    revert_test_changes(context.workspace, kept_changes)?;
    Ok(Runs {
        before,
        changed_before,
        neighbours,
        old,
        reruns,
    })
}

/// Runs existing tests, if the patch contains files that they may use.
fn sibling_tests(
    context: &mut Context<'_>,
    kept_changes: &[FileChange],
) -> Result<Option<SiblingTests>> {
    let shared = sibling_tests::shared(context.workspace, kept_changes);
    let files = sibling_tests::find_files(context.workspace, &shared, kept_changes);
    if files.is_empty() {
        return Ok(None);
    }
    revert_test_changes(context.workspace, kept_changes)?;
    let options = Options::with_deadline(context.share_of_time(3));
    let now = runners::run(context.workspace.checkout(), &files, &options)?;
    revert_test_changes(context.workspace, kept_changes)?;
    let before = run_at_base(context, kept_changes, &files, 2)?;
    revert_test_changes(context.workspace, kept_changes)?;
    Ok(Some(sibling_tests::compared(shared, before, now)))
}

/// Runs the existing tests that do not pass now, the suspects, at the base commit.
fn before(
    context: &mut Context<'_>,
    kept_changes: &[FileChange],
    modified: &[String],
    suspects: &[String],
) -> Result<Option<TestReport>> {
    if suspects.is_empty() {
        return Ok(None);
    }
    let few = run_at_base(context, kept_changes, suspects, 4)?;
    if !any_passes(&few) {
        return Ok(Some(few));
    }
    // A test may pass on its own but fail among others, with or without the patch, so only equal runs are comparable.
    let mut whole = run_at_base(context, kept_changes, modified, 3)?;
    if whole.timed_out {
        whole = few;
    }
    whole
        .tests
        .retain(|test| suspects.iter().any(|id| outcomes::covers(id, &test.id)));
    Ok(Some(whole))
}

/// Runs the tests that the patch changes at the base commit.
fn changed_before(
    context: &mut Context<'_>,
    kept_changes: &[FileChange],
    contributed: &[ContributedTest],
) -> Result<Option<TestReport>> {
    let is_changed = |test: &&ContributedTest| test.change == Change::Modified;
    let changed = contributed.iter().filter(is_changed);
    let ids: Vec<String> = changed.map(|test| test.id.clone()).collect();
    if ids.is_empty() {
        return Ok(None);
    }
    let report = run_at_base(context, kept_changes, &ids, 2)?;
    revert_test_changes(context.workspace, kept_changes)?;
    Ok(Some(report))
}

fn any_passes(report: &TestReport) -> bool {
    let mut tests = report.tests.iter();
    tests.any(|test| test.outcome == Outcome::Passed)
}

/// The tests of modified files that the patch did not contribute.
struct ExistingTests<'a> {
    kept_changes: &'a [FileChange],
    contributed: &'a [ContributedTest],
    /// Paths of the modified files.
    modified: &'a [String],
}

impl ExistingTests<'_> {
    fn contain(&self, id: &str) -> bool {
        self.modified.iter().any(|file| outcomes::covers(file, id))
            && !self.contributed.iter().any(|t| outcomes::covers(&t.id, id))
    }

    /// Returns those that failed, or that are missing from a complete run.
    fn suspects(&self, workspace: &Workspace, old: &TestReport) -> Vec<String> {
        let mut suspects = self.failing(old);
        suspects.extend(self.unseen(workspace, old));
        suspects
    }

    fn failing(&self, old: &TestReport) -> Vec<String> {
        let ids = failing(old).map(|test| test.id.clone());
        ids.filter(|id| self.contain(id)).collect()
    }

    /// Returns those that are missing from a complete run.
    fn unseen(&self, workspace: &Workspace, old: &TestReport) -> Vec<String> {
        let mut ids = Vec::new();
        let is_modified = |change: &&FileChange| self.modified.contains(&change.path);
        for change in self.kept_changes.iter().filter(is_modified) {
            let Some(base) = &change.base else { continue };
            // All test functions of the original file.
            let then = python::contributed(
                &change.path,
                None,
                &contribution::lossy(base),
                workspace.layout(),
            );
            let unseen = then.into_iter().map(|test| test.id).filter(|id| {
                self.contain(id) && !old.tests.iter().any(|test| outcomes::covers(id, &test.id))
            });
            ids.extend(unseen);
        }
        ids
    }
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

/// Runs tests for `1/parts` of the time left, with the kept changes reverted. Then reapplies these.
fn run_at_base(
    context: &mut Context<'_>,
    kept_changes: &[FileChange],
    targets: &[String],
    parts: u32,
) -> Result<TestReport> {
    let options = Options::with_deadline(context.share_of_time(parts));
    let workspace = &mut *context.workspace;
    let base = kept_changes
        .iter()
        .try_for_each(|change| workspace.restore(super::path(change)));
    let result = base.and_then(|()| runners::run(workspace.checkout(), targets, &options));
    for change in kept_changes {
        if let Some(bytes) = &change.now {
            workspace.write(super::path(change), bytes)?;
        }
    }
    result
}

/// Reverts changes that a test run made, so that they do not influence the next run.
fn revert_test_changes(workspace: &mut Workspace, kept_changes: &[FileChange]) -> Result<()> {
    for change in workspace.changes()? {
        let path = super::path(&change);
        let kept_change = kept_changes.iter().find(|other| other.path == change.path);
        let put = match kept_change.map(|kept_change| &kept_change.now) {
            Some(now) if *now == change.now => continue,
            Some(Some(bytes)) => workspace.write(path, bytes),
            _ => workspace.restore(path),
        };
        match put {
            // The content of files that were generated with the environment is not known.
            Err(ToolError::Refused(_)) | Ok(()) => {}
            Err(broken) => return Err(broken),
        }
    }
    for kept_change in kept_changes {
        let there = workspace.root().join(&kept_change.path);
        if let Some(bytes) = &kept_change.now
            && !there.exists()
        {
            workspace.write(super::path(kept_change), bytes)?;
        }
    }
    Ok(())
}
