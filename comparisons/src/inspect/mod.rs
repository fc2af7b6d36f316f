//! A run or a comparison, to look through: lists of items, of which some open another list.

mod view;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use testwright_sandboxes::plain_file::{self, Links, MAX_DOCUMENT};

use crate::compare::report::Report;
use crate::compare::report::{Data, Judgement};
use crate::compare::{CostCounter, Plan, RunCost, StageCost};
use testwright_agent::agent::TokenShares;
use testwright_agent::trajectory::{Event, Events, TrajectoryError, entries_of};
use testwright_config::error::{Error, Result};

pub use view::{Key, View};

/// A list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    pub title: String,
    pub items: Vec<Item>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Item {
    /// In one line.
    pub title: String,
    pub text: String,
    /// Folder of a run.
    pub opens: Option<PathBuf>,
}

impl Item {
    fn new(title: impl Into<String>, text: impl Into<String>) -> Self {
        Item {
            title: title.into(),
            text: text.into(),
            opens: None,
        }
    }
}

/// Of the folder of a run or of a comparison.
pub fn open(folder: &Path) -> Result<Page> {
    if let Some(plan) = Plan::read(folder)? {
        return comparison(folder, &plan);
    }
    run(folder)
}

fn run(folder: &Path) -> Result<Page> {
    let wrong = |error: TrajectoryError| {
        Error::usage(error.to_string()).hint("inspect takes the folder of a run or of a comparison")
    };
    let (mut first, mut outcome) = (None, None);
    let (mut costs, mut shown) = (CostCounter::default(), Vec::new());
    for (number, event) in Events::open(folder).map_err(wrong)?.enumerate() {
        let event = event.map_err(wrong)?;
        costs.add(&event);
        let entries = entries_of(&event).into_iter();
        shown.extend(entries.map(|entry| Item::new(entry.title, entry.text)));
        match event {
            Event::Started(started) if number == 0 => first = Some(started),
            Event::Ended { outcome: last } => outcome = Some(last),
            _ => {}
        }
    }
    let mut items = Vec::new();
    items.push(match outcome {
        Some(outcome) => {
            let patch = outcome.written_patch().unwrap_or_default();
            Item::new("Outcome", format!("{}\n\n{patch}", outcome.summary()))
        }
        None => Item::new("Outcome", "The run has not ended."),
    });
    let (cost, stages) = costs.finish();
    items.push(Item::new("Cost", cost_text(&cost, &stages)));
    if let Some(shares) = token_shares(folder) {
        items.push(Item::new("Tokens", tokens_text(&shares)));
    }
    if let Some(started) = &first {
        items.push(Item::new("Issue", started.issue.text()));
    }
    items.extend(shown);
    Ok(Page {
        title: match first {
            Some(s) => format!("{} by {} with {}", s.issue.title, s.approach, s.model),
            None => folder.display().to_string(),
        },
        items,
    })
}

fn comparison(folder: &Path, plan: &Plan) -> Result<Page> {
    let data = Data::read(folder)?;
    let mut items = vec![Item::new("Report", Report::of(&data).table())];
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
                let cost = cost_text(&run.cost, &run.stages);
                items.push(Item {
                    title: format!("{sign} {}  {set}", instance.id),
                    text: format!("{}\n{reason}\n\n{cost}", run.outcome),
                    opens: Some(folder.join(&run.folder)),
                });
            }
        }
    }
    Ok(Page {
        title: format!(
            "{}: {} instances, {} systems, {} samples",
            plan.dataset,
            plan.instances.len(),
            plan.systems.len(),
            plan.samples
        ),
        items,
    })
}

/// What the tokens of a run were spent on, where that is known.
fn token_shares(folder: &Path) -> Option<TokenShares> {
    let path = folder.join("run.json");
    let text = plain_file::read(&path, Links::Refuse, MAX_DOCUMENT).ok()?;
    let run: serde_json::Value = serde_json::from_slice(&text).ok()?;
    let shares = TokenShares::deserialize(&run["usage"]["token_shares"]).ok()?;
    Some(shares).filter(|shares| !shares.is_empty())
}

/// The largest first.
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
        "{} model calls ({} failed, {} malformed), {} tool calls\n{} prompt tokens ({} from a cache), {} completion tokens\n\
         {:.1} s waiting for the model, {:.1} s of tools\n",
        cost.model_calls,
        cost.failed_calls,
        cost.malformed_calls,
        cost.tool_calls,
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

/// All of a run, or a line for each run of a comparison.
pub fn plain(page: &Page) -> String {
    let mut text = format!("{}\n", page.title);
    for item in &page.items {
        text.push_str(&format!("\n== {}\n", item.title));
        if item.opens.is_none() {
            text.push_str(item.text.trim_end());
            text.push('\n');
        }
    }
    text
}
