//! Detailed figures of one prediction set: by class on the old code, by repository, by issue length, strict against
//! official verdicts, outcomes, coverage, time, and infrastructure failures.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_tools::outcomes::report::Outcome;

use super::metric::{Metric, counts};
use super::prediction_sets::PredictionSet;
use crate::result::{InstanceResult, Seconds};
use crate::statistics::{PairedComparison, Rate};
use crate::verdict::OldClass;

/// Detailed figures of one prediction set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Details {
    /// Strict F→P by class on the old code, as in Otter's table.
    pub by_old_class: Vec<ClassRow>,
    /// Agreement of strict F→P with SWT-bench's success.
    pub strict_against_swt: VerdictAgreement,
    /// Agreement of strict F→P with TDD-Bench-Verified's.
    pub strict_against_tdd: VerdictAgreement,
    /// Instances whose verdicts differ, with the reasons.
    pub differing: Vec<VerdictDifference>,
    /// Groups by repository.
    pub by_repository: Vec<Group>,
    /// Groups by issue length in tokens.
    pub by_issue_length: Vec<Group>,
    /// Number of contributed tests by outcome on the old and the new code.
    pub flows: Vec<Flow>,
    /// Distribution of the change coverage ΔC.
    pub coverage: Histogram,
    /// Time that grading took.
    pub time: Time,
    /// Infrastructure failures, one per instance.
    pub infrastructure: Vec<InfrastructureFailure>,
}

/// Predictions with the same class on the old code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassRow {
    /// Combined outcome of the contributed tests on the old code.
    pub old_class: OldClass,
    /// Share of the predictions in this class with a strict F→P.
    pub fail_to_pass: Rate,
}

/// Number of instances by the strict verdict and that of a public harness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictAgreement {
    /// Positive in both.
    pub both: u64,
    /// Positive in the strict verdict only.
    pub only_strict: u64,
    /// Positive in the public harness only.
    pub only_official: u64,
    /// Negative in both.
    pub neither: u64,
}

/// An instance on which the strict verdict differs from a public harness.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictDifference {
    /// Id of the instance.
    pub instance_id: String,
    /// Strict fail-to-pass.
    pub fail_to_pass: bool,
    /// SWT-bench's success.
    pub success: bool,
    /// TDD-Bench-Verified's fail-to-pass.
    pub tdd_fail_to_pass: bool,
    /// Reasons for the difference.
    pub reasons: Vec<String>,
}

/// A group of instances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// Repository as `owner/name`, or range of issue lengths in tokens.
    pub name: String,
    /// Infrastructure failures, which are not in any rate.
    pub infrastructure: u64,
    /// Strict fail-to-pass.
    pub fail_to_pass: Rate,
    /// SWT-bench's success.
    pub success: Rate,
    /// TDD-Bench-Verified's fail-to-pass.
    pub tdd_fail_to_pass: Rate,
}

/// Number of contributed tests with the same outcomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flow {
    /// Outcome on the old code.
    pub old: Outcome,
    /// Outcome on the new code.
    pub new: Outcome,
    /// Number of tests.
    pub tests: u64,
}

/// Number of instances by ΔC in ten bins, the last one including 1. Successes in SWT-bench are counted separately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Histogram {
    /// Instances with SWT-bench's success, by bin.
    pub success: Vec<u64>,
    /// Other instances, by bin.
    pub other: Vec<u64>,
}

/// Time that gradings took; results without a time are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Time {
    /// Total seconds of all gradings, which may have run concurrently.
    pub total: f64,
    /// Median seconds of one grading; `None` without gradings.
    pub median: Option<f64>,
    /// The ten slowest gradings, slowest first.
    pub slowest: Vec<Slow>,
}

/// Time of one grading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slow {
    /// Id of the instance.
    pub instance_id: String,
    /// Wall time in seconds, by activity.
    pub seconds: Seconds,
}

/// Infrastructure failure of one instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InfrastructureFailure {
    /// Id of the instance.
    pub instance_id: String,
    /// Failed stage: `source`, `build`, `old`, `new` or `base`.
    pub stage: String,
    /// The error, on one line.
    pub cause: String,
    /// Path of the log, relative to the results folder, or on the host; `None` without a log.
    pub log: Option<String>,
}

const MAX_SLOWEST: usize = 10;
const STEPS: usize = 10;

/// Issue lengths in tokens, grouped as in SWT-bench; both bounds are inclusive.
const LENGTHS: [(&str, u64, u64); 5] = [
    ("≤ 100", 1, 100),
    ("101–200", 101, 200),
    ("201–500", 201, 500),
    ("> 500", 501, u64::MAX),
    ("unknown", 0, 0),
];

pub(super) fn details(set: &PredictionSet) -> Details {
    let judged = set.judged();
    Details {
        by_old_class: classes(&judged),
        strict_against_swt: agreement(&judged, Metric::Success),
        strict_against_tdd: agreement(&judged, Metric::TddFailToPass),
        differing: differing(&judged),
        by_repository: by_repository(set),
        by_issue_length: LENGTHS
            .into_iter()
            .filter_map(|(name, from, to)| {
                group(name, set, |g| (from..=to).contains(&g.issue_tokens))
            })
            .collect(),
        flows: flows(&judged),
        coverage: histogram(&judged),
        time: time(set),
        infrastructure: infrastructure(set),
    }
}

fn classes(judged: &[&InstanceResult]) -> Vec<ClassRow> {
    let class_of = |g: &InstanceResult| match counts(g) {
        true => g.old_class,
        false => OldClass::None,
    };
    let row = |old_class| {
        let these = judged.iter().filter(|g| class_of(g) == old_class);
        ClassRow {
            old_class,
            fail_to_pass: Metric::FailToPass.rate(&these.copied().collect::<Vec<_>>()),
        }
    };
    OldClass::ALL.map(row).into()
}

fn agreement(judged: &[&InstanceResult], official: Metric) -> VerdictAgreement {
    let pairs = judged.iter();
    let pairs = pairs.map(|g| (Metric::FailToPass.holds(g), official.holds(g)));
    let paired = PairedComparison::from_pairs(pairs);
    VerdictAgreement {
        both: paired.both,
        only_strict: paired.only_first,
        only_official: paired.only_second,
        neither: paired.neither,
    }
}

fn differing(judged: &[&InstanceResult]) -> Vec<VerdictDifference> {
    judged
        .iter()
        .map(|g| VerdictDifference {
            instance_id: g.instance_id.clone(),
            fail_to_pass: Metric::FailToPass.holds(g),
            success: Metric::Success.holds(g),
            tdd_fail_to_pass: Metric::TddFailToPass.holds(g),
            reasons: g.differs.clone(),
        })
        .filter(|d| d.fail_to_pass != d.success || d.fail_to_pass != d.tdd_fail_to_pass)
        .collect()
}

fn by_repository(set: &PredictionSet) -> Vec<Group> {
    let repositories: BTreeSet<&str> = set.all.iter().map(|g| g.repo.as_str()).collect();
    repositories
        .into_iter()
        .filter_map(|repo| group(repo, set, |g| g.repo == repo))
        .collect()
}

/// Returns the figures of a group, or `None` if it is empty.
fn group(
    name: &str,
    set: &PredictionSet,
    is_in: impl Fn(&InstanceResult) -> bool,
) -> Option<Group> {
    let all: Vec<&InstanceResult> = set.all.iter().filter(|g| is_in(g)).collect();
    let judged = all.iter().copied().filter(|g| g.infrastructure.is_none());
    let judged: Vec<&InstanceResult> = judged.collect();
    (!all.is_empty()).then(|| Group {
        name: name.to_owned(),
        infrastructure: (all.len() - judged.len()) as u64,
        fail_to_pass: Metric::FailToPass.rate(&judged),
        success: Metric::Success.rate(&judged),
        tdd_fail_to_pass: Metric::TddFailToPass.rate(&judged),
    })
}

fn flows(judged: &[&InstanceResult]) -> Vec<Flow> {
    let mut flows: BTreeMap<(Outcome, Outcome), u64> = BTreeMap::new();
    for test in judged.iter().flat_map(|g| &g.tests) {
        *flows.entry((test.pair.old, test.pair.new)).or_default() += 1;
    }
    flows
        .into_iter()
        .map(|((old, new), tests)| Flow { old, new, tests })
        .collect()
}

fn histogram(judged: &[&InstanceResult]) -> Histogram {
    let mut histogram = Histogram {
        success: vec![0; STEPS],
        other: vec![0; STEPS],
    };
    for graded in judged {
        let side = match Metric::Success.holds(graded) {
            true => &mut histogram.success,
            false => &mut histogram.other,
        };
        for value in super::summary::deltas(&[graded]) {
            side[((value * STEPS as f64) as usize).min(STEPS - 1)] += 1;
        }
    }
    histogram
}

fn time(set: &PredictionSet) -> Time {
    let mut slow: Vec<&InstanceResult> = set.all.iter().filter(|g| g.seconds.total > 0.0).collect();
    slow.sort_by(|a, b| {
        let by_time = b.seconds.total.total_cmp(&a.seconds.total);
        by_time.then_with(|| a.instance_id.cmp(&b.instance_id))
    });
    let totals: Vec<f64> = slow.iter().map(|g| g.seconds.total).collect();
    Time {
        total: totals.iter().sum(),
        median: median(&totals),
        slowest: slow
            .iter()
            .take(MAX_SLOWEST)
            .map(|g| Slow {
                instance_id: g.instance_id.clone(),
                seconds: g.seconds,
            })
            .collect(),
    }
}

/// Returns the median of sorted values; for an even number, the mean of the middle two.
fn median(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    let upper = *sorted.get(half)?;
    Some(match sorted.len() % 2 {
        0 => (sorted[half - 1] + upper) / 2.0,
        _ => upper,
    })
}

fn infrastructure(set: &PredictionSet) -> Vec<InfrastructureFailure> {
    set.all
        .iter()
        .filter_map(|g| {
            g.infrastructure.as_ref().map(|i| InfrastructureFailure {
                instance_id: g.instance_id.clone(),
                stage: i.stage.clone(),
                cause: i.cause.clone(),
                log: i.log.clone(),
            })
        })
        .collect()
}
