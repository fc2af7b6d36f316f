//! `submit`: gathers the facts that the gate decides on.
//!
//! Files that cannot be part of a test patch are restored to the base commit permanently, and named. Then the tests
//! run: the changed files in their old state, the changed files in their new state, and failing tests four more times,
//! the last time with a placebo in the code under test.

mod code_dependencies;
mod failures;
mod invented_frames;
mod placebo_run;
mod replacements;
mod reruns;
mod runs;
mod shadowed_modules;
mod sibling_tests;
mod skip_marks;
pub(super) mod split_patch;

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use super::contribution;
use super::line_numbers::count;
use super::run_pytest::failing;
use crate::outcomes::RECORDER_NAMES;
use crate::outcomes::text::one_line;
use crate::python::Module;
use crate::tool::{Context, Reply, Result, Route, Tool, ToolError};
use crate::tools::submission::{
    Change, ChangedFile, ContributedTest, Problem, ProblemKind, Submission,
};
use crate::workspace::{FileChange, decode_source};
use split_patch::SplitPatch;

/// A tool that gathers the facts about a submission, for the gate.
pub struct Submit;

/// Arguments of `submit`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitArgs {
    /// The sentence that the test checks; why its input differs from the example.
    #[expect(dead_code, reason = "read by the host from the call")]
    reason: Option<String>,
    /// `false`: it cannot fail here.
    #[expect(dead_code, reason = "read by the host from the call")]
    reproducible: Option<bool>,
}

impl Tool for Submit {
    type Args = SubmitArgs;
    type Data = Submission;
    const NAME: &'static str = "submit";
    const TITLE: &'static str = "Submit the tests";
    const IS_IDEMPOTENT: bool = true;
    const DESCRIPTION: &'static str = "Hand in your tests.";
    const ROUTE: Route = Route::Gate;
    const SECONDS: u64 = 1200;
    const RUNS_CODE: bool = true;

    fn call(&self, context: &mut Context<'_>, _: Self::Args) -> Result<Reply<Self::Data>> {
        let submission = gather(context)?;
        Ok(Reply::new(summary(&submission), submission))
    }
}

fn gather(context: &mut Context<'_>) -> Result<Submission> {
    let SplitPatch {
        kept,
        files,
        mut problems,
    } = split_patch::split_patch(context.workspace)?;
    let mut contributed = contribution::collected(context.workspace, &kept)?;
    problems.extend(static_problems(&kept, &contributed));
    let patch = context.workspace.patch(&kept);
    let runs = runs::run(context, &kept, &contributed)?;
    replacements::add_replaced_code(&mut contributed, &runs.old, &kept);
    let invented_frames = invented_frames::list(context.workspace, &runs.old, &contributed);
    Ok(Submission {
        patch,
        files,
        contributed,
        problems,
        before: runs.before,
        changed_before: runs.changed_before,
        neighbours: runs.neighbours,
        old: runs.old,
        reruns: runs.reruns,
        invented_frames,
    })
}

/// Finds problems of the contributed tests that are visible without running them.
fn static_problems(kept_changes: &[FileChange], contributed: &[ContributedTest]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut add = |kind, text: String| problems.push(Problem { kind, text });
    if contribution::ids(contributed).is_empty() {
        add(
            ProblemKind::NothingContributed,
            "No test function was added or changed.".to_owned(),
        );
    }
    let is_deleted = |test: &&ContributedTest| test.change == Change::Deleted;
    for ContributedTest { id, .. } in contributed.iter().filter(is_deleted) {
        let text = format!("The existing test {id} was deleted or renamed; put it back.");
        add(ProblemKind::DeletedTests, text);
    }
    for change in kept_changes {
        if let Some(name) = introduced_recorder_name(change) {
            let text = format!(
                "{} names `{name}`, which records test outcomes; tests must not use it.",
                change.path
            );
            add(ProblemKind::Settings, text);
        }
    }
    let is_python = |change: &&FileChange| change.path.ends_with(".py");
    for change in kept_changes.iter().filter(is_python) {
        let module = |bytes: &Option<Vec<u8>>| {
            let text = bytes.as_deref().map(decode_source);
            text.map(Module::parse)
        };
        let (base, Some(now)) = (module(&change.base), module(&change.now)) else {
            continue;
        };
        if let Some(error) = now.new_errors(base.as_ref()).first() {
            let text = format!(
                "{} does not parse: line {}: {}.",
                change.path, error.line, error.what
            );
            add(ProblemKind::Syntax, text);
        }
        for text in skip_marks::in_file(&change.path, base.as_ref(), &now, contributed) {
            add(ProblemKind::Vacuous, text);
        }
    }
    problems
}

/// Returns the name of recording code that the change introduces, if any.
fn introduced_recorder_name(change: &FileChange) -> Option<&'static str> {
    let has = |content: &Option<Vec<u8>>, name: &str| {
        let content = content.as_deref().unwrap_or_default();
        content.windows(name.len()).any(|at| at == name.as_bytes())
    };
    let mut names = RECORDER_NAMES.iter().copied();
    names.find(|name| has(&change.now, name) && !has(&change.base, name))
}

fn summary(submission: &Submission) -> String {
    let mut lines = Vec::new();
    let present = contribution::ids(&submission.contributed);
    lines.push(count(present.len(), "contributed test") + ".");
    let problems = submission.problems.iter();
    lines.extend(problems.map(|problem| problem.text.clone()));
    for test in failures::contributed_failures(&submission.old, &submission.contributed) {
        let line = test.failure.as_ref().map(one_line).unwrap_or_default();
        let reruns = submission
            .reruns
            .iter()
            .filter(|rerun| !rerun.has_placebo());
        let (again, others): (Vec<_>, Vec<_>) =
            reruns.partition(|rerun| failing(&rerun.report).any(|failed| failed.id == test.id));
        let (again, all) = (again.len(), again.len() + others.len());
        lines.push(format!(
            "{} fails: {line} (again in {again} of {all} reruns)",
            test.id
        ));
    }
    for error in &submission.old.collection_errors {
        lines.push(format!(
            "{} could not be collected: {}",
            error.id,
            one_line(&error.failure)
        ));
    }
    for file in submission.files.iter().filter(|file| !file.kept) {
        let reason = file.reason.as_deref().unwrap_or("not part of the patch");
        lines.push(format!("Put back: {}: {reason}", file.path));
    }
    lines.join("\n")
}

fn changed_file(change: &FileChange, reason: Option<String>) -> ChangedFile {
    ChangedFile {
        path: change.path.clone(),
        change: change.change,
        kept: reason.is_none(),
        reason,
    }
}

/// Accepts a file that cannot be written or restored.
fn unless_refused(written: Result<()>) -> Result<()> {
    match written {
        Err(ToolError::Refused(_)) | Ok(()) => Ok(()),
        Err(broken) => Err(broken),
    }
}

fn path(change: &FileChange) -> &Path {
    Path::new(&change.path)
}
