//! `testwright replay`: replays the model's replies of a recorded run in a fresh sandbox. The tools really run.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use super::history;
use super::list::check_exists;
use super::repository_args::RepositoryArgs;
use super::terminal::RunProgress;
use testwright_agent::agent::{
    Budget, CpuPermit, Limits, Outcome, Progress, Replay, ReplayDifference, Run, RunParts,
};
use testwright_agent::approaches::extra_inputs::ExtraInputs;
use testwright_agent::approaches::{ApproachContext, Variant};
use testwright_agent::setup::Setup;
use testwright_agent::trajectory::{Event, RunFolder};
use testwright_config::error::{Error, Result};
use testwright_models::{Model, ModelError, Reply, Request};
use testwright_server::artifacts::shared_environments;
use testwright_tools::tools::count;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder of a recorded run
    dir: PathBuf,
    #[command(flatten)]
    place: RepositoryArgs,
    /// Print the differences as JSON
    #[arg(long)]
    json: bool,
}

/// Result of a replay.
#[derive(Debug, Serialize)]
struct ReplayReport {
    /// Number of replayed steps.
    steps: u32,
    tool_calls: u32,
    differences: Vec<ReplayDifference>,
    /// Whether the recorded run and the replay have the same outcome.
    same_outcome: bool,
}

/// A model without replies. All replies come from the record.
struct NoModel;

#[async_trait::async_trait]
impl Model for NoModel {
    fn name(&self) -> &str {
        "replay"
    }

    async fn complete(&self, _: &Request) -> std::result::Result<Reply, ModelError> {
        Err(ModelError::NotRecorded(
            "the recorded run ends here".to_owned(),
        ))
    }
}

/// Replays a run. The exit code is 0 if every tool answered as recorded, otherwise 1.
pub(super) async fn run(args: &Args) -> Result<u8> {
    check_exists(&args.dir, "replay")?;
    let events = RunFolder::read(&args.dir).map_err(|error| {
        Error::usage(error.to_string()).hint("pass the folder of a recorded run")
    })?;
    let Some(Event::Started(started)) = events.first().cloned() else {
        return Err(Error::usage(format!("replay {}", args.dir.display()))
            .cause("its trajectory has no `started` event")
            .hint("pass the folder of a recorded run"));
    };
    let recorded = events.iter().rev().find_map(|event| match event {
        Event::Ended { outcome } => Some(outcome.clone()),
        _ => None,
    });
    let terminal = Arc::new(RunProgress::new(args.json));
    let place = args.place.or_recorded(
        started.settings["repository"].as_str(),
        started.commit.as_deref(),
    );
    let settings = history::settings(&place, Some(&started))?;
    settings.notes.iter().for_each(|note| terminal.note(note));
    let approach = Variant::parse(&started.approach)?;
    let extra_inputs = ExtraInputs::of_record(&started.settings)?;
    let mut setup = Setup::new(&settings, shared_environments(&settings)?, terminal.clone())
        .await?
        .for_issue(Some(&started.issue))
        .with_recorded_repair(started.environment_repair.as_ref())?;
    setup.paths = extra_inputs.paths().into_iter().collect();
    let place = place.repository_location(None);
    let (source, environment, session) = setup.start_session(&place, Some(&started.digest)).await?;
    // The replay writes its record to a temporary folder, because the run's own record must not change.
    let aside = tempfile::tempdir()
        .map_err(|e| Error::infrastructure("create a temporary folder").cause(e.to_string()))?;
    let folder = RunFolder::create(&aside.path().join("replay"))
        .map_err(|error| Error::infrastructure(error.to_string()))?;
    let mut run = Run::new(RunParts {
        issue: extra_inputs.add_wish(started.issue.clone(), &approach),
        source,
        model: Arc::new(NoModel),
        session,
        folder,
        budget: Budget::new(Limits::default()),
        replay: Replay::with_live_tools(events),
        progress: terminal.clone(),
        max_tokens: None,
        processor: CpuPermit::default(),
        temperature: None,
    });
    let context = ApproachContext {
        max_steps: (started.settings["max_steps"].as_u64())
            .and_then(|steps| u32::try_from(steps).ok())
            .unwrap_or(u32::MAX),
        notes: environment.notes.clone(),
        options: approach.options().clone(),
        extra_inputs,
        context_window: settings.model.context_window,
        command: None,
        key_variable: settings.model.api_key_env.clone(),
    };
    let outcome = tokio::select! {
        outcome = (approach.approach.run)(&mut run, &context) => {
            outcome.unwrap_or_else(|outcome| outcome)
        }
        () = testwright_agent::setup::interrupted() => Outcome::Interrupted,
    };
    let outcome = match started.settings["min_confidence"].as_f64() {
        Some(minimum) => outcome.with_minimum(minimum),
        None => outcome,
    };
    let (budget, _, replay) = run.finish(&outcome).await;
    terminal.clear();
    if let Outcome::Infrastructure { message, hint, .. } = outcome {
        let error = Error::infrastructure("replay the run").cause(message);
        return Err(error.hint_if(hint));
    }
    let replayed = ReplayReport {
        steps: budget.spent.steps,
        tool_calls: budget.spent.tool_calls.values().sum(),
        same_outcome: recorded.is_none_or(|recorded| recorded.exit_code() == outcome.exit_code()),
        differences: replay.differences,
    };
    let same = replayed.differences.is_empty() && replayed.same_outcome;
    if args.json {
        super::output::print_json(&replayed)?;
    } else {
        super::output::print_stdout(describe(&replayed));
    }
    Ok(u8::from(!same))
}

fn describe(replayed: &ReplayReport) -> String {
    let steps = count(replayed.steps, "step");
    let calls = count(replayed.tool_calls, "tool call");
    let mut text = format!("replayed {steps} and {calls}: ");
    match replayed.differences.len() {
        0 => text.push_str("all answers are as recorded\n"),
        1 => text.push_str("1 answer differs\n"),
        n => text.push_str(&format!("{n} answers differ\n")),
    }
    for difference in &replayed.differences {
        let diff = first_difference(&difference.recorded, &difference.replayed);
        text.push_str(&format!(
            "step {}, {}:\n{diff}",
            difference.step,
            super::output::escape_line(&difference.tool)
        ));
    }
    if !replayed.same_outcome {
        text.push_str("the outcome differs from the record\n");
    }
    text
}

/// Shows the first line that differs, as recorded and as replayed.
fn first_difference(recorded: &str, now: &str) -> String {
    let mut pairs = recorded.lines().map(Some).chain(std::iter::repeat(None));
    let mut now_lines = now.lines().map(Some).chain(std::iter::repeat(None));
    let most = recorded.lines().count().max(now.lines().count());
    for line in 1..=most {
        let (was, is) = (pairs.next().flatten(), now_lines.next().flatten());
        if was != is {
            let show = |text: Option<&str>| text.unwrap_or("(nothing)").to_owned();
            return format!("  line {line}\n  - {}\n  + {}\n", show(was), show(is));
        }
    }
    "  only line endings differ\n".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_different_line_is_shown() {
        assert_eq!(
            first_difference("a\nb\nc", "a\nx\nc"),
            "  line 2\n  - b\n  + x\n"
        );
        assert_eq!(
            first_difference("a\nb", "a"),
            "  line 2\n  - b\n  + (nothing)\n"
        );
    }
}
