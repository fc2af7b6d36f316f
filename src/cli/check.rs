//! `testwright check`: judges given tests with the gate's evidence, without a model or a golden patch.

pub(super) mod dataset;
mod model_args;
mod test_args;

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use super::evidence_card::{GREEN, PLAIN, RED, push_rows};
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
    let setup = Setup::new(settings, shared_environments(settings)?, terminal.clone())
        .await?
        .for_issue(Some(&issue))
        .about(tests.iter().flat_map(|test| test.input.paths()));
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
    let (style, verdict) = match (evidence.accepted, evidence.is_kept(minimum)) {
        (true, true) => (GREEN.bold(), "accepted"),
        (true, false) => (RED.bold(), "withheld"),
        (false, _) => (RED.bold(), "not accepted"),
    };
    text.push(style, verdict)
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
mod tests {
    use super::*;
    use testwright_agent::check::{FailureEvidence, RerunEvidence};
    use testwright_agent::gate::{Finding, Rule};
    use testwright_tools::outcomes::report::FailureClass;

    fn evidence() -> CheckEvidence {
        CheckEvidence {
            findings: vec![Finding {
                rule: Rule::HoldsWithPlacebo,
                text: "it looks at the code".to_owned(),
            }],
            failing: vec![FailureEvidence {
                id: "t.py::test_it".to_owned(),
                fails: "assertion: AssertionError: assert 1 == 2".to_owned(),
                class: FailureClass::Assertion,
                exception: "AssertionError".to_owned(),
                message: "assert 1 == 2".to_owned(),
                frame: None,
                exception_in_issue: false,
                message_in_issue: false,
                code_in_issue: Vec::new(),
                issue_sentence: Some("f(1) returns 1.".to_owned()),
                files_run: 1,
                unrelated_inputs: false,
                replaced_code: Vec::new(),
                reruns: vec![RerunEvidence {
                    conditions: "another hash seed".to_owned(),
                    failed_again: true,
                }],
                placebo_held: Some(false),
            }],
            passing: vec!["t.py::test_other".to_owned()],
            notes: vec!["it reads the time".to_owned()],
            probability: 0.25,
            ..CheckEvidence::default()
        }
    }

    #[test]
    fn evidence_is_shown_in_rows() {
        let check = CheckedTest {
            test: "t.patch\x1b[2J".to_owned(),
            evidence: evidence(),
        };
        insta::assert_snapshot!(render(&check, None).plain(), @r"
        not accepted t.patch\u{1b}[2J
          finding    it looks at the code
          test       t.py::test_it
          fails      assertion: AssertionError: assert 1 == 2
          issue      “f(1) returns 1.”
          reruns     another hash seed: failed again
          placebo    did not fail again
          passes     t.py::test_other (on the old code already)
          note       it reads the time
          confidence 0.25
        ");
    }

    #[test]
    fn missing_sentence_is_reported() {
        let mut evidence = evidence();
        evidence.failing[0].issue_sentence = None;
        let expected = ("issue", "no sentence matches the failure".to_owned());
        assert!(evidence_rows(&evidence).contains(&expected));
    }
}
