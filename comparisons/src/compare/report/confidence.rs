//! Precision and recall of a system's tests if tests below a minimum confidence are withheld.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_evals::document::format::{percent, rate};
use testwright_evals::document::{Section, Table};
use testwright_evals::statistics::Rate;

use super::ComparisonReport;
use super::data::SystemRuns;
use super::score::rate_of_runs;

/// A system's figures with a given `--min-confidence`, over all graded runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfidencePoint {
    /// Minimum confidence; `None` includes every submitted test.
    pub min_confidence: Option<f64>,
    /// Share of the remaining tests with a strict F→P.
    pub precision: Rate,
    /// Share of all runs that have a remaining test with a strict F→P.
    pub recall: Rate,
}

/// Maximum number of levels of confidence; if more occur, they are spread evenly.
const MAX_LEVELS: usize = 20;

/// Returns a point for all submitted tests, then one for each higher minimum confidence that occurs. A test that the
/// gate rejected has a confidence of 0.
pub(super) fn points(of: &SystemRuns) -> Vec<ConfidencePoint> {
    let judged: Vec<(usize, Option<f64>, bool)> = of
        .judged()
        .map(|(at, run, verdict)| {
            let confidence = run.is_submitted().then(|| run.confidence.unwrap_or(0.0));
            (at, confidence, verdict.fail_to_pass)
        })
        .collect();
    let mut levels: Vec<f64> = judged.iter().filter_map(|(_, c, _)| *c).collect();
    if levels.is_empty() {
        return Vec::new();
    }
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    if levels.len() > MAX_LEVELS {
        levels = (1..=MAX_LEVELS)
            .map(|n| n as f64 / MAX_LEVELS as f64)
            .collect();
    }
    let point = |min_confidence: Option<f64>| {
        let is_kept = |confidence: Option<f64>| {
            confidence.is_some_and(|c| min_confidence.is_none_or(|least| c >= least))
        };
        let kept_runs = judged.iter().filter(|(_, c, _)| is_kept(*c));
        let all_runs = judged
            .iter()
            .map(|(at, c, holds)| (*at, *holds && is_kept(*c)));
        ConfidencePoint {
            min_confidence,
            precision: rate_of_runs(kept_runs.map(|(at, _, holds)| (*at, *holds))),
            recall: rate_of_runs(all_runs),
        }
    };
    let all = point(None);
    let mut points = vec![all.clone()];
    let fewer = levels
        .into_iter()
        .map(|min_confidence| point(Some(min_confidence)));
    // A level can be above every confidence if the levels are spread evenly.
    let some_kept = 1..all.precision.denominator;
    points.extend(fewer.filter(|point| some_kept.contains(&point.precision.denominator)));
    points.dedup_by_key(|point| point.precision.denominator);
    points
}

/// Returns the section, or `None` if no system has tests with different confidence.
pub(super) fn section(report: &ComparisonReport) -> Option<Section> {
    let is_graded = |points: &Vec<ConfidencePoint>| points.len() > 1;
    if !report.systems.iter().any(|s| is_graded(&s.by_confidence)) {
        return None;
    }
    let mut table = Table::new("Strict F→P if tests below a minimum confidence are withheld")
        .words("System")
        .words("Minimum confidence")
        .figures(&["Tests kept", "Precision", "Recall"]);
    for (at, s) in report.systems.iter().enumerate() {
        for point in &s.by_confidence {
            let min_confidence = point.min_confidence.map_or_else(
                || "any".to_owned(),
                |min_confidence| format!("{min_confidence:.2}"),
            );
            table.row([
                s.label(at).into(),
                min_confidence.into(),
                point.precision.denominator.to_string().into(),
                rate(&point.precision).into(),
                percent(point.recall.rate).into(),
            ]);
        }
    }
    Some(Section::new("confidence", "Precision and recall by confidence", [table]).note("The confidence of a test is the estimated probability that it is a true fail-to-pass test (see the guide's page on checking)."))
}

#[cfg(test)]
mod tests;
