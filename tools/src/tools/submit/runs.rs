//! The runs that a submission takes.

use std::time::{Duration, Instant};

use crate::outcomes;
use crate::outcomes::report::{Outcome, Report, TestResult, is_of};
use crate::python;
use crate::runners::{self, Options};
use crate::tool::{Context, ToolError};
use crate::tools::contribution;
use crate::tools::run_pytest::failing;
use crate::tools::submission::{Change, ContributedTest, Rerun, SiblingTests};
use crate::workspace::{FileChange, Workspace};

use super::sibling_tests;

/// Tests that are run alone, each in a process of its own; further ones run together.
const ALONE: usize = 8;

/// Where the run of whole files took too long.
const NOTE: &str =
    "[the changed files took too long as a whole; the contributed tests were run on their own]\n";

pub struct Runs {
    pub before: Option<Report>,
    pub neighbours: Option<SiblingTests>,
    pub old: Report,
    pub reruns: Vec<Rerun>,
}

/// Makes the runs. Each may take a share of the time that is left, so that the later ones get theirs.
pub fn run(
    context: &mut Context<'_>,
    kept: &[FileChange],
    contributed: &[ContributedTest],
) -> Result<Runs, ToolError> {
    let ids = contribution::ids(contributed);
    let is_test = |change: &&FileChange| context.workspace.layout().is_test_file(&change.path);
    let of_kind = |wanted: &[Change]| -> Vec<String> {
        let files = kept
            .iter()
            .filter(is_test)
            .filter(|c| wanted.contains(&c.change));
        files.map(|change| change.path.clone()).collect()
    };
    let modified = of_kind(&[Change::Modified]);
    let changed = of_kind(&[Change::Added, Change::Modified]);
    if changed.is_empty() || ids.is_empty() {
        return Ok(Runs {
            before: None,
            neighbours: None,
            old: Report::default(),
            reruns: Vec::new(),
        });
    }

    let mut options = Options::until(share(context, 3));
    options.trace.clone_from(&ids);
    let mut old = runners::run(context.workspace.checkout(), &changed, &options)?;
    let is_whole = !old.timed_out;
    if !is_whole {
        options.deadline = share(context, 3);
        let of_contributed = runners::run(context.workspace.checkout(), &ids, &options)?;
        old = without_the_rest(old, of_contributed, contributed);
    }
    put_right(context.workspace, kept)?;
    let mut suspects = failing_existing(&old, contributed, &modified);
    if is_whole {
        suspects.extend(unseen(
            context.workspace,
            kept,
            contributed,
            &modified,
            &old,
        ));
    }
    let before = before(context, kept, &modified, &suspects)?;
    put_right(context.workspace, kept)?;
    let failing = failing_ids(&old, contributed);
    let reruns = rerun(context, &failing)?;
    let neighbours = sibling_tests(context, kept)?;
    Ok(Runs {
        before,
        neighbours,
        old,
        reruns,
    })
}

/// How existing tests do, where the patch has files that they may use.
fn sibling_tests(
    context: &mut Context<'_>,
    kept: &[FileChange],
) -> Result<Option<SiblingTests>, ToolError> {
    let shared = sibling_tests::shared(context.workspace, kept);
    let files = sibling_tests::of(context.workspace, &shared, kept);
    if files.is_empty() {
        return Ok(None);
    }
    put_right(context.workspace, kept)?;
    let options = Options::until(share(context, 3));
    let now = runners::run(context.workspace.checkout(), &files, &options)?;
    put_right(context.workspace, kept)?;
    let options = Options::until(share(context, 2));
    let before = with_base(context.workspace, kept, |workspace| {
        runners::run(workspace.checkout(), &files, &options)
    })?;
    put_right(context.workspace, kept)?;
    Ok(Some(sibling_tests::compared(shared, before, now)))
}

/// How the existing tests that do not pass now, the suspects, did at the base commit.
fn before(
    context: &mut Context<'_>,
    kept: &[FileChange],
    modified: &[String],
    suspects: &[String],
) -> Result<Option<Report>, ToolError> {
    if suspects.is_empty() {
        return Ok(None);
    }
    let options = Options::until(share(context, 4));
    let few = with_base(context.workspace, kept, |workspace| {
        runners::run(workspace.checkout(), suspects, &options)
    })?;
    let passes = |report: &Report| {
        report
            .tests
            .iter()
            .any(|test| test.outcome == Outcome::Passed)
    };
    if !passes(&few) {
        return Ok(Some(few));
    }
    // On its own a test may pass that fails among the others, patch or not: only like runs can be compared.
    let options = Options::until(share(context, 3));
    let mut whole = with_base(context.workspace, kept, |workspace| {
        runners::run(workspace.checkout(), modified, &options)
    })?;
    if whole.timed_out {
        whole = few;
    }
    whole
        .tests
        .retain(|test| suspects.iter().any(|id| outcomes::covers(id, &test.id)));
    Ok(Some(whole))
}

/// Is it a test of a modified file that the patch did not contribute?
fn is_existing(id: &str, contributed: &[ContributedTest], modified: &[String]) -> bool {
    modified.iter().any(|file| outcomes::covers(file, id))
        && !contributed.iter().any(|t| outcomes::covers(&t.id, id))
}

/// Existing tests in modified files that failed.
fn failing_existing(
    old: &Report,
    contributed: &[ContributedTest],
    modified: &[String],
) -> Vec<String> {
    failing(old)
        .map(|t| t.id.clone())
        .filter(|id| is_existing(id, contributed, modified))
        .collect()
}

/// Existing tests in modified files that a run of all of them, which went to its end, did not see.
fn unseen(
    workspace: &Workspace,
    kept: &[FileChange],
    contributed: &[ContributedTest],
    modified: &[String],
    old: &Report,
) -> Vec<String> {
    let mut found = Vec::new();
    let files = kept.iter().filter(|change| modified.contains(&change.path));
    for change in files {
        let Some(base) = &change.base else { continue };
        // All test functions of the file as it was.
        let then = python::contributed(
            &change.path,
            None,
            &contribution::lossy(base),
            workspace.layout(),
        );
        let unseen = then.into_iter().map(|test| test.id).filter(|id| {
            is_existing(id, contributed, modified)
                && !old.tests.iter().any(|test| outcomes::covers(id, &test.id))
        });
        found.extend(unseen);
    }
    found
}

fn share(context: &Context<'_>, parts: u32) -> Instant {
    let most = Duration::from_secs(context.workspace.config().test_seconds);
    Instant::now() + most.min(context.left() / parts)
}

/// The files ran too long as a whole: what they showed until then, and the contributed tests on their own.
fn without_the_rest(whole: Report, mut own: Report, contributed: &[ContributedTest]) -> Report {
    let mut tests: Vec<TestResult> = whole
        .tests
        .into_iter()
        .filter(|test| test.outcome != Outcome::Absent && !is_contributed(&test.id, contributed))
        .collect();
    tests.append(&mut own.tests);
    own.tests = tests;
    own.printed.insert_str(0, NOTE);
    own.seconds += whole.seconds;
    own
}

/// Runs something with the kept changes taken back, and makes them again.
fn with_base<T>(
    workspace: &mut Workspace,
    kept: &[FileChange],
    work: impl FnOnce(&Workspace) -> Result<T, ToolError>,
) -> Result<T, ToolError> {
    let base = kept
        .iter()
        .try_for_each(|change| workspace.restore(super::path(change)));
    let result = base.and_then(|()| work(workspace));
    for change in kept {
        if let Some(bytes) = &change.now {
            workspace.write(super::path(change), bytes)?;
        }
    }
    result
}

/// What a run of the tests changed must not decide on the next one.
fn put_right(workspace: &mut Workspace, kept: &[FileChange]) -> Result<(), ToolError> {
    for change in workspace.changes()? {
        let path = super::path(&change);
        let wanted = kept.iter().find(|wanted| wanted.path == change.path);
        let put = match wanted.map(|wanted| &wanted.now) {
            Some(now) if *now == change.now => continue,
            Some(Some(bytes)) => workspace.write(path, bytes),
            _ => workspace.restore(path),
        };
        match put {
            // Generated when the environment was built: what it held is not known.
            Err(ToolError::Refused(_)) | Ok(()) => {}
            Err(broken) => return Err(broken),
        }
    }
    for wanted in kept {
        let there = workspace.root().join(&wanted.path);
        if let Some(bytes) = &wanted.now
            && !there.exists()
        {
            workspace.write(super::path(wanted), bytes)?;
        }
    }
    Ok(())
}

fn rerun(context: &Context<'_>, ids: &[String]) -> Result<Vec<Rerun>, ToolError> {
    let mut reruns = Vec::new();
    if ids.is_empty() {
        return Ok(reruns);
    }
    for (hash_seed, order, parts) in [(1, "given", 4), (2, "reversed", 3), (3, "alone", 1)] {
        let mut options = Options::until(share(context, parts));
        options.hash_seed = hash_seed;
        options.reversed = order == "reversed";
        let report = if order == "alone" {
            alone(context.workspace, ids, &options)?
        } else {
            runners::run(context.workspace.checkout(), ids, &options)?
        };
        reruns.push(Rerun {
            hash_seed,
            order: order.to_owned(),
            report,
        });
    }
    Ok(reruns)
}

fn alone(workspace: &Workspace, ids: &[String], options: &Options) -> Result<Report, ToolError> {
    let (single, together) = ids.split_at(ids.len().min(ALONE));
    let mut all: Option<Report> = None;
    let groups = single
        .chunks(1)
        .chain(Some(together).filter(|rest| !rest.is_empty()));
    for group in groups {
        let report = runners::run(workspace.checkout(), group, options)?;
        all = Some(match all {
            Some(first) => outcomes::join(first, report),
            None => report,
        });
    }
    Ok(all.unwrap_or_default())
}

fn is_contributed(id: &str, contributed: &[ContributedTest]) -> bool {
    let mut present = contributed
        .iter()
        .filter(|test| test.change != Change::Deleted);
    present.any(|test| is_of(id, &test.id))
}

/// The contributed tests that failed.
pub fn contributed_failures<'a>(
    old: &'a Report,
    contributed: &'a [ContributedTest],
) -> impl Iterator<Item = &'a TestResult> {
    failing(old).filter(|test| is_contributed(&test.id, contributed))
}

/// What is to fail again: the failing contributed tests, and those in modules that could not be collected.
fn failing_ids(old: &Report, contributed: &[ContributedTest]) -> Vec<String> {
    let mut ids: Vec<String> = contributed_failures(old, contributed)
        .map(|test| test.id.clone())
        .collect();
    for error in &old.collection_errors {
        let inside = |id: &String| {
            id.strip_prefix(&error.id)
                .is_some_and(|rest| rest.starts_with("::"))
        };
        for id in contribution::ids(contributed).into_iter().filter(inside) {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
    }
    ids
}
