//! `testwright eval report`: writes the reports again from the stored results.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use testwright_evals::document::format::fitting_cells;
use testwright_evals::folder::Versioned;
use testwright_evals::report::{self, GradingReport, RunMetadata};
use testwright_evals::result::results_file;

use crate::cli::headings::{DATA, OUTPUT};
use crate::cli::output::{self, escape_line};
use testwright_comparisons::grading::reporting;
use testwright_config::error::{Error, Result};
use testwright_tools::tools::count;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folders of results; if there are several, a comparison is written to the first folder
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Report only on these instances of one folder, and write no files: ids or globs, separated by
    /// commas, or @FILE with one per line
    #[arg(long, help_heading = DATA, value_name = "IDS|GLOB|@FILE")]
    instances: Option<String>,
    /// Print only the report (or the comparison), for programs
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<u8> {
    if args.instances.is_some() && args.folders.len() > 1 {
        return Err(Error::usage("report on some of the instances")
            .cause("there are several folders")
            .hint("pass one folder with --instances"));
    }
    let mut seen_folders = Vec::new();
    for folder in &args.folders {
        // Missing folders are reported below.
        let place = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        if seen_folders.contains(&place) {
            return Err(Error::usage("compare folders")
                .cause(format!("{} is given twice", folder.display()))
                .hint("pass each folder once"));
        }
        seen_folders.push(place);
    }
    let mut last = None;
    for folder in &args.folders {
        if !folder.join(results_file::FILE).is_file() {
            return Err(Error::usage(format!("read {}", folder.display()))
                .cause(format!("it has no {}", results_file::FILE))
                .hint("pass a folder that `testwright eval --out` wrote"));
        }
        let report = match &args.instances {
            Some(patterns) => report::read(folder, Some(patterns)),
            None => RunMetadata::read(folder).and_then(|run| report::write(folder, &run)),
        };
        let report = report.map_err(reporting)?;
        if !args.json {
            output::print_stdout(format!("{}\n", escape_line(&folder.display().to_string())));
            output::print_stdout(table(&report, output::stdout_columns()));
        }
        last = Some(report);
    }
    if args.folders.len() > 1 {
        let folders: Vec<&Path> = args.folders.iter().map(PathBuf::as_path).collect();
        let comparison = report::write_comparison(&folders, folders[0]).map_err(reporting)?;
        let path = folders[0].join("comparison.html");
        output::print_status(escape_line(&format!("comparison: {}", path.display())));
        last = Some(comparison);
    }
    if args.json
        && let Some(report) = last
    {
        output::print_json(&Versioned::new(&report))?;
    }
    Ok(0)
}

/// Reads the report of a folder of results; `None` if it has no results.
pub(in crate::cli) fn read(folder: &Path) -> Result<Option<String>> {
    if !folder.join(results_file::FILE).is_file() {
        return Ok(None);
    }
    let report = report::read(folder, None).map_err(reporting)?;
    Ok(Some(table(&report, output::stdout_columns())))
}

/// Formats the rates of a report, one line for each prediction set, with as many columns as fit `columns` characters.
pub(super) fn table(report: &GradingReport, columns: Option<usize>) -> String {
    let mut text = String::new();
    let head = [
        "instances",
        "applied",
        "F→P strict",
        "SWT success",
        "TDD F→P",
        "tddScore",
        "ΔC",
    ];
    // Names of prediction sets are untrusted, so the width is that of the escaped name.
    let names = report.summary.keys().map(|name| escape_line(name));
    let width = names.map(|name| name.chars().count()).max();
    let width = width.unwrap_or_default().max(10);
    let fitting = fitting_cells(head.len(), width, 14, columns);
    let _ = write!(text, "{:width$}", "prediction");
    for name in &head[..fitting] {
        let _ = write!(text, "  {name:>14}");
    }
    text.push('\n');
    for (name, s) in &report.summary {
        let rate = |r: &testwright_evals::statistics::Rate| {
            let share = r
                .rate
                .map_or("–".to_owned(), |rate| format!("{:.1} %", 100.0 * rate));
            format!("{}/{} {share}", r.numerator, r.denominator)
        };
        let mean = |m: &testwright_evals::statistics::Mean| {
            m.mean
                .map_or("–".to_owned(), |mean| format!("{:.1} %", 100.0 * mean))
        };
        let instances = match s.infrastructure {
            0 => s.instances.to_string(),
            some => format!("{} (−{some})", s.instances),
        };
        let cells = [
            instances,
            rate(&s.applicability),
            rate(&s.fail_to_pass),
            rate(&s.success),
            rate(&s.tdd_fail_to_pass),
            mean(&s.tdd_score),
            mean(&s.coverage_delta_all),
        ];
        let _ = write!(text, "{:width$}", escape_line(name));
        for cell in &cells[..fitting] {
            let _ = write!(text, "  {cell:>14}");
        }
        text.push('\n');
    }
    for (name, s) in report.summary.iter().filter(|(_, s)| s.not_graded > 0) {
        let _ = writeln!(
            text,
            "{}: {} of {} not graded yet, and not counted in the rates",
            escape_line(name),
            s.not_graded,
            count(s.instances, "instance")
        );
    }
    if report.summary.values().any(|s| s.infrastructure > 0) {
        text.push_str("(−n): n instances could not be graded and are not counted\n");
    }
    text
}
