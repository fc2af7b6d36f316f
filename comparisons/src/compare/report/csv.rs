//! CSV tables for other programs: `report.csv` with a line per system, and `runs.csv` with a line per run.

use ::csv::{self, Writer};
use testwright_evals::document::format::old_class;
use testwright_evals::document::text_cell;

use super::ComparisonReport;
use super::data::{Data, Judgement};
use crate::compare::RunStatus;

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.6}"))
}

fn bytes(writer: Writer<Vec<u8>>) -> csv::Result<Vec<u8>> {
    writer
        .into_inner()
        .map_err(|error| error.into_error().into())
}

pub(super) fn systems(report: &ComparisonReport) -> csv::Result<Vec<u8>> {
    let mut table = Writer::from_writer(Vec::new());
    let most = report.systems.iter().map(|s| s.pass_at.len()).max();
    let samples = 1..=most.unwrap_or_default();
    let heads = samples.clone().map(|k| format!("pass_at_{k}"));
    table.write_record(
        [
            "system",
            "approach",
            "model",
            "upper_bound",
            "extra_inputs",
            "runs_judged",
            "runs_not_judged",
            "submitted",
            "fail_to_pass",
            "fail_to_pass_low",
            "fail_to_pass_high",
            "swt_success",
            "tdd_fail_to_pass",
            "tdd_score",
            "coverage_delta",
            "precision",
            "model_calls",
            "tokens",
            "dollars",
            "model_seconds",
            "tool_seconds",
        ]
        .map(str::to_owned)
        .into_iter()
        .chain(heads),
    )?;
    for s in &report.systems {
        let text = |text: &str| text_cell(text).into_owned();
        let cost = |figure: f64| number(Some(figure).filter(|_| s.system.has_runs()));
        let [low, high] = s.fail_to_pass.interval.map_or([None; 2], |i| i.map(Some));
        let pass_at = samples.clone().map(|k| s.pass_at.get(k - 1).copied());
        table.write_record(
            [
                text(&s.name),
                text(&s.system.approach),
                text(&s.system.model),
                s.system.oracle_samples.is_some().to_string(),
                text(&s.system.extra_inputs.join("; ")),
                s.judged.to_string(),
                s.not_judged.to_string(),
                s.submitted.to_string(),
                number(s.fail_to_pass.value),
                number(low),
                number(high),
                number(s.success.value),
                number(s.tdd_fail_to_pass.value),
                number(s.tdd_score.mean),
                number(s.coverage_delta.mean),
                number(s.precision.rate),
                cost(s.cost.model_calls),
                cost(s.cost.tokens),
                number(s.cost.dollars),
                cost(s.cost.model_seconds),
                cost(s.cost.tool_seconds),
            ]
            .into_iter()
            .chain(pass_at.map(|rate| number(rate.flatten()))),
        )?;
    }
    bytes(table)
}

pub(super) fn runs(data: &Data) -> csv::Result<Vec<u8>> {
    let mut table = Writer::from_writer(Vec::new());
    table.write_record([
        "instance_id",
        "repo",
        "issue_tokens",
        "approach",
        "model",
        "sample",
        "status",
        "fail_to_pass",
        "swt_success",
        "tdd_fail_to_pass",
        "class_on_old_code",
        "tdd_score",
        "coverage_delta",
        "confidence",
        "reason",
        "model_calls",
        "failed_calls",
        "tool_calls",
        "prompt_tokens",
        "cached_tokens",
        "completion_tokens",
        "dollars",
        "model_seconds",
        "tool_seconds",
        "folder",
    ])?;
    for of in &data.systems {
        for (instance, samples) in data.plan.instances.iter().zip(&of.runs) {
            for (at, run) in samples.iter().enumerate() {
                let Some(run) = run else { continue };
                let (verdicts, class, score, delta, reason) = match &run.judgement {
                    Judgement::Verdict(v) => (
                        [v.fail_to_pass, v.success, v.tdd_fail_to_pass].map(|b| b.to_string()),
                        v.old_class.map(old_class).unwrap_or_default(),
                        Some(v.tdd_score),
                        v.coverage_delta,
                        v.reason.as_str(),
                    ),
                    Judgement::NotJudged(why) => (Default::default(), "", None, None, why.as_str()),
                };
                let [strict, success, tdd] = verdicts;
                let status = match run.status {
                    RunStatus::Submitted => "submitted",
                    RunStatus::NothingSubmitted => "nothing_submitted",
                    RunStatus::Infrastructure => "infrastructure",
                };
                let cost = |figure: u64| match of.system.has_runs() {
                    true => figure.to_string(),
                    false => String::new(),
                };
                let seconds = |figure: f64| number(Some(figure).filter(|_| of.system.has_runs()));
                table.write_record([
                    &*text_cell(&instance.id),
                    &text_cell(&instance.repository),
                    &instance.issue_tokens.to_string(),
                    &text_cell(&of.system.approach),
                    &text_cell(&of.system.model),
                    &(at + 1).to_string(),
                    status,
                    &strict,
                    &success,
                    &tdd,
                    class,
                    &number(score),
                    &number(delta),
                    &number(run.confidence),
                    &text_cell(reason),
                    &cost(run.cost.model_calls.into()),
                    &cost(run.cost.failed_calls.into()),
                    &cost(run.cost.tool_calls.into()),
                    &cost(run.cost.prompt_tokens),
                    &cost(run.cost.cached_tokens),
                    &cost(run.cost.completion_tokens),
                    &number(run.cost.dollars),
                    &seconds(run.cost.model_seconds),
                    &seconds(run.cost.tool_seconds),
                    &run.folder,
                ])?;
            }
        }
    }
    bytes(table)
}
