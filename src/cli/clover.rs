//! `testwright clover`: CLOVER's three tasks from any Python repository.

mod build;
mod eval;
mod progress;
mod report;

use testwright_config::error::Result;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make problems of all three tasks from repositories, each with a verified golden answer
    Build(build::Args),
    /// Put problems to models, and judge their answers
    Eval(eval::Args),
    /// Make the report again from what is stored; of several folders one on all
    Report(report::Args),
}

pub async fn run(args: &Args) -> Result<u8> {
    match &args.command {
        Command::Build(args) => build::run(args).await,
        Command::Eval(args) => eval::run(args).await,
        Command::Report(args) => report::run(args),
    }
}
