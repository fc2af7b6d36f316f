//! Running tests, by the runner that the repository uses.

mod program;
mod pytest;
mod recording;

use std::collections::HashSet;
use std::time::Instant;

use crate::config::RunnerKind;
use crate::coverage::{Coverage, Measure, Measurement};
use crate::error::ToolError;
use crate::outcomes::report::Report;
use crate::outcomes::{USAGE, file_of};
use crate::process::{self, Command, ProcessOutput};
use crate::workspace::Checkout;

pub use pytest::enable_warm_runs;
pub(crate) use pytest::{Control, FORKING, Module, anonymous_file};

/// How tests are run.
#[derive(Debug, Clone)]
pub struct Options {
    /// When the run has to be over; what ran until then is reported.
    pub deadline: Instant,
    /// `PYTHONHASHSEED`.
    pub hash_seed: u32,
    /// The last test first.
    pub reversed: bool,
    /// Fill [`crate::outcomes::report::TestResult::executed`] of these tests (node ids, files or folders). It makes
    /// them several times slower on Python before 3.12.
    pub trace: Vec<String>,
    /// pytest's `-k` expression; for pytest only.
    pub keyword: Option<String>,
    /// Run these (node ids, files or folders, below those asked for) before the others.
    pub first: Vec<String>,
    /// Each test in a process of its own, forked when all are collected; for pytest only.
    pub alone: bool,
    /// Names of functions and classes: of the others, tests that name them come before those that do not; for pytest only.
    pub near: Vec<String>,
    /// Seconds for the tests that are not among `first`; those that did not begin by then are absent.
    pub rest_seconds: Option<u64>,
    /// The process may be forked from one that has everything loaded, where runs like this are repeated.
    pub may_be_warm: bool,
    /// Tests (node ids, files or folders) in whose messages of assertions values are shown whole; for pytest only.
    pub whole_values: Vec<String>,
    /// Runs at the same time in the same folders have different numbers.
    pub lane: usize,
    /// Fill [`DetailedRun::imported`].
    pub tells_imports: bool,
    /// Tell where tests replace what decides how they come out (see [`Report::tampered`]); for pytest only.
    pub guarded: bool,
}

impl Options {
    pub fn until(deadline: Instant) -> Self {
        Options {
            deadline,
            hash_seed: 0,
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
        }
    }
}

/// Runs tests: node ids, files or folders, relative to the workspace. Failing tests, unknown ids, crashes
/// and the deadline are all part of the report; `Broken` is only that there is nothing to run them with.
pub fn run(checkout: &Checkout, ids: &[String], options: &Options) -> Result<Report, ToolError> {
    Ok(run_measured(checkout, ids, options, None)?.0)
}

/// As [`run`], and says which lines ran of some files, if asked.
pub fn run_measured(
    checkout: &Checkout,
    ids: &[String],
    options: &Options,
    measure: Option<&Measure>,
) -> Result<(Report, Option<Coverage>), ToolError> {
    let ran = run_in(checkout, ids, options, measure, None)?;
    Ok((ran.report, ran.coverage))
}

/// Starts Python programs in its own way.
pub(crate) trait Launcher {
    /// Runs one to its end or to the deadline; `None` where it cannot: then it is started as ever.
    fn run(
        &mut self,
        command: &Command,
        deadline: Instant,
        report: &mut process::Report,
    ) -> Option<ProcessOutput>;
}

/// A run, and what is known of its last process.
pub(crate) struct DetailedRun {
    pub report: Report,
    pub coverage: Option<Coverage>,
    /// Its record goes from the first line to the last.
    pub is_whole: bool,
    /// Modules that it had imported, with where they come from (see [`Options::tells_imports`]).
    pub imported: Vec<Module>,
}

/// As [`run_measured`], by processes that somebody else starts.
pub(crate) fn run_in<'a>(
    checkout: &'a Checkout,
    ids: &[String],
    options: &'a Options,
    measure: Option<&Measure>,
    launcher: Option<&'a mut dyn Launcher>,
) -> Result<DetailedRun, ToolError> {
    let measurement = measure
        .map(|asked| Measurement::new(asked, checkout.root(), checkout.config()))
        .transpose()?;
    let mut run = Run {
        checkout,
        options,
        measurement,
        launcher,
        is_whole: false,
        imported: Vec::new(),
    };
    let report = run.all(ids)?;
    Ok(DetailedRun {
        report,
        coverage: run.measurement.map(Measurement::finish),
        is_whole: run.is_whole,
        imported: run.imported,
    })
}

/// One run, of one process or of several.
struct Run<'a> {
    checkout: &'a Checkout,
    options: &'a Options,
    measurement: Option<Measurement>,
    launcher: Option<&'a mut dyn Launcher>,
    /// Of the last process: see [`DetailedRun`].
    is_whole: bool,
    imported: Vec<Module>,
}

impl Run<'_> {
    fn all(&mut self, ids: &[String]) -> Result<Report, ToolError> {
        let mut report = Report::default();
        let mut known = Vec::new();
        let mut seen = HashSet::new();
        for id in ids {
            let there = self.checkout.root().join(file_of(id)).exists();
            if !there {
                report.not_found.push(id.clone());
            } else if seen.insert(id) {
                known.push(id.clone());
            }
        }
        if known.is_empty() {
            report.exit_code = Some(USAGE);
            return Ok(report);
        }
        let mut found = match self.checkout.config().runner.kind {
            RunnerKind::Pytest => pytest::run(self, &known)?,
            other => program::run(self, other, &known)?,
        };
        found.not_found.append(&mut report.not_found);
        Ok(found)
    }

    /// Runs one process to its end or to the deadline.
    fn process(
        &mut self,
        mut command: Command,
        report: &mut process::Report,
    ) -> Result<ProcessOutput, ToolError> {
        if let Some(measurement) = &self.measurement {
            measurement.of(&mut command)?;
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
