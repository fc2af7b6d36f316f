//! Runs tests with the runner that the repository uses.

mod program;
mod pytest;
mod recording;

use std::collections::HashSet;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::config::RunnerKind;
use crate::coverage::{Coverage, Measure, Measurement};
use crate::error::Result;
use crate::outcomes::report::TestReport;
use crate::outcomes::{CollectedItem, USAGE_EXIT_CODE, covers, file_of, merge_reports};
use crate::process::{self, Command, ProcessOutput};
use crate::workspace::Checkout;

pub use pytest::enable_warm_runs;
pub(crate) use pytest::{Control, FORKING, MAX_IMPORT_BYTES, MODULE_SYNTAX, Module};

/// Options of a test run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The time when the run must end; tests that ended before it are reported.
    #[serde(skip, default = "Instant::now")]
    pub deadline: Instant,
    /// Value of `PYTHONHASHSEED`.
    pub hash_seed: u32,
    /// Name of the user, and of a link to the home folder; `None` for the usual ones.
    pub user: Option<String>,
    /// Whether to run the tests in reverse order.
    pub reversed: bool,
    /// Tests (node ids, files or folders) for which to fill [`crate::outcomes::report::TestResult::executed`]. This
    /// makes them several times slower on Python before 3.12.
    pub trace: Vec<String>,
    /// pytest's `-k` expression; pytest only.
    pub keyword: Option<String>,
    /// Tests to run before the others (node ids, files or folders, below the requested ones).
    pub first: Vec<String>,
    /// Whether to run each test in its own process, forked once all tests are collected; pytest only.
    pub alone: bool,
    /// Names of functions and classes. Among the tests not in `first`, those that use these names run first; pytest
    /// only.
    pub near: Vec<String>,
    /// Maximum seconds for the tests that are not in `first`; tests that do not start in time are absent.
    pub rest_seconds: Option<u64>,
    /// Whether a repeated run may use a process forked from one that has everything loaded.
    pub may_be_warm: bool,
    /// Tests (node ids, files or folders) whose assertion messages show whole values; pytest only.
    pub whole_values: Vec<String>,
    /// Number that must differ between concurrent runs in the same folders.
    pub lane: usize,
    /// Whether to fill [`DetailedRun::imported`].
    pub tells_imports: bool,
    /// Whether to report tests that replace what decides their outcome (see [`TestReport::tampered`]); pytest only.
    pub guarded: bool,
    /// Collect the tests, and run none; pytest only.
    pub collect_only: bool,
}

impl Options {
    /// Creates options with a deadline and defaults: hash seed 0, usual order, no tracing.
    pub fn with_deadline(deadline: Instant) -> Self {
        Options {
            deadline,
            hash_seed: 0,
            user: None,
            reversed: false,
            trace: Vec::new(),
            keyword: None,
            first: Vec::new(),
            alone: false,
            near: Vec::new(),
            rest_seconds: None,
            may_be_warm: false,
            whole_values: Vec::new(),
            lane: 0,
            tells_imports: false,
            guarded: false,
            collect_only: false,
        }
    }
}

/// Runs tests: node ids, files or folders, relative to the workspace. Failing tests, unknown ids, crashes
/// and timeouts are part of the report.
///
/// # Errors
///
/// Returns `Broken` if the runner cannot be started.
pub fn run(checkout: &Checkout, ids: &[String], options: &Options) -> Result<TestReport> {
    Ok(run_in(checkout, ids, options, None, None)?.report)
}

/// Collects the tests below `ids`, as [`run`] would, without running them. Only pytest can do so; other runners find
/// none.
///
/// # Errors
///
/// Fails like [`run`].
pub fn collect(
    checkout: &Checkout,
    ids: &[String],
    deadline: Instant,
) -> Result<Vec<CollectedItem>> {
    if checkout.config().runner.kind != RunnerKind::Pytest {
        return Ok(Vec::new());
    }
    let mut options = Options::with_deadline(deadline);
    options.collect_only = true;
    Ok(run_in(checkout, ids, &options, None, None)?.items)
}

/// An alternative way to start Python programs.
pub(crate) trait Launcher {
    /// Runs a program until it ends or its deadline passes. Returns `None` if it cannot; then the program is started
    /// as usual.
    fn run(
        &mut self,
        command: &Command,
        deadline: Instant,
        report: &mut process::ProcessReport,
    ) -> Option<ProcessOutput>;
}

/// A run, with details of its last process.
#[derive(Default)]
pub(crate) struct DetailedRun {
    pub report: TestReport,
    pub coverage: Option<Coverage>,
    /// Whether the record is complete from the first line to the last.
    pub is_whole: bool,
    /// Modules that the process had imported, with their origins (see [`Options::tells_imports`]).
    pub imported: Vec<Module>,
    /// The collected tests (see [`Options::collect_only`]).
    pub items: Vec<CollectedItem>,
}

/// Runs tests like [`run`], and measures which lines of some files ran, if requested. `launcher` starts the processes, if
/// it can.
///
/// # Errors
///
/// Fails like [`run`], or if the measurement cannot be prepared or read.
pub(crate) fn run_in<'a>(
    checkout: &'a Checkout,
    ids: &[String],
    options: &'a Options,
    measure: Option<&Measure>,
    launcher: Option<&'a mut dyn Launcher>,
) -> Result<DetailedRun> {
    let measurement = measure
        .map(|request| Measurement::new(request, checkout.root(), checkout.config()))
        .transpose()?;
    let mut run = Run {
        checkout,
        options,
        measurement,
        launcher,
        folder: String::new(),
        done: DetailedRun::default(),
    };
    run.done.report = run.all(ids)?;
    run.done.coverage = run.measurement.map(Measurement::finish);
    Ok(run.done)
}

/// One run, in one process or several.
struct Run<'a> {
    checkout: &'a Checkout,
    options: &'a Options,
    measurement: Option<Measurement>,
    launcher: Option<&'a mut dyn Launcher>,
    /// Folder from which pytest runs, relative to the workspace.
    folder: String,
    /// State of the last process. The report and the coverage are set at the end.
    done: DetailedRun,
}

impl Run<'_> {
    fn all(&mut self, ids: &[String]) -> Result<TestReport> {
        let mut report = TestReport::default();
        let mut existing_ids = Vec::new();
        let mut seen = HashSet::new();
        for id in ids {
            let there = self.checkout.root().join(file_of(id)).exists();
            if !there {
                report.not_found.push(id.clone());
            } else if seen.insert(id) {
                existing_ids.push(id.clone());
            }
        }
        if existing_ids.is_empty() {
            report.exit_code = Some(USAGE_EXIT_CODE);
            return Ok(report);
        }
        let mut run_report = match self.checkout.config().runner.kind {
            RunnerKind::Pytest => self.pytest(&existing_ids)?,
            other => program::run(self, other, &existing_ids)?,
        };
        run_report.not_found.append(&mut report.not_found);
        Ok(run_report)
    }

    /// Runs the tests of each project from its folder, as its developers do.
    fn pytest(&mut self, ids: &[String]) -> Result<TestReport> {
        let checkout = self.checkout;
        let projects = &checkout.config().runner.projects;
        let mut parts: Vec<(&str, Vec<String>)> = Vec::new();
        for id in ids {
            let around = projects.iter().filter(|folder| covers(folder, file_of(id)));
            let innermost = around.max_by_key(|folder| folder.len());
            let folder = innermost.map_or("", String::as_str);
            match parts.iter_mut().find(|(other, _)| *other == folder) {
                Some((_, ids)) => ids.push(id.clone()),
                None => parts.push((folder, vec![id.clone()])),
            }
        }
        let (mut is_whole, mut imported) = (true, Vec::new());
        let mut reports = Vec::new();
        for (folder, ids) in parts {
            folder.clone_into(&mut self.folder);
            reports.push(pytest::run(self, &ids)?);
            is_whole &= self.done.is_whole;
            imported.append(&mut self.done.imported);
        }
        (self.done.is_whole, self.done.imported) = (is_whole, imported);
        Ok(merge_reports(reports))
    }

    /// Runs one process until it ends or its deadline passes.
    fn process(
        &mut self,
        mut command: Command,
        report: &mut process::ProcessReport,
    ) -> Result<ProcessOutput> {
        if let Some(measurement) = &self.measurement {
            measurement.instrument(&mut command)?;
        }
        let deadline = self.options.deadline;
        let launched =
            (self.launcher.as_mut()).and_then(|launcher| launcher.run(&command, deadline, report));
        let finished = match launched {
            Some(finished) => finished,
            None => process::run_recorded(&command, deadline, Some(report))?,
        };
        if let Some(measurement) = &mut self.measurement {
            measurement.add(finished.ended)?;
        }
        Ok(finished)
    }
}
