//! `testwright clover`: generates CLOVER's three tasks from a Python repository and evaluates models on them.

mod build;
mod eval;
mod progress;
pub(super) mod report;

use testwright_config::error::Result;

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
