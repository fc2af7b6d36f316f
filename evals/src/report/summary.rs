//! The headline figures of one prediction set, as SWT-bench (§3.3), TDD-Bench-Verified (Otter §5) and the strict verdict
//! define them.
//!
//! Denominators: what failed for reasons of ours or of the machine's is left out of all of them and counted on its own; an
//! instance without a prediction, or with one that does not apply, is in all of them and counts as 0.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metric::{Metric, counts, rate};
use super::prediction_sets::PredictionSet;
use crate::result::InstanceResult;
use crate::statistics::{DISAGREEMENT_OF_RERUNS, Mean, Rate, smallest_difference};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Instances that were to be graded.
    pub instances: u64,
    /// Those with a verdict: the denominator of the rates.
    pub graded: u64,
    /// Those where something of ours or of the machine's failed: in no denominator.
    pub infrastructure: u64,
    /// Those of which no result is there yet: in no denominator.
    pub not_graded: u64,
    /// Of the graded: those without a prediction.
    pub not_given: u64,
    /// The prediction is a patch that applies.
    pub applicability: Rate,
    /// F→×: a contributed test fails on the old code.
    pub fail_to_any: Rate,
    /// The strict verdict.
    pub fail_to_pass: Rate,
    /// SWT-bench's success as its harness has it: a fail-to-pass over the base suite, and among the tests of the files no
    /// pass-to-fail and no fail-to-fail over it.
    pub success: Rate,
    /// SWT-bench's F→P.
    pub swt_fail_to_pass: Rate,
    /// The contributed tests pass on the old code and on the new.
    pub pass_to_pass: Rate,
    /// Change coverage ΔC, 0 to 1, over all graded instances.
    pub coverage_delta_all: Mean,
    /// ΔC over the instances with SWT-bench's success.
    pub coverage_delta_success: Mean,
    /// ΔC over the others.
    pub coverage_delta_other: Mean,
    /// Instances that are in none of these means because no line that can run was changed.
    pub coverage_delta_no_lines: u64,
    /// Instances that are in none of these means because coverage could not be measured.
    pub coverage_delta_not_measured: u64,
    /// TDD-Bench-Verified's failToPass.
    pub tdd_fail_to_pass: Rate,
    /// Mean of tddScore, 0 to 1; the paper prints it times 100.
    pub tdd_score: Mean,
    /// Mean adequacy ("coverage" in the paper), 0 to 1.
    pub adequacy: Mean,
    /// Instances without a measure of adequacy.
    pub adequacy_left_out: u64,
    /// What so many instances could show.
    pub power: Power,
}

/// The smallest difference of strict F→P to another approach on the same instances that so many instances show with 80 %
/// power, as a share; `None` where they cannot show any.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Power {
    /// If the two disagree as often as two published runs of one system did: on 16 % of the instances.
    pub if_alike: Option<f64>,
    /// If the two solve instances independently of each other.
    pub if_independent: Option<f64>,
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
    let scores = values(&judged, |g| Some(g.tdd.score));
    Summary {
        instances: set.instances,
        graded: judged.len() as u64,
        infrastructure: (set.all.len() - judged.len()) as u64,
        not_graded: set.instances.saturating_sub(set.all.len() as u64),
        not_given: judged.iter().filter(|g| !g.given).count() as u64,
        applicability: rate(&judged, |_| true),
        fail_to_any: rate(&judged, |g| g.swt.fail_to_any),
        fail_to_pass,
        success: Metric::Success.rate(&judged),
        swt_fail_to_pass: rate(&judged, |g| g.swt.fail_to_pass),
        pass_to_pass: rate(&judged, |g| g.swt.pass_to_pass),
        coverage_delta_all: Mean::of(&deltas),
        coverage_delta_success: Mean::of(&self::deltas(&success)),
        coverage_delta_other: Mean::of(&self::deltas(&other)),
        coverage_delta_no_lines: no_lines,
        coverage_delta_not_measured: (judged.len() - deltas.len()) as u64 - no_lines,
        tdd_fail_to_pass: Metric::TddFailToPass.rate(&judged),
        tdd_score: Mean::of(&scores),
        adequacy: Mean::of(&adequacies),
        adequacy_left_out: (judged.len() - adequacies.len()) as u64,
        power: power(&fail_to_pass),
    }
}

/// ΔC of each. An instance without a line to cover, or where that is not known, is left out whatever was predicted.
pub(super) fn deltas(graded: &[&InstanceResult]) -> Vec<f64> {
    let is_known = |g: &&InstanceResult| g.coverage_problem.is_none() || g.coverage_lines.is_some();
    let with_lines = graded.iter().copied();
    let with_lines = with_lines.filter(|g| !has_no_lines(g)).filter(is_known);
    values(&with_lines.collect::<Vec<_>>(), |g| g.coverage_delta)
}

fn has_no_lines(graded: &InstanceResult) -> bool {
    graded.coverage_lines == Some(0)
}

/// Adequacy of each; an instance of which no changed line is a statement is left out whatever was predicted.
fn adequacies(graded: &[&InstanceResult]) -> Vec<f64> {
    let with_lines = graded.iter().copied();
    let with_lines = with_lines.filter(|g| g.adequacy_lines != Some(0));
    values(&with_lines.collect::<Vec<_>>(), |g| g.tdd.adequacy)
}

/// What is measured of each; 0 without a prediction that applies; those without a measure are left out.
pub(super) fn values(
    graded: &[&InstanceResult],
    of: impl Fn(&InstanceResult) -> Option<f64>,
) -> Vec<f64> {
    graded
        .iter()
        .filter_map(|g| if counts(g) { of(g) } else { Some(0.0) })
        .collect()
}

fn power(rate: &Rate) -> Power {
    let instances = rate.denominator;
    let share = rate.rate.unwrap_or_default();
    Power {
        if_alike: smallest_difference(instances, DISAGREEMENT_OF_RERUNS),
        if_independent: smallest_difference(instances, 2.0 * share * (1.0 - share)),
    }
}
