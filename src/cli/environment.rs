//! `testwright environment`: builds and checks the environment of a repository.

use std::sync::Arc;

use serde_json::json;
use testwright_sandboxes::environment::{Environment, SampleSettings, TestSample};

use super::headings::{ENVIRONMENT, LIMITS, MODEL, OUTPUT};
use super::output;
use super::repository_args::RepositoryArgs;
use super::terminal::RunProgress;
use testwright_agent::agent::Progress;
use testwright_agent::approaches::model_selection;
use testwright_agent::environment_repair::RepairModel;
use testwright_agent::setup::{self, Setup};
use testwright_config::error::Result;
use testwright_config::settings::Settings;
use testwright_server::artifacts::shared_environments;
use testwright_tools::tools::count;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    place: RepositoryArgs,
    /// Number of tests to run after the build, chosen at random [default: none]
    #[arg(long, help_heading = ENVIRONMENT, value_name = "N")]
    sample: Option<usize>,
    /// Seed for the random choice of --sample
    #[arg(long, help_heading = ENVIRONMENT, value_name = "N", default_value_t = 0, requires = "sample")]
    seed: u64,
    /// Maximum seconds for all tests of --sample together
    #[arg(long, help_heading = LIMITS, value_name = "S", default_value_t = 600, requires = "sample")]
    seconds: u64,
    /// Model that repairs the environment if the build fails, such as gpt-5-mini [default: no
    /// repair]
    #[arg(short, long, help_heading = MODEL, value_name = "NAME")]
    model: Option<String>,
    /// Maximum cost of the repair in US dollars [default: no limit]
    #[arg(long, help_heading = LIMITS, value_name = "X", requires = "model")]
    max_dollars: Option<f64>,
    /// Maximum tokens of the repair, prompts and completions together [default: no limit]
    #[arg(long, help_heading = LIMITS, value_name = "N", requires = "model")]
    max_tokens: Option<u64>,
    /// Rebuild the environment even if it is cached
    #[arg(long, help_heading = ENVIRONMENT)]
    rebuild: bool,
    /// Ignore testwright's built-in recipes; determine from the repository alone how to build the
    /// environment
    #[arg(long, help_heading = ENVIRONMENT)]
    no_built_in: bool,
    /// Print the environment as JSON
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
}

/// Builds the environment. The exit code is 0 if the build succeeds and, with `--sample`, at least one test passes;
/// otherwise it is 1.
pub(super) async fn run(args: &Args) -> Result<u8> {
    let settings = args.place.settings(|flags| {
        flags.set("run.model", args.model.clone());
        flags.set("run.max-dollars", args.max_dollars);
        flags.set("run.max-tokens", args.max_tokens);
    })?;
    let terminal = Arc::new(RunProgress::new(args.json));
    settings.notes.iter().for_each(|note| terminal.note(note));
    let repair_model = match args.model {
        Some(_) => repair_model(&settings, terminal.clone())?,
        None => None,
    };
    let shared = shared_environments(&settings)?;
    let mut setup = Setup::new(&settings, shared, terminal.clone()).await?;
    setup.repair_model = repair_model;
    setup.rebuild = args.rebuild;
    setup.no_built_in = args.no_built_in;
    let sample = args.sample.map(|tests| SampleSettings {
        files: Vec::new(),
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
        output::print_json(&json!({
            "repository": source.name,
            "commit": source.commit,
            "environment": environment,
            // The recipe as `[environment]` of testwright.toml, to copy and change.
            "recipe_toml": environment.recipe.to_toml(),
            "sample": sample,
        }))?;
    } else {
        output::print_stdout(describe(&environment, sample.as_ref()));
    }
    Ok(u8::from(!passes))
}

/// Returns the model that the settings name, with the limits of a run.
fn repair_model(settings: &Settings, terminal: Arc<RunProgress>) -> Result<Option<RepairModel>> {
    let name = model_selection::select(settings)?.model;
    let model = setup::model(settings, &name, None, None, terminal)?;
    Ok(RepairModel::new(settings, &name, model))
}

/// Describes the environment and the sample of tests for people.
fn describe(environment: &Environment, sample: Option<&TestSample>) -> String {
    let python = &environment.python_version;
    let mut text = format!(
        "Python {python} ({}), {}, log in {}\n",
        environment.origin,
        count(environment.packages.len(), "package"),
        environment.log.display()
    );
    text.push_str(&format!(
        "\nThe recipe, to copy into testwright.toml and change:\n\n{}\n",
        environment.recipe.to_toml()
    ));
    let Some(sample) = sample else { return text };
    text.push_str(&format!(
        "{} in {}; {} run: ",
        count(sample.collected, "test"),
        count(sample.files, "file"),
        sample.tests.len()
    ));
    text.push_str(&sample.counts());
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
