//! `testwright check`: judges given tests with the gate's evidence, without a model or a golden patch.

pub(super) mod dataset;
mod model_args;
mod test_args;

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use super::evidence_card::{GREEN, PLAIN, RED, YELLOW, push_rows};
use super::headings::{LIMITS, OUTPUT};
use super::output::{self, Text, escape_line};
use super::repository_args::RepositoryArgs;
use super::run_options::{DEFAULT_RESULTS_FOLDER, default_folder};
use super::terminal::RunProgress;
use dataset::DatasetArgs;
use model_args::ModelArgs;
use test_args::GivenTest;
use testwright_agent::agent::Progress;
use testwright_agent::check::{CheckEvidence, gather_evidence};
use testwright_agent::gate;
use testwright_agent::issues;
use testwright_agent::job::CheckPlace;
use testwright_agent::setup::{Setup, interrupted};
use testwright_agent::trajectory::RunFolder;
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;
use testwright_server::artifacts::shared_environments;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 all tests are accepted, 1 some are not accepted or withheld. With --dataset: 0 all predictions were \
                  checked, 3 some could not be.\n\n\
                  Examples:\n  testwright check issue.md --repo path/to/repository tests.patch\n  \
                  testwright check issue.md tests/test_new.py tests/test_other.py=draft.py\n  \
                  testwright check --dataset swt-bench-lite.parquet --predictions mine.jsonl --out checked"
)]
pub(super) struct Args {
    /// Issue: a URL, a number, a file or `-`, as for `testwright run`
    #[arg(required_unless_present = "dataset")]
    issue: Option<String>,
    /// Test: a patch, a Python file in the repository's folder, or PATH=FILE to check FILE as if it
    /// were at PATH in the repository
    #[arg(required_unless_present = "dataset", value_name = "TEST")]
    tests: Vec<String>,
    #[command(flatten)]
    place: RepositoryArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// Minimum probability (0 to 1) that a test is right; tests below it are withheld
    #[arg(long, help_heading = LIMITS, value_name = "X")]
    min_confidence: Option<f64>,
    #[command(flatten)]
    dataset: DatasetArgs,
    /// Print the evidence as a JSON list
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
}

/// A test as the user names it, and its evidence.
#[derive(Debug, Serialize)]
struct CheckedTest {
    test: String,
    #[serde(flatten)]
    evidence: CheckEvidence,
}

pub(super) async fn run(args: &Args) -> Result<u8> {
    let settings = args
        .place
        .settings_for_issue(args.issue.as_deref(), |flags| {
            args.model.add_to_flags(flags);
            flags.set("run.min-confidence", args.min_confidence);
        })?;
    let minimum = settings.run.min_confidence;
    if let Some(dataset) = &args.dataset.dataset {
        let model = &args.model;
        return (args.dataset)
            .check(dataset, settings, model, minimum, args.json)
            .await;
    }
    let terminal = Arc::new(RunProgress::new(args.json));
    let mut checked = Vec::new();
    let ended = check_tests(args, &settings, &terminal, &mut checked).await;
    terminal.clear();
    if args.json && ended.is_ok() {
        output::print_json(&checked)?;
    } else if !args.json {
        checked
            .iter()
            .for_each(|check| output::print_stdout(render(check, minimum)));
    }
    ended?;
    let is_kept = |check: &CheckedTest| check.evidence.is_kept(minimum);
    Ok(u8::from(!checked.iter().all(is_kept)))
}

/// Checks the tests in one environment, each in its own sandbox.
async fn check_tests(
    args: &Args,
    settings: &Settings,
    terminal: &Arc<RunProgress>,
    checked: &mut Vec<CheckedTest>,
) -> Result<()> {
    let options = issues::Options::from_settings(settings, false);
    let issue_arg = args.issue.as_deref().unwrap_or("-");
    let issue = args.place.load_issue(issue_arg, &options).await?;
    let place = args.place.repository_location(Some(&issue));
    let tests = test_args::read(&args.tests, &place.location)?;
    let notes = settings.notes.iter().chain(&issue.notes);
    notes.for_each(|note| terminal.note(note));
    let mut setup = Setup::new(settings, shared_environments(settings)?, terminal.clone())
        .await?
        .for_issue(Some(&issue));
    setup.paths = (tests.iter().flat_map(|test| test.input.paths())).collect();
    let model = args.model.open(settings, terminal.clone()).await?;
    let folder = default_folder(&issue.title);
    if model.is_some() {
        RunFolder::check_default_folder(Path::new(DEFAULT_RESULTS_FOLDER))?;
    }
    let (source, environment, _) = setup.prepare_environment(&place, None).await?;
    let text = issue.text();
    let mut ended = Ok(());
    for (number, GivenTest { name, input }) in tests.into_iter().enumerate() {
        let session = setup.session_in(&environment).await?;
        terminal.phase("check", &name);
        let evidence = tokio::select! {
            evidence = gather_evidence(&session, &source, &text, &input) => evidence,
            () = interrupted() => Err(Error::interrupted()),
        };
        let closed = session.close().await;
        let mut evidence = evidence?;
        closed?;
        let mut completed = Ok(());
        if let Some(model) = &model
            && evidence.accepted
        {
            let place = CheckPlace {
                location: place.clone(),
                source: source.clone(),
                session: setup.session_in(&environment).await?,
                environment: environment.clone(),
                out: folder.join(format!("{}", number + 1)),
            };
            completed = model.complete(&mut evidence, &issue, place).await;
        }
        checked.push(CheckedTest {
            test: name,
            evidence,
        });
        ended = completed;
        if ended.is_err() {
            break;
        }
    }
    if folder.exists() {
        output::print_status(escape_line(&format!("results: {}", folder.display())));
    }
    ended
}

/// Formats the evidence on a test for people. A test with a lower probability than the minimum is withheld.
fn render(check: &CheckedTest, minimum: Option<f64>) -> Text {
    let CheckedTest { test, evidence } = check;
    let mut text = Text::default();
    let color = match evidence.is_kept(minimum) {
        true if evidence.is_doubted() => YELLOW,
        true => GREEN,
        false => RED,
    };
    text.push(color.bold(), evidence.verdict(minimum))
        .push(PLAIN, format!(" {}\n", escape_line(test)));
    push_rows(&evidence_rows(evidence), &mut text);
    text
}

fn evidence_rows(evidence: &CheckEvidence) -> Vec<(&'static str, String)> {
    let mut rows: Vec<(&'static str, String)> = Vec::new();
    let refused = evidence.refused.iter().cloned();
    rows.extend(refused.map(|reason| ("not run", reason)));
    for finding in &evidence.findings {
        rows.push(("finding", finding.text.clone()));
    }
    for test in &evidence.failing {
        rows.push(("test", test.id.clone()));
        rows.push(("fails", test.fails.clone()));
        rows.push(("issue", test.sentence_text()));
        let outcome = |failed_again| match failed_again {
            true => "failed again",
            false => "did not fail again",
        };
        let reruns = test.reruns.iter();
        let reruns = reruns.map(|rerun| {
            let outcome = outcome(rerun.failed_again);
            format!("{}: {outcome}", rerun.conditions)
        });
        rows.push(("reruns", reruns.collect::<Vec<_>>().join("\n")));
        let placebo = test.placebo_held.map_or("not run", outcome);
        rows.push(("placebo", placebo.to_owned()));
    }
    for fix in &evidence.fixes {
        rows.push(("fix tried", gate::fix_tried(fix)));
    }
    if let Some(review) = &evidence.review {
        rows.push(("reviewer", gate::opinion(review)));
    }
    for id in &evidence.passing {
        rows.push(("passes", format!("{id} (on the old code already)")));
    }
    for note in &evidence.notes {
        rows.push(("note", note.clone()));
    }
    for dropped in &evidence.dropped {
        rows.push(("left out", dropped.clone()));
    }
    rows.push(("confidence", format!("{:.2}", evidence.probability)));
    rows
}

#[cfg(test)]
mod tests;
