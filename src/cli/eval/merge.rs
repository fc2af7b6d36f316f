//! `testwright eval merge`: merges the results of shards, and reports on all of them.

use std::path::{Path, PathBuf};

use testwright_evals::folder::Versioned;
use testwright_evals::merge::{MergeError, merge};
use testwright_evals::report::{self, GradingReport, RunMetadata, Summary};

use super::report::table;
use super::verify::GOLDEN_MODEL_NAME;
use crate::cli::headings::OUTPUT;
use crate::cli::output::{self, escape_line};
use crate::cli::output_folder;
use testwright_comparisons::grading::reporting;
use testwright_config::error::{Error, Result};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folders of results on parts of the same dataset, as from --shard
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// New folder for the merged results and their report
    #[arg(short, long, help_heading = OUTPUT, value_name = "DIR")]
    out: PathBuf,
    /// Print only the report (report.json), for programs
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<u8> {
    output_folder::check_is_folder(&args.out)?;
    output_folder::check_has_no_comparison(&args.out)?;
    output_folder::check_each_once(&args.folders)?;
    let folders: Vec<&Path> = args.folders.iter().map(PathBuf::as_path).collect();
    let run = merge(&folders, &args.out).map_err(|error| match error {
        MergeError::Metadata(error) => reporting(error),
        MergeError::Read { .. } => {
            Error::usage(error.to_string()).hint("pass folders that `testwright eval --out` wrote")
        }
        MergeError::Conflict(cause) => Error::usage("merge the results")
            .cause(cause)
            .hint("merge shards of one evaluation into a new folder"),
    })?;
    let report = report::write(&args.out, &run).map_err(reporting)?;
    let golden = golden_tests(&run, &report);
    if args.json {
        output::print_json(&Versioned::new(&report))?;
    } else {
        output::print_stdout(table(&report, output::stdout_columns()));
        if let Some(golden) = golden {
            output::print_stdout(format!(
                "golden tests fail-to-pass: {} of {}\n",
                golden.fail_to_pass.numerator, golden.instances
            ));
        }
        let out = args.out.display();
        output::print_status(escape_line(&format!("results: {out}")));
    }
    for note in &report.notes {
        output::print_status(escape_line(&format!("note: {note}")));
    }
    Ok(golden.map_or(0, verify_exit_code))
}

/// Returns the figures of the golden tests if `eval verify` graded the folders.
fn golden_tests<'r>(run: &RunMetadata, report: &'r GradingReport) -> Option<&'r Summary> {
    // The predictions of `eval` come from files.
    let is_verified = run.sets == [GOLDEN_MODEL_NAME] && run.predictions_sha256.is_empty();
    report
        .summary
        .get(GOLDEN_MODEL_NAME)
        .filter(|_| is_verified)
}

/// Returns the exit code of `eval verify` for these figures.
fn verify_exit_code(golden: &Summary) -> u8 {
    if golden.infrastructure + golden.not_graded > 0 {
        return 3;
    }
    u8::from(golden.fail_to_pass.numerator != golden.instances)
}
