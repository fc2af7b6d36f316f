//! Makes one test run, in as many pytest processes as it takes to get an outcome for every test.
//!
//! pytest runs nothing at all if an id is unknown, a conftest file is broken, or an option belongs to a missing plugin.
//! Therefore pytest gets files, and the plugin selects the ids. Tests below a broken conftest are errors, and the other
//! tests run without it. If pytest refuses the options, the run is repeated once with `addopts` emptied; the first line
//! of [`TestReport::printed`] then says so.

use std::time::Instant;

use super::super::Run;
use super::command::{Addopts, Arguments, prepare};
use super::fork_server;
use crate::error::{Result, ToolError};
use crate::outcomes::report::{Outcome, TestReport, TestResult};
use crate::outcomes::{
    Classifier, Session, USAGE_EXIT_CODE, covers, file_of, files_of, merge_reports, normalize,
    seconds,
};
use crate::process::ProcessOutput;

/// Runs the tests below `ids`.
pub(crate) fn run(run: &mut Run<'_>, ids: &[String]) -> Result<TestReport> {
    run_with_addopts(run, ids, Addopts::Kept)
}

fn run_with_addopts(run: &mut Run<'_>, ids: &[String], addopts: Addopts) -> Result<TestReport> {
    let (checkout, options) = (run.checkout, run.options);
    let root = checkout.root();
    let files = files_of(ids);
    let config = checkout.config();
    let arguments = Arguments {
        folder: run.folder.clone(),
        files: files.clone(),
        addopts,
        keyword: options.keyword.clone(),
    };
    let (mut session, finished) = one_process(run, &arguments, ids)?;
    run.done.is_whole = session.is_whole();
    run.done.imported = std::mem::take(&mut session.imported);
    run.done.items.append(&mut session.items);
    let printed = normalize(&finished.stdout.text(), root);

    let conftests = session.broken_conftests();
    let (started, plans_nothing) = (session.started, session.plans_nothing());
    let classifier = Classifier {
        layout: checkout.layout(),
        root,
    };
    let in_time = !finished.timed_out() && Instant::now() < options.deadline;
    let failed_to_start = !started && in_time;
    if failed_to_start && conftests.is_empty() {
        if printed.contains("No module named pytest") {
            return Err(ToolError::Broken(format!(
                "pytest is not installed for {}",
                config.python.display()
            )));
        }
        if addopts == Addopts::Kept {
            let mut report = run_with_addopts(run, ids, Addopts::Dropped)?;
            let note = "[run without the repository's addopts, which pytest refused]\n";
            report.printed.insert_str(0, note);
            return Ok(report);
        }
    }
    let is_usage_error = finished.exit_code() == Some(USAGE_EXIT_CODE);
    let stuck = in_time && started && plans_nothing && is_usage_error;
    if stuck && files.len() > 1 {
        return run_files_separately(run, ids, &files, addopts);
    }

    let affected = |id: &String| {
        let mut folders = (conftests.iter()).filter_map(|c| c.strip_suffix("conftest.py"));
        folders.any(|folder| id.starts_with(folder))
    };
    let (beneath, other_ids): (Vec<String>, Vec<String>) = ids.iter().cloned().partition(affected);
    let split = failed_to_start && !other_ids.is_empty() && !beneath.is_empty();
    let mut requested_ids: Vec<String> = if split { beneath } else { ids.to_vec() };
    for id in &options.first {
        if !requested_ids.contains(id) && requested_ids.iter().any(|above| covers(above, id)) {
            requested_ids.push(id.clone());
        }
    }
    let mut report = session.report(&requested_ids, finished.ended, printed, &classifier);
    report.seconds = seconds(finished.took);
    report.contradicted |=
        finished.exit_code() == Some(0) && has_failures(&report) && !options.collect_only;
    if split {
        report = merge_reports([report, run_with_addopts(run, &other_ids, addopts)?]);
    }
    Ok(report)
}

/// Runs one process, and returns its recorded session and how it ended.
fn one_process(
    run: &mut Run<'_>,
    arguments: &Arguments,
    ids: &[String],
) -> Result<(Session, ProcessOutput)> {
    let (config, root) = (run.checkout.config(), run.checkout.root());
    let (mut command, mut recording) = prepare(config, root, arguments, ids, run.options)?;
    let is_warm = fork_server::is_possible(run);
    if is_warm && let Some(finished) = fork_server::run(run, arguments, ids, &mut recording) {
        let session = Session::new(recording.read());
        if session.is_whole() {
            fork_server::preload(&session.imported);
            return Ok((session, finished));
        }
        fork_server::stop();
        (command, recording) = prepare(config, root, arguments, ids, run.options)?;
    }
    let finished = run.process(command, &mut recording.report)?;
    let session = Session::new(recording.read());
    if is_warm && session.is_whole() && !finished.timed_out() {
        fork_server::start(run, arguments, ids, finished.took, &session);
    }
    Ok((session, finished))
}

fn has_failures(report: &TestReport) -> bool {
    let failed = |test: &TestResult| matches!(test.outcome, Outcome::Failed | Outcome::Error);
    report.tests.iter().any(failed) || !report.collection_errors.is_empty()
}

/// Runs each file separately, so that a file that pytest rejects does not stop the others.
fn run_files_separately(
    run: &mut Run<'_>,
    ids: &[String],
    files: &[String],
    addopts: Addopts,
) -> Result<TestReport> {
    let reports = files.iter().map(|file| {
        let of_file = ids.iter().filter(|id| file_of(id) == file).cloned();
        run_with_addopts(run, &of_file.collect::<Vec<_>>(), addopts)
    });
    Ok(merge_reports(reports.collect::<Result<Vec<_>>>()?))
}
