//! `testwright eval report`: writes the reports again from the stored results.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use testwright_evals::document::Figure;
use testwright_evals::document::format::{percent, text_table};
use testwright_evals::folder::Versioned;
use testwright_evals::report::{self, GradingReport, RunMetadata, Summary};
use testwright_evals::result::results_file;
use testwright_evals::statistics::Rate;

use crate::cli::headings::{DATA, OUTPUT};
use crate::cli::output::{self, escape_line};
use crate::cli::output_folder;
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
    output_folder::check_each_once(&args.folders)?;
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

const FIGURES: [Figure<Summary>; 7] = [
    ("instances", |s| match s.infrastructure {
        0 => s.instances.to_string(),
        some => format!("{} (−{some})", s.instances),
    }),
    ("applied", |s| rate(&s.applicability)),
    ("F→P strict", |s| rate(&s.fail_to_pass)),
    ("SWT success", |s| rate(&s.success)),
    ("TDD F→P", |s| rate(&s.tdd_fail_to_pass)),
    ("tddScore", |s| percent(s.tdd_score.mean)),
    ("ΔC", |s| percent(s.coverage_delta_all.mean)),
];

fn rate(rate: &Rate) -> String {
    let share = percent(rate.rate);
    format!("{}/{} {share}", rate.numerator, rate.denominator)
}

/// Formats the rates of a report, one line for each prediction set, with as many columns as fit `columns` characters.
pub(super) fn table(report: &GradingReport, columns: Option<usize>) -> String {
    // Names of prediction sets are untrusted.
    let rows = (report.summary.iter()).map(|(name, s)| (escape_line(name).into_owned(), s));
    let mut text = text_table("prediction", &FIGURES, rows, 14, columns).join("\n") + "\n";
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
