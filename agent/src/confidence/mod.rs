//! The probability that a test is a true fail-to-pass test, estimated by a logistic model from evidence that needs no fix.
//!
//! `fit.py` writes `coefficients.json` from `data.csv`: the signals of published tests, and whether `testwright eval`
//! found them to be strict fail-to-pass tests. `figures.py` draws the guide's figures from it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Facts about a test, as numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Signals {
    /// Result of the gate.
    pub gate: GateResult,
    /// Values by name. The guide's page on checking describes them.
    #[serde(default)]
    pub values: BTreeMap<String, f64>,
}

/// The result of the gate for a test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateResult {
    /// The gate accepts the test.
    Accepted,
    /// The test fails on the old code, but the gate does not accept it.
    Rejected,
    /// The patch cannot be run, or none of its tests fails on the old code.
    #[default]
    NotFailing,
}

/// A reviewer's opinion of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opinion {
    /// The failure is the one in the issue.
    Yes,
    /// The failure is the one in the issue, but the test requires more than the issue does.
    Beyond,
    /// The reviewer cannot tell.
    Unsure,
    /// The failure is a different one.
    No,
}

/// Checks of a test by a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelChecks {
    /// Number of candidate fixes that make the test pass and break nothing.
    pub fixes_held: usize,
    /// Number of candidate fixes that do not.
    pub fixes_failed: usize,
    /// Opinion of the reviewer.
    pub opinion: Option<Opinion>,
}

/// The fitted model.
#[derive(Debug, Deserialize)]
struct Coefficients {
    /// Probability of a test that does not fail.
    not_failing: f64,
    /// Log odds of a failing test if all values are 0.
    intercept: f64,
    /// Change of the log odds for each unit of a value, by name.
    weights: BTreeMap<String, f64>,
    /// Change of the log odds by the checks of a model.
    fix_held: f64,
    fix_failed: f64,
    review_yes: f64,
    review_beyond: f64,
    review_unsure: f64,
    review_no: f64,
}

/// Maximum probability of a test that the gate does not accept. Of 35 such published tests in `data.csv`, 2 are right.
const MAX_NOT_ACCEPTED: f64 = 0.1;

static COEFFICIENTS: LazyLock<Coefficients> = LazyLock::new(|| {
    let text = include_str!("coefficients.json");
    #[allow(clippy::expect_used)] // A test reads the file.
    serde_json::from_str(text).expect("coefficients.json is valid")
});

impl Signals {
    /// Returns the probability, from 0 to 1, that the test fails on the old code for the reason of the issue and passes
    /// once the issue is fixed. It is at most 0.1 if the gate does not accept the test.
    pub fn probability(&self, checks: &ModelChecks) -> f64 {
        match self.gate {
            GateResult::NotFailing => COEFFICIENTS.not_failing.min(MAX_NOT_ACCEPTED),
            GateResult::Rejected => self.estimate(checks).min(MAX_NOT_ACCEPTED),
            GateResult::Accepted => self.estimate(checks),
        }
    }

    /// Returns the probability of a failing test by the fitted model.
    fn estimate(&self, checks: &ModelChecks) -> f64 {
        let model = &*COEFFICIENTS;
        let value = |name: &String| self.values.get(name).copied().unwrap_or_default();
        let weights = model.weights.iter();
        let evidence: f64 = weights.map(|(name, weight)| weight * value(name)).sum();
        let opinion = checks.opinion.map_or(0.0, |opinion| match opinion {
            Opinion::Yes => model.review_yes,
            Opinion::Beyond => model.review_beyond,
            Opinion::Unsure => model.review_unsure,
            Opinion::No => model.review_no,
        });
        // Fixes by one model resemble each other, so only the first of a kind counts.
        let fixes = f64::from(u8::from(checks.fixes_held > 0)) * model.fix_held
            + f64::from(u8::from(checks.fixes_failed > 0)) * model.fix_failed;
        logistic(model.intercept + evidence + opinion + fixes)
    }
}

fn logistic(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Returns the confidence in the tests of `data.csv`, and whether each is right: published tests, or forged ones that
    /// fail.
    fn tests(forged: bool) -> Vec<(f64, bool)> {
        let mut lines = include_str!("data.csv").lines();
        let names: Vec<&str> = lines.next().unwrap().split(',').collect();
        let rows = lines.map(|line| {
            let row: BTreeMap<&str, &str> = names.iter().copied().zip(line.split(',')).collect();
            let values = names[6..].iter().map(|name| {
                let value = row[name].parse().unwrap();
                ((*name).to_owned(), value)
            });
            let signals = Signals {
                gate: serde_json::from_value(row["gate"].into()).unwrap(),
                values: values.collect(),
            };
            let is_forged = row["prediction"].starts_with("forged");
            let fails = signals.gate != GateResult::NotFailing;
            let is_included = is_forged == forged && (fails || !forged);
            let confidence = signals.probability(&ModelChecks::default());
            is_included.then_some((confidence, row["right"] == "1"))
        });
        rows.flatten().collect()
    }

    /// The guide has the cross-validated figures.
    #[test]
    fn confidence_separates_right_tests() {
        let tests = tests(false);
        let split = |right: bool| {
            let some = tests.iter().filter(move |test| test.1 == right);
            some.map(|test| test.0).collect::<Vec<f64>>()
        };
        let (right, wrong) = (split(true), split(false));
        let pairs = right.iter().flat_map(|a| wrong.iter().map(move |b| (a, b)));
        let wins: f64 = pairs
            .map(|(a, b)| match a.total_cmp(b) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Less => 0.0,
            })
            .sum();
        let area = wins / (right.len() * wrong.len()) as f64;
        assert!(area >= 0.8, "{area}");
        let count = tests.len() as f64;
        let share = right.len() as f64 / count;
        let error = |(chance, right): &(f64, bool)| (chance - f64::from(u8::from(*right))).powi(2);
        let brier = tests.iter().map(error).sum::<f64>() / count;
        assert!(brier <= 0.8 * share * (1.0 - share), "{brier}");
    }

    #[test]
    fn forged_tests_have_little_confidence() {
        let forged = tests(true);
        assert!(forged.len() > 20);
        assert!(
            forged.iter().all(|(confidence, _)| *confidence < 0.1),
            "{forged:?}"
        );
    }

    #[test]
    fn refused_tests_have_capped_confidence() {
        let likely = |gate: GateResult| {
            let values = ["assertion", "code_in_issue", "issue_has_code"];
            let signals = Signals {
                gate,
                values: values.map(|name| (name.to_owned(), 1.0)).into(),
            };
            let checks = ModelChecks {
                fixes_held: 1,
                opinion: Some(Opinion::Yes),
                ..ModelChecks::default()
            };
            signals.probability(&checks)
        };
        assert!(likely(GateResult::Accepted) > 0.9);
        assert!(likely(GateResult::Rejected) <= MAX_NOT_ACCEPTED);
        assert!(likely(GateResult::NotFailing) <= MAX_NOT_ACCEPTED);
    }

    #[test]
    fn model_checks_move_confidence() {
        let signals = Signals {
            gate: GateResult::Accepted,
            values: BTreeMap::new(),
        };
        let with = |fixes_held, fixes_failed, opinion| {
            signals.probability(&ModelChecks {
                fixes_held,
                fixes_failed,
                opinion,
            })
        };
        let unchecked = with(0, 0, None);
        assert!(with(1, 0, None) > unchecked && unchecked > with(0, 1, None));
        let opinions = [Opinion::Yes, Opinion::Beyond, Opinion::Unsure, Opinion::No];
        let opinions = opinions.map(|opinion| with(0, 0, Some(opinion)));
        assert!(opinions.is_sorted_by(|a, b| a >= b), "{opinions:?}");
        assert!(opinions[0] > unchecked && unchecked > opinions[3]);
    }
}
