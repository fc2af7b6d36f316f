//! Summarizes the results of a system.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_evals::document::format::letter;
use testwright_evals::statistics::{
    DISAGREEMENT_OF_RERUNS, Mean, Rate, minimum_detectable_difference,
};
use testwright_evals::verdict::OldClass;

use super::confidence::{self, ConfidencePoint};
use super::data::{Data, LENGTHS, SystemRuns, Verdict};
use super::score::{Score, mean_of, pass_at, rate_of_runs};
use crate::compare::run_record::{RunCost, StageCost};
use crate::compare::{RunStatus, System};

/// Results of one system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SystemSummary {
    /// Name of the system in reports.
    pub name: String,
    /// The approach with its model, options and extra inputs.
    #[serde(flatten)]
    pub system: System,
    /// Number of runs with a verdict.
    pub judged: u64,
    /// Number of runs without a verdict, which do not count against the system.
    pub not_judged: u64,
    /// Number of runs that submitted a test.
    pub submitted: u64,
    /// Strict fail-to-pass. For an upper bound, all figures up to `coverage_delta` are those of its best samples.
    pub fail_to_pass: Score,
    /// SWT-bench's success.
    pub success: Score,
    /// TDD-Bench-Verified's fail-to-pass.
    pub tdd_fail_to_pass: Score,
    /// Mean tddScore, 0 to 1.
    pub tdd_score: Mean,
    /// Mean ΔC over all instances for which it can be measured.
    pub coverage_delta: Mean,
    /// Share of the runs with a submitted test that have a strict F→P: how far to trust an approach that may abstain.
    pub precision: Rate,
    /// Precision and recall for each minimum confidence.
    pub by_confidence: Vec<ConfidencePoint>,
    /// Probabilities pass@k for each k from 1 to the number of samples.
    pub pass_at: Vec<Option<f64>>,
    /// Runs with a submitted test by class on the old code, with the share of each class that has an F→P.
    pub classes: Vec<(OldClass, Rate)>,
    /// Mean cost per run.
    pub cost: CostSummary,
    /// Total cost of all runs by stage.
    pub stages: BTreeMap<String, StageCost>,
    /// Strict F→P of first samples by repository.
    pub by_repository: Vec<Group>,
    /// Strict F→P of first samples by issue length in tokens.
    pub by_issue_length: Vec<Group>,
    /// Minimum detectable difference in strict F→P to another system, with 80 % power. It is assumed that the two
    /// systems disagree as often as two runs of one system do.
    pub smallest_difference: Option<f64>,
}

impl SystemSummary {
    /// Returns the name with its letter, as in the plots.
    pub fn label(&self, at: usize) -> String {
        let bound = match self.system.oracle_samples {
            Some(_) => " (upper bound)",
            None => "",
        };
        format!("{} {}{bound}{}", letter(at), self.name, self.given())
    }

    /// Returns the extra inputs, preceded by a blank.
    pub fn given(&self) -> String {
        match self.system.extra_inputs.as_slice() {
            [] => String::new(),
            inputs => format!(" (given: {})", inputs.join(", ")),
        }
    }
}

/// Mean cost per run, over all runs that ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostSummary {
    /// Number of runs that ended; the means are over these.
    pub runs: u64,
    /// Mean number of model calls per run.
    pub model_calls: f64,
    /// Mean number of tool calls per run.
    pub tool_calls: f64,
    /// Mean number of tokens per run, prompts and completions together.
    pub tokens: f64,
    /// Share of the prompt tokens that came from a provider's cache.
    pub cached: Option<f64>,
    /// Mean cost in US dollars; `None` if a model has no price.
    pub dollars: Option<f64>,
    /// Mean time waiting for the model per run, in seconds.
    pub model_seconds: f64,
    /// Mean time of tools per run, in seconds.
    pub tool_seconds: f64,
    /// Total number of failed calls.
    pub failed_calls: u64,
    /// Total number of malformed tool calls in replies.
    pub malformed_calls: u64,
}

impl CostSummary {
    /// Returns one of the means; `None` if no run has ended.
    pub(super) fn mean(&self, figure: fn(&CostSummary) -> f64) -> Option<f64> {
        (self.runs > 0).then(|| figure(self))
    }
}

/// Results of a system on a group of instances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// Repository as `owner/name`, or range of issue lengths in tokens.
    pub name: String,
    /// Strict F→P of first samples.
    pub fail_to_pass: Rate,
}

pub(super) fn summaries(data: &Data) -> Vec<SystemSummary> {
    data.systems.iter().map(|s| summary(data, s)).collect()
}

fn summary(data: &Data, of: &SystemRuns) -> SystemSummary {
    let judged = of.judged().count();
    let expected: usize = of.runs.iter().map(Vec::len).sum();
    let submitted = of.judged().filter(|(_, run, _)| run.is_submitted());
    let submitted_verdicts: Vec<_> = submitted.map(|(at, _, verdict)| (at, verdict)).collect();
    let samples = of.runs.first().map_or(0, Vec::len);
    let fail_to_pass = Score::from_system(of, |v| v.fail_to_pass);
    SystemSummary {
        name: of.system.name(),
        system: of.system.clone(),
        judged: judged as u64,
        not_judged: (expected - judged) as u64,
        submitted: of.all().filter(|run| run.is_submitted()).count() as u64,
        success: Score::from_system(of, |v| v.success),
        tdd_fail_to_pass: Score::from_system(of, |v| v.tdd_fail_to_pass),
        tdd_score: mean_of(of, |v| Some(v.tdd_score)),
        coverage_delta: mean_of(of, |v| v.coverage_delta),
        precision: rate_of_runs(
            submitted_verdicts
                .iter()
                .map(|(at, v)| (*at, v.fail_to_pass)),
        ),
        by_confidence: confidence::points(of),
        pass_at: (1..=samples).map(|k| pass_at(of, k)).collect(),
        classes: classes(&submitted_verdicts),
        cost: cost(of),
        stages: stages(of),
        by_repository: by_repository(data, of),
        by_issue_length: by_issue_length(data, of),
        smallest_difference: minimum_detectable_difference(
            fail_to_pass.instances,
            DISAGREEMENT_OF_RERUNS,
        ),
        fail_to_pass,
    }
}

fn classes(verdicts: &[(usize, &Verdict)]) -> Vec<(OldClass, Rate)> {
    let of_class = |class: OldClass| {
        let verdicts = verdicts
            .iter()
            .filter(|(_, v)| v.old_class.unwrap_or(OldClass::None) == class);
        let holds = verdicts.map(|(at, v)| (*at, v.fail_to_pass));
        (class, rate_of_runs(holds))
    };
    OldClass::ALL.map(of_class).into()
}

fn cost(of: &SystemRuns) -> CostSummary {
    let ended = of
        .all()
        .filter(|run| run.status != RunStatus::Infrastructure);
    let costs: Vec<&RunCost> = ended.map(|run| &run.cost).collect();
    if costs.is_empty() || !of.system.has_runs() {
        return CostSummary::default();
    }
    let mean = |of: &dyn Fn(&RunCost) -> f64| {
        costs.iter().map(|cost| of(cost)).sum::<f64>() / costs.len() as f64
    };
    let dollars: Option<f64> = costs.iter().map(|cost| cost.dollars).sum();
    let total = |of: fn(&RunCost) -> u32| costs.iter().map(|cost| u64::from(of(cost))).sum();
    let prompt: u64 = costs.iter().map(|cost| cost.prompt_tokens).sum();
    let cached: u64 = costs.iter().map(|cost| cost.cached_tokens).sum();
    CostSummary {
        runs: costs.len() as u64,
        model_calls: mean(&|cost| f64::from(cost.model_calls)),
        tool_calls: mean(&|cost| f64::from(cost.tool_calls)),
        tokens: mean(&|cost| cost.tokens() as f64),
        cached: (prompt > 0).then(|| cached as f64 / prompt as f64),
        dollars: dollars.map(|sum| sum / costs.len() as f64),
        model_seconds: mean(&|cost| cost.model_seconds),
        tool_seconds: mean(&|cost| cost.tool_seconds),
        failed_calls: total(|cost| cost.failed_calls),
        malformed_calls: total(|cost| cost.malformed_calls),
    }
}

fn stages(of: &SystemRuns) -> BTreeMap<String, StageCost> {
    let mut all: BTreeMap<String, StageCost> = BTreeMap::new();
    for run in of.all() {
        for (name, cost) in &run.stages {
            all.entry(name.clone()).or_default().add(*cost);
        }
    }
    all
}

/// Computes the rate of a group over the first samples with a verdict.
fn group(name: &str, of: &SystemRuns, instances: impl Iterator<Item = usize>) -> Option<Group> {
    let verdicts: Vec<bool> = instances
        .filter_map(|at| of.first(at))
        .map(|verdict| verdict.fail_to_pass)
        .collect();
    let holding = verdicts.iter().filter(|holds| **holds).count();
    (!verdicts.is_empty()).then(|| Group {
        name: name.to_owned(),
        fail_to_pass: Rate::new(holding, verdicts.len()),
    })
}

fn by_repository(data: &Data, of: &SystemRuns) -> Vec<Group> {
    let instances = &data.plan.instances;
    let names: BTreeSet<&str> = instances.iter().map(|i| i.repository.as_str()).collect();
    let of_name = |name: &str| {
        let those = (0..instances.len()).filter(|at| instances[*at].repository == name);
        group(name, of, those)
    };
    names.into_iter().filter_map(of_name).collect()
}

fn by_issue_length(data: &Data, of: &SystemRuns) -> Vec<Group> {
    let instances = &data.plan.instances;
    let mut least = 0;
    let mut groups = Vec::new();
    for (name, most) in LENGTHS {
        let range = least..=most;
        let those = (0..instances.len()).filter(|at| range.contains(&instances[*at].issue_tokens));
        groups.extend(group(name, of, those));
        least = most.saturating_add(1);
    }
    groups
}

#[cfg(test)]
mod tests;
