//! The command line. Each command has its own file.

mod accepted_test;
mod apply;
mod approaches;
mod cache;
mod check;
mod clover;
mod compare;
mod completions;
mod config;
mod cover;
mod doctor;
mod environment;
mod eval;
mod evidence_card;
mod example;
mod groups;
mod headings;
mod history;
mod inspect;
mod instance_args;
mod list;
mod log;
mod man;
mod mcp;
mod mine;
mod models;
pub mod output;
mod output_folder;
mod pr;
mod prompts;
mod replay;
mod repository_args;
mod revise;
mod run;
mod run_options;
mod runs;
mod schema;
mod select;
mod serve;
mod server_options;
mod show;
mod terminal;
mod tokens;
mod tools;
mod version;
mod worker;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use testwright_config::error::{Error, Kind};

use headings::GLOBAL;
use output::Verbosity;

/// Writes a test for an issue in a Python repository. The test fails now for the reason the issue
/// states, and passes once the issue is fixed.
///
/// Exit codes: 0 a test was accepted (or the command succeeded); 1 no test was accepted; 2 invalid
/// input or usage; 3 infrastructure failure (engine, network, disk, model service); 130
/// interrupted.
#[derive(Debug, Parser)]
#[command(
    name = "testwright",
    version = version::long(),
    help_template = groups::help_template(),
    max_term_width = 100,
    disable_help_flag = true,
    arg(groups::help_argument())
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    global: GlobalOptions,
}

/// Options of every command.
#[derive(Debug, clap::Args)]
struct GlobalOptions {
    /// Print only results and errors
    #[arg(short, long, global = true, help_heading = GLOBAL, conflicts_with = "verbose")]
    quiet: bool,
    /// Print the isolation of the sandbox and the steps of the build, too
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    verbose: bool,
    /// Use colours [default: auto]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "WHEN", value_enum)]
    color: Option<clap::ColorChoice>,
    /// Settings file; its values override those in ~/.config/testwright/testwright.toml. A
    /// repository's own testwright.toml can only define how the repository is built, and lower
    /// limits [env: TESTWRIGHT_CONFIG]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl GlobalOptions {
    fn apply(&self) {
        output::set_color(self.color.unwrap_or(clap::ColorChoice::Auto));
        output::set_verbosity(match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (_, true) => Verbosity::Verbose,
            _ => Verbosity::Normal,
        });
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write a test for an issue
    Run(Box<run::Args>),
    /// Revise the test of an ended run as you say, in a new run
    Revise(Box<revise::Args>),
    /// Write a test that covers given lines
    Cover(Box<cover::Args>),
    /// Check whether given tests fail for the reason the issue states
    Check(Box<check::Args>),
    /// Replay a recorded run in a fresh sandbox and report differences
    Replay(replay::Args),
    /// Show the result of a run, as text or Markdown, or the report of other results
    Show(show::Args),
    /// Find the affected versions: run an accepted test on releases, and bisect the commits
    History(Box<history::Args>),
    /// Apply the test of a run to its repository, on a branch and as a commit if wanted
    Apply(apply::Args),
    /// Open a draft pull request with the test of a run, or show it first
    Pr(pr::Args),
    /// Build and check the environment of a repository
    Environment(environment::Args),
    /// List the approaches with their stages or tools, model calls and prompts
    Approaches(approaches::Args),
    /// List common models with their prices, and the model that would be used now
    Models(models::Args),
    /// List the tools and their schemas, as a model sees them
    Tools(tools::Args),
    /// Print the JSON Schemas of files, or list their names
    Schema(schema::Args),
    /// Serve testwright and its tools to other agents, over MCP on stdio
    Mcp(mcp::Args),
    /// Grade test patches on a dataset of issues
    Eval(Box<eval::Args>),
    /// Compare approaches and models on a dataset of issues
    Compare(Box<compare::Args>),
    /// Generate problems for the benchmark CLOVER, and evaluate models on them
    Clover(Box<clover::Args>),
    /// Select the code patches that pass generated tests
    Select(Box<select::Args>),
    /// Create a dataset of recent issues from the history of a repository
    Mine(Box<mine::Args>),
    /// Start a server with an HTTP API and pages, and process its runs
    Serve(Box<serve::Args>),
    /// Run an additional worker for a server, on the same or another machine
    Worker(Box<worker::Args>),
    /// List, show, follow, cancel and retry runs of a server
    Runs(runs::Args),
    /// Create, list and revoke tokens of a server
    Tokens(tokens::Args),
    /// Print a run or a comparison: prompts, replies, tool calls, patches, costs
    Inspect(inspect::Args),
    /// List the runs in a local folder
    List(list::Args),
    /// Check this machine and suggest fixes
    Doctor(doctor::Args),
    /// Write the built-in prompts to files
    Prompts(prompts::Args),
    /// Print every setting and its source
    Config(config::Args),
    /// Show the cache, and remove environments from it
    Cache(cache::Args),
    /// Print shell completions
    Completions(completions::Args),
    /// Print or write the manual pages
    Man(man::Args),
    /// Print the version
    Version,
}

/// Parses the command line. clap suggests a command for a misspelled one, but not after `help`.
fn parse(mut words: Vec<OsString>) -> Result<Cli, clap::Error> {
    let is_unknown = |error: &clap::Error| error.kind() == ErrorKind::InvalidSubcommand;
    Cli::try_parse_from(&words).map_err(|error| {
        if !is_unknown(&error) || words.get(1).is_none_or(|word| word != "help") {
            return error;
        }
        words.remove(1);
        let without_help = Cli::try_parse_from(&words).err();
        without_help.filter(is_unknown).unwrap_or(error)
    })
}

/// Runs the command line of this process.
pub async fn main() -> ExitCode {
    output::report_panics();
    output::set_color(clap::ColorChoice::Auto);
    if let Err(error) = log::start() {
        return fail(error);
    }
    let cli = match parse(std::env::args_os().collect()) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are not errors.
            output::usage(&error);
            if !error.use_stderr() {
                return ExitCode::SUCCESS;
            }
            print_json_error(&Error::clause(Kind::Usage, error.to_string().trim_end()));
            return ExitCode::from(2);
        }
    };
    cli.global.apply();
    let result = match cli.command {
        Command::Run(args) => run::run(&args).await,
        Command::Revise(args) => revise::run(&args).await,
        Command::Cover(args) => cover::run(&args).await,
        Command::Check(args) => check::run(&args).await,
        Command::Replay(args) => replay::run(&args).await,
        Command::Show(args) => show::run(&args).map(|()| 0),
        Command::History(args) => history::run(&args).await,
        Command::Apply(args) => apply::run(&args).map(|()| 0),
        Command::Pr(args) => pr::run(&args).await.map(|()| 0),
        Command::Environment(args) => environment::run(&args).await,
        Command::Approaches(args) => approaches::run(&args).map(|()| 0),
        Command::Models(args) => models::run(&args).map(|()| 0),
        Command::Tools(args) => tools::run(&args).map(|()| 0),
        Command::Schema(args) => schema::run(&args).map(|()| 0),
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
        Command::List(args) => list::run(&args).map(|()| 0),
        Command::Doctor(args) => doctor::run(&args).await.map(|()| 0),
        Command::Prompts(args) => prompts::run(&args).map(|()| 0),
        Command::Config(args) => config::run(&args).map(|()| 0),
        Command::Cache(args) => cache::run(&args).await.map(|()| 0),
        Command::Completions(args) => {
            completions::run(&args);
            Ok(0)
        }
        Command::Man(args) => man::run(&args).map(|()| 0),
        Command::Version => {
            version::run();
            Ok(0)
        }
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => fail(error),
    }
}

/// Prints an error, and returns its exit code.
fn fail(error: Error) -> ExitCode {
    let words = std::env::args_os().skip(1);
    let error = name_command(error, words.map(|word| word.to_string_lossy().into_owned()));
    output::print_error(&error);
    print_json_error(&error);
    ExitCode::from(error.exit_code())
}

/// Adds these words of the command line to the hint of an interrupted command that can be run again.
fn name_command(error: Error, words: impl Iterator<Item = String>) -> Error {
    let hint = match error.kind {
        Kind::Interrupted => error.hint.as_deref().unwrap_or_default(),
        _ => "",
    };
    let Some(aim) = hint.strip_prefix("run the same command again") else {
        return error;
    };
    let words: Vec<String> = words.map(|word| accepted_test::quote(&word)).collect();
    let hint = format!("run it again{aim}: testwright {}", words.join(" "));
    error.hint(hint)
}

/// Prints an error to stdout too, for programs that asked for JSON. Even wrong arguments can ask for it, so only the
/// flag itself is looked for.
fn print_json_error(error: &Error) {
    let mut arguments = std::env::args_os().take_while(|argument| argument != "--");
    if arguments.any(|argument| argument == "--json") {
        let parts = serde_json::json!({
            "message": error.to_string(),
            "cause": error.cause,
            "hint": error.hint,
        });
        // A value of strings can always be encoded.
        let _ = output::print_json(&serde_json::json!({ "error": parts }));
    }
}

#[cfg(test)]
mod tests;
