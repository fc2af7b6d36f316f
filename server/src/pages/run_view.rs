//! A run for its page.

use serde_json::{Value, json};
use testwright_evals::untrusted_text::MAX_NAME_CHARS;

use crate::api::ApiState;
use crate::comparison::CellRequest;
use crate::fields::shortened;
use crate::request::RunRequest;
use crate::store::{StoredRun, timestamp};
use testwright_agent::agent::Outcome;
use testwright_agent::approaches::Variant;
use testwright_agent::approaches::extra_inputs::check_can_revise;
use testwright_agent::gate;
use testwright_agent::trajectory::entry_view::EntryView;
use testwright_agent::trajectory::{Event, entries, usage_timeline};
use testwright_config::error::Result;

use super::outcome_text::explanation;
use super::usage_chart::usage_chart;

/// Maximum number of events on the page; the trajectory has all events.
const MAX_EVENTS: u32 = 2_000;

/// Returns a run for a list.
pub(super) fn run_row(run: &StoredRun) -> Value {
    let record = run.record_value();
    let usage = &record["usage"];
    let count = |name: &str| usage[name].as_u64();
    let tokens = count("prompt_tokens")
        .zip(count("completion_tokens"))
        .map(|(p, c)| p + c);
    let created = timestamp(run.created_at);
    json!({
        "id": run.id.as_str(),
        "title": title(run),
        "status": run.status.as_str(),
        "repository": shortened(&run.repository, MAX_NAME_CHARS),
        "commit": record["commit"].as_str(),
        "approach": shortened(&run.approach, MAX_NAME_CHARS),
        "model": shortened(&run.model, MAX_NAME_CHARS),
        "created_at": created.to_string(),
        "created": created.strftime("%Y-%m-%d %H:%M UTC").to_string(),
        "attempts": run.counted_attempts(),
        // The number of returns to the queue because of a shortage, and the last reason.
        "returned": run.return_reason().map(|reason| match run.returns {
            1 => format!("once: {reason}"),
            times => format!("{times} times, last: {reason}"),
        }),
        "calls": count("model_calls").map_or(String::new(), |n| n.to_string()),
        "tokens": tokens.map_or(String::new(), |n| n.to_string()),
        "seconds": record["seconds"].as_f64().map(|s| format!("{s:.1}")),
        "dollars": usage["dollars"].as_f64().map(|d| format!("{d:.4}")),
    })
}

/// Returns the title of the issue; without one, the id of the run.
pub(super) fn title(run: &StoredRun) -> String {
    if run.title.is_empty() {
        return run.id.to_string();
    }
    shortened(&run.title, MAX_NAME_CHARS)
}

/// Returns the run for its page.
pub(super) async fn run_view(state: &ApiState, run: &StoredRun) -> Result<Value> {
    let stored = state.store.events(&run.id, 0, MAX_EVENTS).await?;
    let events: Vec<Event> = stored
        .iter()
        .filter_map(|event| serde_json::from_str(&event.line).ok())
        .collect();
    let record = run.record_value();
    let outcome: Option<Outcome> = serde_json::from_value(record.clone()).ok();
    let files = state.store.artifacts(&run.id).await?.into_iter();
    let comparison = state.store.comparison(&run.batch).await?;
    // Outcomes of each test with each candidate fix.
    let (tests, fixes) = matrix(&record["evidence"]);
    let entries = entries(&events).into_iter().map(EntryView::from_entry);
    Ok(json!({
        "run": run_row(run),
        "comparison": comparison.map(|comparison| comparison.id.to_string()),
        // An explanation of the outcome.
        "said": explanation(&record, outcome.as_ref()),
        "may_cancel": !run.status.has_ended() && !run.cancel,
        "may_retry": run.status.may_be_retried(),
        "may_revise": may_revise(run),
        "patch": run.patch.as_deref().map(diff).unwrap_or_default(),
        "files": files.map(|file| file.name).collect::<Vec<_>>(),
        "evidence": outcome.as_ref().map(evidence).unwrap_or_default(),
        "tests": tests,
        "fixes": fixes,
        "usage": usage_chart(&usage_timeline(&events)),
        "issue": issue(&events, run),
        "entries": entries.collect::<Vec<_>>(),
    }))
}

fn may_revise(run: &StoredRun) -> bool {
    let can_revise = |variant: Variant| check_can_revise(&variant).is_ok();
    run.patch.is_some()
        && serde_json::from_str::<RunRequest>(&run.request).is_ok()
        && Variant::parse(&run.approach).is_ok_and(can_revise)
}

fn evidence(outcome: &Outcome) -> Vec<(&'static str, String)> {
    match outcome {
        Outcome::Accepted { evidence, .. }
        | Outcome::Withheld {
            evidence: Some(evidence),
            ..
        } => gate::evidence_rows(evidence),
        _ => Vec::new(),
    }
}

fn issue(events: &[Event], run: &StoredRun) -> String {
    match events.first() {
        Some(Event::Started(started)) => started.issue.text(),
        _ => match serde_json::from_str(&run.request) {
            Ok(RunRequest { issue, .. }) => issue,
            Err(_) => {
                let request: Option<CellRequest> = serde_json::from_str(&run.request).ok();
                request.map_or(String::new(), |of| of.task.instance.problem_statement)
            }
        },
    }
}

fn diff(patch: &str) -> Vec<Value> {
    let kind = |line: &str| match line.as_bytes().first() {
        _ if line.starts_with("+++") || line.starts_with("---") => "place",
        Some(b'+') => "added",
        Some(b'-') => "removed",
        Some(b' ') | None => "same",
        _ => "place",
    };
    let line = |line: &str| json!({ "kind": kind(line), "text": line });
    patch.lines().map(line).collect()
}

fn matrix(evidence: &Value) -> (Vec<String>, Vec<Vec<String>>) {
    let empty = Vec::new();
    let array = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let names = |outcomes: &[Value], at: usize| -> Vec<String> {
        outcomes
            .iter()
            .filter_map(|pair| pair[at].as_str().map(str::to_owned))
            .collect()
    };
    let fixes = evidence["fixes"].as_array().unwrap_or(&empty);
    let tests = fixes
        .first()
        .map(|fix| names(&array(&fix["outcomes"]), 0))
        .unwrap_or_default();
    let outcomes = fixes.iter().map(|fix| names(&array(&fix["outcomes"]), 1));
    (tests, outcomes.collect())
}
