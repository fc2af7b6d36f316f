//! `testwright eval`: grades predictions on a dataset, and makes reports.

pub(super) mod errors;
pub(super) mod grading;
mod progress;
mod report;
pub(super) mod verify;

use std::path::PathBuf;

use super::place::SandboxArgs;
use crate::error::Result;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    grade: GradeArgs,
    /// Predictions: JSON lines, a JSON list or a JSON object with instance_id, model_name_or_path and model_patch;
    /// several times for several files
    #[arg(long, value_name = "FILE")]
    predictions: Vec<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make the reports again from what is stored
    Report(report::Args),
    /// Grade the golden tests: is this set-up fit to judge with?
    Verify(verify::Args),
}

/// What is graded, where and how.
#[derive(Debug, clap::Args)]
pub struct GradeArgs {
    /// A dataset in the shape of SWE-bench: JSON lines, a JSON list or Parquet
    #[arg(long, value_name = "FILE", required = true)]
    pub dataset: Option<PathBuf>,
    /// Only these instances: ids or globs, separated by commas
    #[arg(long, value_name = "IDS|GLOB")]
    pub instances: Option<String>,
    /// How many instances are worked on at once, as far as memory and disk have room [default: half of the processors]
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// Where git comes from; {owner} and {name} are put in
    #[arg(long, value_name = "TEMPLATE", default_value = testwright_evals::harness::FORGE)]
    pub repositories: String,
    /// Seconds that one run of tests may take
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    pub test_seconds: u64,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// Folder for results, logs and reports; the same command goes on with what is there. More instances and predictions
    /// may be asked for than are there, but not fewer
    #[arg(long, value_name = "DIR", required = true)]
    pub out: Option<PathBuf>,
    /// Print the report (report.json) alone, for programs
    #[arg(long)]
    pub json: bool,
}

pub async fn run(args: &Args) -> Result<u8> {
    match &args.command {
        Some(Command::Report(args)) => report::run(args),
        Some(Command::Verify(args)) => verify::run(args).await,
        None => grading::run(&args.grade, &args.predictions).await,
    }
}
