//! `testwright clover`: generates CLOVER's three tasks from a Python repository and evaluates models on them.

mod build;
mod eval;
mod progress;
pub(super) mod report;

use std::path::Path;
use std::time::Duration;

use testwright_evals::harness::{FORGE, Harness};

use testwright_agent::setup::{HarnessArgs, harness};
use testwright_config::error::Result;
use testwright_config::settings::Settings;
use testwright_server::artifacts::shared_environments;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Generate problems of all three tasks from repositories, each with a verified golden answer
    Build(build::Args),
    /// Evaluate models on problems
    Eval(eval::Args),
    /// Write the report again from stored results; several folders give one report on all of them
    Report(report::Args),
}

pub(super) async fn run(args: &Args) -> Result<u8> {
    match &args.command {
        Command::Build(args) => build::run(args).await,
        Command::Eval(args) => eval::run(args).await,
        Command::Report(args) => report::run(args),
    }
}

/// Opens a harness for a folder of results. Also returns notes on the leftovers of killed runs.
async fn open_harness(
    settings: &Settings,
    out: &Path,
    test_seconds: u64,
) -> Result<(Harness, Vec<String>)> {
    let args = HarnessArgs {
        repositories: FORGE.to_owned(),
        test_time: Duration::from_secs(test_seconds),
        out: out.to_owned(),
        shared: shared_environments(settings)?,
    };
    harness(settings, args).await
}

/// Returns the number of workers: the value of the flag, or one for each processor.
fn workers(flag: Option<usize>) -> usize {
    flag.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}
