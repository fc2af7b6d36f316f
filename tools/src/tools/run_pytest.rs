//! `run_pytest`: runs tests and reports their outcomes.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contribution::{self, named_or_contributed};
use super::line_numbers::lines_between;
use crate::outcomes::report::{TestReport, TestResult};
use crate::outcomes::{covers, file_of, text};
use crate::python::{Module, flatten, in_function, lines_in_words, unreached_assertions};
use crate::runners::{self, Options};
use crate::similarity::most_similar;
use crate::tool::{Context, Reply, Result, Tool};
use crate::workspace::Workspace;

/// A tool that runs tests.
pub struct RunPytest;

/// Arguments of `run_pytest`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunPytestArgs {
    /// Node ids or files.
    #[serde(default)]
    #[schemars(extend("plain" = true), example = ["tests/test_module.py::test_empty"])]
    tests: Vec<String>,
    /// pytest's -k.
    #[schemars(extend("unlisted" = true))]
    keyword: Option<String>,
    /// Maximum seconds for the run.
    #[schemars(extend("unlisted" = true))]
    timeout: Option<u64>,
}

/// Result data for programs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TestRun {
    #[serde(flatten)]
    report: TestReport,
    /// Whether the requested tests include added or changed ones.
    contributed: bool,
}

impl Tool for RunPytest {
    type Args = RunPytestArgs;
    type Data = TestRun;
    const NAME: &'static str = "run_pytest";
    const TITLE: &'static str = "Run tests";
    const DESCRIPTION: &'static str =
        "Run tests (files, node ids); default: what you added or changed.";
    const SECONDS: u64 = 300;
    const RUNS_CODE: bool = true;

    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>> {
        let ids = named_or_contributed(context.workspace, &args.tests)?;
        let mut options = Options::with_deadline(deadline(context, args.timeout));
        options.keyword = args.keyword;
        options.may_be_warm = true;
        options.whole_values.clone_from(&ids);
        let report = runners::run(context.workspace.checkout(), &ids, &options)?;
        let mut answer = text::text(&report);
        answer.push_str(&not_reached(context.workspace, &report));
        answer.push_str(&ids_with_spaces(context.workspace, &report)?);
        for id in &report.not_found {
            if !id.contains("::") && context.workspace.root().join(id).exists() {
                let note = format!("\n{id} is there, but pytest collects no tests from it");
                answer.push_str(&note);
                continue;
            }
            let near = nearest(context.workspace, id);
            if !near.is_empty() {
                answer.push_str(&format!("\nnearest to {id}: {}", near.join(", ")));
            }
        }
        // A missing id may have been meant for a contributed test.
        let contributed = args.tests.is_empty()
            || !report.not_found.is_empty()
            || contribution::includes_contributed(context.workspace, &ids)?;
        Ok(Reply::new(
            answer,
            TestRun {
                report,
                contributed,
            },
        ))
    }
}

/// Maximum number of tests whose unreached assertions are listed.
const MAX_UNREACHED: usize = 6;

/// Lists the failing tests with assertions that did not run because an earlier one failed, one per line.
fn not_reached(workspace: &Workspace, report: &TestReport) -> String {
    let mut out = String::new();
    for test in failing(report).take(MAX_UNREACHED) {
        let file = file_of(&test.id);
        let frames = test.failure.iter().flat_map(|failure| &failure.frames);
        let Some(frame) = frames.clone().find(|frame| frame.file == file) else {
            continue;
        };
        let path = workspace.resolve(file);
        let Ok(text) = path.and_then(|path| workspace.read_text(&path)) else {
            continue;
        };
        let line = frame.line as usize;
        let outline = Module::parse(text.as_str()).outline();
        let Some(definition) = in_function(&outline, line) else {
            continue;
        };
        let source = lines_between(&text, definition.first, definition.last);
        let unreached = unreached_assertions(&source, definition.first, line);
        if !unreached.is_empty() {
            let (id, lines) = (&test.id, lines_in_words(&unreached));
            out.push_str(&format!(
                "\nnot reached in {id}: {lines} (a fix in try_fix that gets past line {line} runs them)"
            ));
        }
    }
    out
}

/// Warns about contributed tests whose parameter ids contain spaces: programs that read pytest's output end ids there.
fn ids_with_spaces(workspace: &mut Workspace, report: &TestReport) -> Result<String> {
    let ids = report.tests.iter().map(|test| test.id.as_str());
    let with_space: Vec<&str> = ids
        .filter(|id| id.split_once('[').is_some_and(|(_, p)| p.contains(' ')))
        .collect();
    if with_space.is_empty() {
        return Ok(String::new());
    }
    let contributed = contribution::ids(&contribution::of_workspace(workspace)?);
    let is_contributed = |id: &&&str| contributed.iter().any(|above| covers(above, id));
    let id_with_space = with_space.iter().find(is_contributed);
    Ok(id_with_space.map_or_else(String::new, |id| {
        format!("\nThe id {id} holds spaces, at which many programs cut ids: give short `ids=`.")
    }))
}

/// Returns the deadline of a test run, limited by the caller's request, the configuration, and the call's own
/// deadline.
pub fn deadline(context: &Context<'_>, requested_seconds: Option<u64>) -> Instant {
    let max_seconds = context.workspace.config().test_seconds;
    let seconds = requested_seconds.unwrap_or(max_seconds);
    context.deadline_after(Duration::from_secs(seconds.clamp(1, max_seconds.max(1))))
}

/// Suggests node ids of functions in the same file, or paths of files, for a mistyped id.
fn nearest(workspace: &Workspace, id: &str) -> Vec<String> {
    let Some((path, name)) = id.split_once("::") else {
        return workspace.nearest(id);
    };
    let Some(source) = (workspace.resolve(path).ok()).and_then(|p| workspace.read_text(&p).ok())
    else {
        return workspace.nearest(path);
    };
    let layout = workspace.layout();
    let outline = Module::parse(source).outline();
    let tests = flatten(&outline).into_iter();
    let names = tests
        .filter(|d| layout.is_test_function(&d.name))
        .map(|d| d.qualified.replace('.', "::"));
    let near = most_similar(names, name.split('[').next().unwrap_or(name));
    near.iter().map(|n| format!("{path}::{n}")).collect()
}

/// Returns the failing tests of a report.
pub fn failing(report: &TestReport) -> impl Iterator<Item = &TestResult> {
    report.tests.iter().filter(|test| test.outcome.is_bad())
}
