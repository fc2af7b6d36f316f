//! `testwright environment`: builds and checks the environment of a repository.

use std::sync::Arc;

use serde::Serialize;
use testwright_sandboxes::environment::{Environment, SampleSettings, TestSample};

use super::output;
use super::repository_args::RepositoryArgs;
use super::terminal::RunProgress;
use testwright_agent::agent::Progress;
use testwright_agent::setup::Setup;
use testwright_config::error::Result;
use testwright_server::artifacts::shared_environments;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    place: RepositoryArgs,
    /// Run N tests too, chosen at random
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Seed for the choice of tests
    #[arg(long, value_name = "N", default_value_t = 0, requires = "sample")]
    seed: u64,
    /// Maximum seconds for these tests
    #[arg(long, value_name = "S", default_value_t = 600, requires = "sample")]
    seconds: u64,
    /// Rebuild the environment even if it is cached
    #[arg(long)]
    rebuild: bool,
    /// Ignore the recipes included in testwright and detect from the repository alone
    #[arg(long)]
    no_built_in: bool,
    /// Print the environment as JSON
    #[arg(long)]
    json: bool,
}

/// Output of `--json`.
#[derive(Debug, Serialize)]
struct EnvironmentDescription {
    repository: String,
    commit: Option<String>,
    environment: Environment,
    /// The recipe as `[environment]` of testwright.toml, to copy and change.
    recipe_toml: String,
    sample: Option<TestSample>,
}

/// Builds the environment. The exit code is 0 if the build succeeds and, with `--sample`, at least one test passes;
/// otherwise it is 1.
pub(super) async fn run(args: &Args) -> Result<u8> {
    let settings = args.place.settings(|_| {})?;
    let terminal = Arc::new(RunProgress::new(args.json));
    settings.notes.iter().for_each(|note| terminal.note(note));
    let setup = Setup::new(&settings, shared_environments(&settings)?, terminal.clone())
        .await?
        .rebuilding(args.rebuild)
        .without_built_in_recipes(args.no_built_in);
    let sample = args.sample.map(|tests| SampleSettings {
        tests,
        seed: args.seed,
        test_seconds: settings.limits.test_seconds.min(args.seconds),
        seconds: args.seconds,
        limits: settings.limits.sandbox(),
    });
    let prepared = setup
        .prepare_environment(&args.place.repository_location(None), sample.as_ref())
        .await;
    terminal.clear();
    let (source, environment, sample) = prepared?;
    let passes = sample.as_ref().is_none_or(|s| s.count("passed") > 0);
    if args.json {
        output::print_json(&EnvironmentDescription {
            repository: source.name,
            commit: source.commit,
            recipe_toml: environment.recipe.to_toml(),
            environment,
            sample,
        })?;
    } else {
        output::print_stdout(describe(&environment, sample.as_ref()));
    }
    Ok(u8::from(!passes))
}

/// Describes the environment and the sample of tests for people.
fn describe(environment: &Environment, sample: Option<&TestSample>) -> String {
    let python = &environment.python_version;
    let mut text = format!(
        "Python {python} ({}), {} packages, log in {}\n",
        environment.origin,
        environment.packages.len(),
        environment.log.display()
    );
    text.push_str(&format!(
        "\nThe recipe, to copy into testwright.toml and change:\n\n{}\n",
        environment.recipe.to_toml()
    ));
    let Some(sample) = sample else { return text };
    text.push_str(&format!(
        "{} tests in {} files; {} run: ",
        sample.collected,
        sample.files,
        sample.tests.len()
    ));
    let outcomes = ["passed", "failed", "error", "skipped", "xfailed"];
    let counts = outcomes.map(|outcome| (sample.count(outcome), outcome));
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(n, outcome)| format!("{n} {outcome}"))
        .collect();
    text.push_str(&counts.join(", "));
    text.push('\n');
    if let Some(reason) = &sample.cut_short {
        text.push_str(&format!("sample incomplete: {reason}\n"));
    }
    for (file, reason) in &sample.broken {
        text.push_str(&format!("cannot be collected: {file} ({reason})\n"));
    }
    for test in &sample.tests {
        if test.outcome == "failed" || test.outcome == "error" {
            let reason = test.text.lines().rfind(|line| line.starts_with("E "));
            let reason = reason.map_or("", |line| line[2..].trim());
            text.push_str(&format!("{}: {} ({reason})\n", test.outcome, test.id));
        }
    }
    text
}
