//! One run of tests, made of as many pytest processes as it takes to get every test its outcome.
//!
//! pytest runs nothing at all when one of the ids is unknown, one conftest file is broken or one option
//! belongs to a plugin that is not there. So it is given files, and the plugin picks the ids; what lies under
//! a broken conftest is an error and the rest is run without it; and where the options are refused, the run
//! is repeated once with `addopts` emptied, which the first line of [`Report::printed`] then says.

use std::time::Instant;

use super::assemble::{Session, USAGE, covers, file_of, join, seconds};
use super::classify::Classifier;
use super::command::{Addopts, prepare};
use super::events;
use super::report::Report;
use super::stable::stable;
use crate::coverage::Measurement;
use crate::process;
use crate::test_run::{Coverage, Measure};
use crate::tool::ToolError;
use crate::workspace::Checkout;

/// How tests are run.
#[derive(Debug, Clone)]
pub struct Options {
    /// When the run has to be over; what ran until then is reported.
    pub deadline: Instant,
    /// `PYTHONHASHSEED`.
    pub hash_seed: u32,
    /// The last test first.
    pub reversed: bool,
    /// Fill [`super::report::TestResult::executed`] of these tests (node ids, files or folders). It makes
    /// them several times slower on Python before 3.12.
    pub trace: Vec<String>,
    /// pytest's `-k` expression.
    pub keyword: Option<String>,
    /// Run these (node ids, files or folders, below those asked for) before the others.
    pub first: Vec<String>,
    /// Seconds for the tests that are not among `first`; those that did not begin by then are absent.
    pub rest_seconds: Option<u64>,
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
            rest_seconds: None,
        }
    }
}

/// Runs tests: node ids, files or folders, relative to the workspace. Failing tests, unknown ids, crashes
/// and the deadline are all part of the report; `Broken` is only that there is no pytest to run.
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
    let scratch = &checkout.config().scratch;
    let measurement = measure
        .map(|asked| Measurement::new(asked, checkout.root(), scratch))
        .transpose()?;
    let mut run = Run {
        checkout,
        options,
        measurement,
    };
    let report = run.all(ids)?;
    Ok((report, run.measurement.map(Measurement::finish)))
}

struct Run<'a> {
    checkout: &'a Checkout,
    options: &'a Options,
    measurement: Option<Measurement>,
}

impl Run<'_> {
    fn all(&mut self, ids: &[String]) -> Result<Report, ToolError> {
        let mut report = Report::default();
        let mut known = Vec::new();
        for id in ids {
            let there = self.checkout.root().join(file_of(id)).exists();
            if !there {
                report.not_found.push(id.clone());
            } else if !known.contains(id) {
                known.push(id.clone());
            }
        }
        if known.is_empty() {
            report.exit_code = Some(USAGE);
            return Ok(report);
        }
        let mut found = self.some(&known, Addopts::Kept)?;
        found.not_found.append(&mut report.not_found);
        Ok(found)
    }

    fn some(&mut self, ids: &[String], addopts: Addopts) -> Result<Report, ToolError> {
        let root = self.checkout.root();
        let mut files: Vec<String> = Vec::new();
        for file in ids.iter().map(|id| file_of(id)) {
            if !files.iter().any(|f| f == file) {
                files.push(file.to_owned());
            }
        }
        let config = self.checkout.config();
        let mut prepared = prepare(config, root, &files, ids, self.options, addopts)?;
        if let Some(measurement) = &self.measurement {
            measurement.of(&mut prepared.command)?;
        }
        let finished = process::run(&prepared.command, self.options.deadline)?;
        if let Some(measurement) = &mut self.measurement {
            measurement.add(finished.ended)?;
        }
        let session = Session::new(events::read(&prepared.report)?);
        let _ = std::fs::remove_file(&prepared.report);
        if !self.options.trace.is_empty() {
            let _ = std::fs::remove_dir_all(&prepared.facts);
        }
        let printed = stable(&finished.stdout.text(), root);

        let conftests: Vec<String> = session
            .broken_conftests()
            .into_iter()
            .map(str::to_owned)
            .collect();
        let (started, collected) = (session.started, session.collected);
        let classifier = Classifier {
            layout: self.checkout.layout(),
            root,
        };
        let in_time = !finished.timed_out() && Instant::now() < self.options.deadline;
        let failed_to_start = !started && in_time;
        if failed_to_start && conftests.is_empty() {
            if printed.contains("No module named pytest") {
                return Err(ToolError::Broken(format!(
                    "pytest is not installed for {}",
                    config.python.display()
                )));
            }
            if addopts == Addopts::Kept {
                let mut report = self.some(ids, Addopts::Dropped)?;
                let note = "[run without the repository's addopts, which pytest refused]\n";
                report.printed.insert_str(0, note);
                return Ok(report);
            }
        }
        let stuck = in_time && started && !collected && finished.exit_code() == Some(USAGE);
        if stuck && files.len() > 1 {
            return self.one_by_one(ids, &files, addopts);
        }

        let affected = |id: &String| {
            let folders = conftests
                .iter()
                .filter_map(|c| c.strip_suffix("conftest.py"));
            folders.into_iter().any(|folder| id.starts_with(folder))
        };
        let (beneath, rest): (Vec<String>, Vec<String>) = ids.iter().cloned().partition(affected);
        let split = failed_to_start && !rest.is_empty() && !beneath.is_empty();
        let mut asked: Vec<String> = if split { beneath } else { ids.to_vec() };
        for id in &self.options.first {
            if !asked.contains(id) && asked.iter().any(|above| covers(above, id)) {
                asked.push(id.clone());
            }
        }
        let mut report = session.report(&asked, finished.ended, printed, &classifier);
        report.seconds = seconds(finished.took);
        if split {
            report = join(report, self.some(&rest, addopts)?);
        }
        Ok(report)
    }

    /// For a file that pytest will not take as an argument: it must not keep the others from running.
    fn one_by_one(
        &mut self,
        ids: &[String],
        files: &[String],
        addopts: Addopts,
    ) -> Result<Report, ToolError> {
        let mut all: Option<Report> = None;
        for file in files {
            let of_file: Vec<String> = ids
                .iter()
                .filter(|id| file_of(id) == file)
                .cloned()
                .collect();
            let report = self.some(&of_file, addopts)?;
            all = Some(match all {
                Some(first) => join(first, report),
                None => report,
            });
        }
        Ok(all.unwrap_or_default())
    }
}
