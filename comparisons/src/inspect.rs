//! Renders a run or a comparison as plain text.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use testwright_sandboxes::plain_file::{self, Links, MAX_DOCUMENT};

use crate::compare::report::ComparisonReport;
use crate::compare::report::{Data, Judgement};
use crate::compare::{CostCounter, Plan, RunCost, StageCost};
use testwright_agent::agent::TokenShares;
use testwright_agent::job::recorded_outcome;
use testwright_agent::trajectory::{Event, Events, TrajectoryError, entries_of};
use testwright_config::error::{Error, Result};
use testwright_tools::tools::count;

/// Renders a whole run, or a summary of each run of a comparison, depending on the folder.
///
/// # Errors
///
/// Fails if the folder contains neither a run nor a comparison, or cannot be read.
pub fn text(folder: &Path) -> Result<String> {
    match Plan::read(folder)? {
        Some(plan) => comparison(folder, &plan),
        None => run(folder),
    }
}

fn part(title: &str, text: &str) -> String {
    format!("\n== {title}\n{}\n", text.trim_end())
}

fn run(folder: &Path) -> Result<String> {
    let wrong = |error: TrajectoryError| {
        Error::usage(error.to_string()).hint(
            "pass the folder of a run or a comparison; `testwright show` prints the report of other results",
        )
    };
    let (mut first, mut outcome) = (None, None);
    let (mut costs, mut transcript) = (CostCounter::default(), String::new());
    for (number, event) in Events::open(folder).map_err(wrong)?.enumerate() {
        let event = event.map_err(wrong)?;
        costs.add(&event);
        for entry in entries_of(&event) {
            transcript.push_str(&part(&entry.title, &entry.text));
        }
        match event {
            Event::Started(started) if number == 0 => first = Some(started),
            Event::Ended { outcome: last } => outcome = Some(last),
            _ => {}
        }
    }
    let mut text = match &first {
        Some(s) => format!("{} by {} with {}\n", s.issue.title, s.approach, s.model),
        None => format!("{}\n", folder.display()),
    };
    let outcome = match outcome {
        Some(outcome) => {
            let patch = outcome.written_patch().unwrap_or_default();
            Some(format!("{}\n\n{patch}", outcome.summary()))
        }
        None => recorded_outcome(folder).map(|outcome| outcome.summary()),
    };
    let outcome = outcome.as_deref().unwrap_or("The run has not ended.");
    text.push_str(&part("Outcome", outcome));
    let (cost, stages) = costs.finish();
    text.push_str(&part("Cost", &cost_text(&cost, &stages)));
    if let Some(shares) = token_shares(folder) {
        text.push_str(&part("Tokens", &tokens_text(&shares)));
    }
    if let Some(started) = &first {
        text.push_str(&part("Issue", &started.issue.text()));
    }
    text.push_str(&transcript);
    Ok(text)
}

fn comparison(folder: &Path, plan: &Plan) -> Result<String> {
    let data = Data::read(folder)?;
    let mut text = format!(
        "{}: {}, {}, {}\n",
        plan.dataset,
        count(plan.instances.len(), "instance"),
        count(plan.systems.len(), "system"),
        count(plan.samples, "sample")
    );
    text.push_str(&part(
        "Report",
        &ComparisonReport::from_data(&data).table(None),
    ));
    for (at, instance) in data.plan.instances.iter().enumerate() {
        for system in &data.systems {
            for (sample, run) in system.runs[at].iter().enumerate() {
                let Some(run) = run else { continue };
                let (sign, reason) = match &run.judgement {
                    Judgement::Verdict(v) if v.fail_to_pass => ("✓", v.reason.as_str()),
                    Judgement::Verdict(v) if v.old_class.is_none() => ("–", v.reason.as_str()),
                    Judgement::Verdict(v) => ("✗", v.reason.as_str()),
                    Judgement::NotJudged(why) => ("?", why.as_str()),
                };
                let set = system.system.prediction_set(sample as u32 + 1);
                let mut lines = format!("{}\n{reason}", run.outcome);
                if system.system.has_runs() {
                    let folder = folder.join(&run.folder);
                    let details = format!("\ndetails: testwright inspect '{}'", folder.display());
                    lines.push_str(&details);
                }
                text.push_str(&part(&format!("{sign} {}  {set}", instance.id), &lines));
            }
        }
    }
    Ok(text)
}

/// Returns how a run's tokens were spent, if it is known.
fn token_shares(folder: &Path) -> Option<TokenShares> {
    let path = folder.join("run.json");
    let text = plain_file::read(&path, Links::Refuse, MAX_DOCUMENT).ok()?;
    let run: serde_json::Value = serde_json::from_slice(&text).ok()?;
    let shares = TokenShares::deserialize(&run["usage"]["token_shares"]).ok()?;
    Some(shares).filter(|shares| !shares.is_empty())
}

/// Formats the token shares, largest first.
fn tokens_text(shares: &TokenShares) -> String {
    let all: u64 = shares.values().sum();
    let mut sorted: Vec<(&String, &u64)> = shares.iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1));
    let mut text = format!("{:<28} {:>10} {:>6}\n", "spent on", "tokens", "share");
    for (what, tokens) in sorted {
        let share = *tokens as f64 * 100.0 / all.max(1) as f64;
        text.push_str(&format!("{what:<28} {tokens:>10} {share:>5.1}%\n"));
    }
    text
}

fn cost_text(cost: &RunCost, stages: &BTreeMap<String, StageCost>) -> String {
    let mut text = format!(
        "{} ({} failed, {} malformed), {}\n{} prompt tokens ({} cached), {} completion tokens\n\
         {:.1} s waiting for the model, {:.1} s running tools\n",
        count(cost.model_calls, "model call"),
        cost.failed_calls,
        cost.malformed_calls,
        count(cost.tool_calls, "tool call"),
        cost.prompt_tokens,
        cost.cached_tokens,
        cost.completion_tokens,
        cost.model_seconds,
        cost.tool_seconds
    );
    if let Some(dollars) = cost.dollars.filter(|dollars| *dollars > 0.0) {
        text.push_str(&format!("{dollars:.4} dollars\n"));
    }
    text.push_str(&format!(
        "\n{:<18} {:>6} {:>10} {:>9} {:>9}\n",
        "stage or tool", "calls", "tokens", "model s", "tool s"
    ));
    for (name, stage) in stages {
        text.push_str(&format!(
            "{name:<18} {:>6} {:>10} {:>9.1} {:>9.1}\n",
            stage.model_calls, stage.tokens, stage.model_seconds, stage.tool_seconds
        ));
    }
    text
}
