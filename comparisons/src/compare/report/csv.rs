//! CSV tables for other programs: `report.csv` with a line per system, and `runs.csv` with a line per run.

use testwright_evals::document::format::old_class;
use testwright_evals::document::{Figure, csv_table, text_cell};

use super::data::{Data, Judgement, ScoredRun, SystemRuns, Verdict};
use super::{ComparisonReport, SystemSummary};
use crate::compare::RunStatus;
use crate::compare::plan::PlannedInstance;

const SYSTEM: [Figure<SystemSummary>; 21] = [
    ("system", |s| text_cell(&s.name)),
    ("approach", |s| text_cell(&s.system.approach)),
    ("model", |s| text_cell(&s.system.model)),
    ("upper_bound", |s| {
        s.system.oracle_samples.is_some().to_string()
    }),
    ("extra_inputs", |s| {
        text_cell(&s.system.extra_inputs.join("; "))
    }),
    ("runs_judged", |s| s.judged.to_string()),
    ("runs_not_judged", |s| s.not_judged.to_string()),
    ("submitted", |s| s.submitted.to_string()),
    ("fail_to_pass", |s| number(s.fail_to_pass.value)),
    ("fail_to_pass_low", |s| {
        number(s.fail_to_pass.interval.map(|[low, _]| low))
    }),
    ("fail_to_pass_high", |s| {
        number(s.fail_to_pass.interval.map(|[_, high]| high))
    }),
    ("swt_success", |s| number(s.success.value)),
    ("tdd_fail_to_pass", |s| number(s.tdd_fail_to_pass.value)),
    ("tdd_score", |s| number(s.tdd_score.mean)),
    ("coverage_delta", |s| number(s.coverage_delta.mean)),
    ("precision", |s| number(s.precision.rate)),
    ("model_calls", |s| {
        number(s.cost.mean(|cost| cost.model_calls))
    }),
    ("tokens", |s| number(s.cost.mean(|cost| cost.tokens))),
    ("dollars", |s| number(s.cost.dollars)),
    ("model_seconds", |s| {
        number(s.cost.mean(|cost| cost.model_seconds))
    }),
    ("tool_seconds", |s| {
        number(s.cost.mean(|cost| cost.tool_seconds))
    }),
];

/// A run with its instance and its system.
struct Row<'a> {
    instance: &'a PlannedInstance,
    of: &'a SystemRuns,
    /// Number of the sample, from 1 on.
    sample: usize,
    run: &'a ScoredRun,
}

/// Name of a column, and its value for a run.
type RunColumn = (&'static str, fn(&Row<'_>) -> String);

const RUN: [RunColumn; 25] = [
    ("instance_id", |r| text_cell(&r.instance.id)),
    ("repo", |r| text_cell(&r.instance.repository)),
    ("issue_tokens", |r| r.instance.issue_tokens.to_string()),
    ("approach", |r| text_cell(&r.of.system.approach)),
    ("model", |r| text_cell(&r.of.system.model)),
    ("sample", |r| r.sample.to_string()),
    ("status", |r| status(r.run.status).to_owned()),
    ("fail_to_pass", |r| verdict(r, |v| v.fail_to_pass)),
    ("swt_success", |r| verdict(r, |v| v.success)),
    ("tdd_fail_to_pass", |r| verdict(r, |v| v.tdd_fail_to_pass)),
    ("class_on_old_code", |r| {
        let class = r.run.verdict().and_then(|v| v.old_class);
        class.map(old_class).unwrap_or_default().to_owned()
    }),
    ("tdd_score", |r| {
        number(r.run.verdict().map(|v| v.tdd_score))
    }),
    ("coverage_delta", |r| {
        number(r.run.verdict().and_then(|v| v.coverage_delta))
    }),
    ("confidence", |r| number(r.run.confidence)),
    ("reason", |r| match &r.run.judgement {
        Judgement::Verdict(verdict) => text_cell(&verdict.reason),
        Judgement::NotJudged(reason) => text_cell(reason),
    }),
    ("model_calls", |r| count(r, r.run.cost.model_calls.into())),
    ("failed_calls", |r| count(r, r.run.cost.failed_calls.into())),
    ("tool_calls", |r| count(r, r.run.cost.tool_calls.into())),
    ("prompt_tokens", |r| count(r, r.run.cost.prompt_tokens)),
    ("cached_tokens", |r| count(r, r.run.cost.cached_tokens)),
    ("completion_tokens", |r| {
        count(r, r.run.cost.completion_tokens)
    }),
    ("dollars", |r| number(r.run.cost.dollars)),
    ("model_seconds", |r| seconds(r, r.run.cost.model_seconds)),
    ("tool_seconds", |r| seconds(r, r.run.cost.tool_seconds)),
    ("folder", |r| r.run.folder.clone()),
];

pub(super) fn systems(report: &ComparisonReport) -> csv::Result<Vec<u8>> {
    let most = report.systems.iter().map(|s| s.pass_at.len()).max();
    let samples = 1..=most.unwrap_or_default();
    let names = SYSTEM.map(|(name, _)| name.to_owned()).into_iter();
    let head = names.chain(samples.clone().map(|k| format!("pass_at_{k}")));
    let rows = report.systems.iter().map(|s| {
        let pass_at = samples.clone().map(move |k| s.pass_at.get(k - 1).copied());
        let pass_at = pass_at.map(|rate| number(rate.flatten()));
        SYSTEM.map(|(_, cell)| cell(s)).into_iter().chain(pass_at)
    });
    csv_table(head, rows)
}

pub(super) fn runs(data: &Data) -> csv::Result<Vec<u8>> {
    let mut rows = Vec::new();
    for of in &data.systems {
        for (instance, samples) in data.plan.instances.iter().zip(&of.runs) {
            let runs = samples.iter().enumerate();
            rows.extend(runs.filter_map(|(at, run)| {
                Some(Row {
                    instance,
                    of,
                    sample: at + 1,
                    run: run.as_ref()?,
                })
            }));
        }
    }
    let rows = rows.iter().map(|row| RUN.map(|(_, cell)| cell(row)));
    csv_table(RUN.map(|(name, _)| name), rows)
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.6}"))
}

fn status(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Submitted => "submitted",
        RunStatus::NothingSubmitted => "nothing_submitted",
        RunStatus::Infrastructure => "infrastructure",
    }
}

fn verdict(row: &Row<'_>, holds: fn(&Verdict) -> bool) -> String {
    let verdict = row.run.verdict();
    verdict.map_or_else(String::new, |verdict| holds(verdict).to_string())
}

/// Formats a figure of the run, if the system has runs.
fn count(row: &Row<'_>, figure: u64) -> String {
    match row.of.system.has_runs() {
        true => figure.to_string(),
        false => String::new(),
    }
}

fn seconds(row: &Row<'_>, figure: f64) -> String {
    number(Some(figure).filter(|_| row.of.system.has_runs()))
}
