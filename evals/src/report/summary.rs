//! Headline figures of one prediction set, as defined by SWT-bench (§3.3), TDD-Bench-Verified (Otter §5) and the strict
//! verdict.
//!
//! Infrastructure failures are excluded from all denominators and counted separately. An instance whose prediction is
//! missing or does not apply is in all denominators and counts as 0, once it is graded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metric::{Metric, counts, rate};
use super::prediction_sets::PredictionSet;
use crate::result::InstanceResult;
use crate::statistics::{DISAGREEMENT_OF_RERUNS, Mean, Rate, minimum_detectable_difference};
use crate::verdict::Adequacy;

/// Headline figures of one prediction set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Number of instances to be graded.
    pub instances: u64,
    /// Instances with a verdict: the denominator of the rates.
    pub graded: u64,
    /// Instances that failed because of the machine or testwright; not in any denominator.
    pub infrastructure: u64,
    /// Instances without a result so far; not in any denominator.
    pub not_graded: u64,
    /// Graded instances without a prediction.
    pub missing_predictions: u64,
    /// Share of predictions that are patches and apply.
    pub applicability: Rate,
    /// Share with F→×: a contributed test fails on the old code.
    pub fail_to_any: Rate,
    /// Share with a strict fail-to-pass (F→P).
    pub fail_to_pass: Rate,
    /// Share with SWT-bench's success as its harness computes it: see the field `success` of `Swt`.
    pub success: Rate,
    /// Share with SWT-bench's F→P.
    pub swt_fail_to_pass: Rate,
    /// Share whose contributed tests pass on both the old and the new code.
    pub pass_to_pass: Rate,
    /// Mean change coverage ΔC, 0 to 1, over all graded instances.
    pub coverage_delta_all: Mean,
    /// Mean ΔC over the instances with SWT-bench's success.
    pub coverage_delta_success: Mean,
    /// Mean ΔC over the other instances.
    pub coverage_delta_other: Mean,
    /// Instances excluded from these means because no executable line was changed.
    pub coverage_delta_no_lines: u64,
    /// Instances excluded from these means because coverage could not be measured.
    pub coverage_delta_not_measured: u64,
    /// Share with TDD-Bench-Verified's failToPass.
    pub tdd_fail_to_pass: Rate,
    /// Mean tddScore, 0 to 1; the paper prints it multiplied by 100.
    pub tdd_score: Mean,
    /// Mean adequacy ("coverage" in the paper), 0 to 1.
    pub adequacy: Mean,
    /// Number of instances without a value for adequacy.
    pub adequacy_excluded: u64,
    /// Differences that this number of instances can show.
    pub power: Power,
}

/// Smallest difference in the rate of strict F→P, from 0 to 1, that a comparison with another approach on the same
/// instances detects with 80 % power. `None` if no difference can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Power {
    /// Difference if the two approaches disagree on 16 % of the instances, as two published runs of one system did.
    pub correlated: Option<f64>,
    /// Difference if the two approaches solve instances independently of each other.
    pub independent: Option<f64>,
}

pub(super) fn summary(set: &PredictionSet) -> Summary {
    let judged = set.judged();
    let fail_to_pass = Metric::FailToPass.rate(&judged);
    let (success, other): (Vec<&InstanceResult>, Vec<&InstanceResult>) = judged
        .iter()
        .copied()
        .partition(|g| Metric::Success.holds(g));
    let deltas = deltas(&judged);
    let no_lines = judged.iter().filter(|g| has_no_lines(g)).count() as u64;
    let adequacies = adequacies(&judged);
    let scores: Vec<f64> = judged.iter().map(|g| counted_score(g)).collect();
    Summary {
        instances: set.instances,
        graded: judged.len() as u64,
        infrastructure: (set.all.len() - judged.len()) as u64,
        not_graded: set.instances.saturating_sub(set.all.len() as u64),
        missing_predictions: judged.iter().filter(|g| !g.has_patch).count() as u64,
        applicability: rate(&judged, |_| true),
        fail_to_any: rate(&judged, |g| g.swt.fail_to_any),
        fail_to_pass,
        success: Metric::Success.rate(&judged),
        swt_fail_to_pass: rate(&judged, |g| g.swt.fail_to_pass),
        pass_to_pass: rate(&judged, |g| g.swt.pass_to_pass),
        coverage_delta_all: Mean::from_values(&deltas),
        coverage_delta_success: Mean::from_values(&self::deltas(&success)),
        coverage_delta_other: Mean::from_values(&self::deltas(&other)),
        coverage_delta_no_lines: no_lines,
        coverage_delta_not_measured: (judged.len() - deltas.len()) as u64 - no_lines,
        tdd_fail_to_pass: Metric::TddFailToPass.rate(&judged),
        tdd_score: Mean::from_values(&scores),
        adequacy: Mean::from_values(&adequacies),
        adequacy_excluded: (judged.len() - adequacies.len()) as u64,
        power: power(&fail_to_pass),
    }
}

/// Returns the ΔC of each instance. Instances without lines to cover, or with unknown lines, are excluded for every
/// prediction.
pub(super) fn deltas(graded: &[&InstanceResult]) -> Vec<f64> {
    graded.iter().filter_map(|g| counted_delta(g)).collect()
}

/// Returns the ΔC of a result as the means count it; `None` if they exclude it.
pub fn counted_delta(graded: &InstanceResult) -> Option<f64> {
    let is_unknown = graded.coverage_problem.is_some() && graded.coverage_lines.is_none();
    match counts(graded) {
        _ if has_no_lines(graded) || is_unknown => None,
        true => graded.coverage_delta,
        false => Some(0.0),
    }
}

fn has_no_lines(graded: &InstanceResult) -> bool {
    graded.coverage_lines == Some(0)
}

/// Returns the adequacy of each instance. Instances without a changed statement, or for whose repository coverage is
/// omitted, are excluded for every prediction.
fn adequacies(graded: &[&InstanceResult]) -> Vec<f64> {
    graded.iter().filter_map(|g| counted_adequacy(g)).collect()
}

/// Returns the adequacy of a result as the mean counts it; `None` if it excludes it.
pub(super) fn counted_adequacy(graded: &InstanceResult) -> Option<f64> {
    match counts(graded) {
        _ if graded.adequacy_lines == Some(0) => None,
        true => graded.tdd.adequacy,
        false if Adequacy::is_omitted_for(&graded.repo) => None,
        false => Some(0.0),
    }
}

/// Returns the tddScore of a result as the mean counts it: 0 without a prediction that applies.
pub(super) fn counted_score(graded: &InstanceResult) -> f64 {
    match counts(graded) {
        true => graded.tdd.score,
        false => 0.0,
    }
}

fn power(rate: &Rate) -> Power {
    let instances = rate.denominator;
    let share = rate.rate.unwrap_or_default();
    Power {
        correlated: minimum_detectable_difference(instances, DISAGREEMENT_OF_RERUNS),
        independent: minimum_detectable_difference(instances, 2.0 * share * (1.0 - share)),
    }
}
