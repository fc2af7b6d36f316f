//! The command line: one file a command, and this list.

mod approaches;
mod clover;
mod compare;
mod completions;
mod cover;
mod daemon_options;
mod doctor;
mod environment;
mod eval;
mod evidence_card;
mod inspect;
mod log;
mod man;
mod mcp;
mod mine;
pub mod output;
mod place;
#[cfg(test)]
mod reference;
mod replay;
mod run;
mod run_options;
mod runs;
mod select;
mod serve;
mod show;
mod terminal;
mod tokens;
mod tools;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Give it an issue and a Python repository; it gives back a test that fails today, for the reason that the issue
/// states, and that will pass once the issue is fixed.
///
/// Exit codes: 0 a test was accepted (or the command did its work); 1 none within the budget, or the approach had
/// nothing; 2 bad input or usage; 3 infrastructure (engine, network, disk, model service); 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "testwright", version, max_term_width = 110)]
struct Cli {
    /// Settings of your own, over ~/.config/testwright/testwright.toml. A testwright.toml found in a folder is
    /// not read as such: it may say how the code there is built, and lower limits [env: TESTWRIGHT_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write a test for an issue
    Run(Box<run::Args>),
    /// Write a test that runs given lines
    Cover(Box<cover::Args>),
    /// Play a recorded run again on a fresh sandbox, and say where it differs
    Replay(replay::Args),
    /// Show how a run ended, also as Markdown for a comment on the issue
    Show(show::Args),
    /// Build the environment of a repository, and say how good it is
    Environment(environment::Args),
    /// Show the approaches: their stages or tools, their model calls, their prompts
    Approaches(approaches::Args),
    /// Show the tools and their schemas, as a model sees them
    Tools(tools::Args),
    /// Serve the tools over MCP on stdio, in a sandbox
    Mcp(mcp::Args),
    /// Grade test patches on a dataset of issues, and report
    Eval(Box<eval::Args>),
    /// Compare approaches and models on a dataset of issues: run, grade, report
    Compare(Box<compare::Args>),
    /// Make CLOVER's three tasks from any Python repository, and put them to models
    Clover(Box<clover::Args>),
    /// Sort code patches by generated tests
    Select(Box<select::Args>),
    /// Make a dataset of fresh issues from the history of a repository: fixes that bring tests, verified
    Mine(Box<mine::Args>),
    /// Serve the HTTP API, and work on the runs that it is asked for
    Serve(Box<serve::Args>),
    /// Work on the runs of a daemon, on a further machine
    Worker(Box<worker::Args>),
    /// List, show, follow, end and take up the runs of a daemon
    Runs(runs::Args),
    /// Make, list and revoke the tokens that a daemon takes
    Tokens(tokens::Args),
    /// Print a run or a comparison: prompts, replies, tool calls, patches, costs
    Inspect(inspect::Args),
    /// Say what is there and what is missing, with hints
    Doctor(doctor::Args),
    /// Print what a shell needs to complete commands and options
    Completions(completions::Args),
    /// Write the manual pages
    Man(man::Args),
}

/// Runs the command line of this process.
pub async fn main() -> ExitCode {
    output::tell_panics();
    if let Err(error) = log::start() {
        output::err(error.render());
        return ExitCode::from(error.kind.exit_code());
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are not errors.
            output::usage(&error);
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let result = match cli.command {
        Command::Run(args) => run::run(&args).await,
        Command::Cover(args) => cover::run(&args).await,
        Command::Replay(args) => replay::run(&args).await,
        Command::Show(args) => show::run(&args).map(|()| 0),
        Command::Environment(args) => environment::run(&args).await,
        Command::Approaches(args) => approaches::run(&args).map(|()| 0),
        Command::Tools(args) => tools::run(&args).map(|()| 0),
        Command::Mcp(args) => mcp::run(&args).await.map(|()| 0),
        Command::Eval(args) => eval::run(&args).await,
        Command::Compare(args) => compare::run(&args).await,
        Command::Clover(args) => clover::run(&args).await,
        Command::Select(args) => select::run(&args).await,
        Command::Mine(args) => mine::run(&args).await,
        Command::Serve(args) => serve::run(&args).await.map(|()| 0),
        Command::Worker(args) => worker::run(&args).await.map(|()| 0),
        Command::Runs(args) => runs::run(&args).await,
        Command::Tokens(args) => tokens::run(&args).await.map(|()| 0),
        Command::Inspect(args) => inspect::run(&args).map(|()| 0),
        Command::Doctor(args) => doctor::run(&args).await.map(|()| 0),
        Command::Completions(args) => {
            completions::run(&args);
            Ok(0)
        }
        Command::Man(args) => man::run(&args).map(|()| 0),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            output::err(error.render());
            ExitCode::from(error.kind.exit_code())
        }
    }
}
