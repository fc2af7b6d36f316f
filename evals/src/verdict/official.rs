//! Verdicts of the public harnesses, as their code computes them.
//!
//! SWT-bench's grading compares test names by status (passed, failed, anything else) before and after the fix, with and
//! without the prediction (`get_eval_report`, `get_resolution_success`). TDD-Bench-Verified is defined in Otter §5.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_tools::outcomes::report::Outcome;

use super::strict::Strict;
use super::{Observations, Pair, Pairs, fails, word};

/// Verdict of SWT-bench's harness in unit-test mode.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Swt {
    /// Headline verdict. Compared with the base suite, at least one more test goes from fail to pass, and none stops
    /// doing so. No additional test goes from pass to fail, or fails on both the old and the new code.
    pub success: bool,
    /// Whether a contributed test fails on the old code, whatever its outcome on the new code.
    pub fail_to_any: bool,
    /// Whether, compared with the base suite, at least one more test goes from fail to pass.
    pub fail_to_pass: bool,
    /// Whether the contributed tests pass on both sides: correct, but not useful.
    pub pass_to_pass: bool,
}

/// Verdict and score of TDD-Bench-Verified (Otter §5).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tdd {
    /// Whether a contributed test fails on the old code, one passes on the new code, and none fails there.
    pub fail_to_pass: bool,
    /// Share of the deleted and added lines that the contributed tests run; `None` if it cannot be measured.
    pub adequacy: Option<f64>,
    /// `fail_to_pass` times adequacy. Adequacy counts as 1 if coverage is omitted, and as its observed minimum if it
    /// cannot be measured exactly.
    pub score: f64,
}

/// The measured adequacy, or the best known value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Adequacy {
    /// The measured share of changed lines that the contributed tests run, 0 to 1.
    Share(f64),
    /// Omitted by definition (Otter §5: SymPy), or because no changed line is a statement.
    LeftOut,
    /// Observed minimum, if the tests prevented a measurement.
    AtLeast(f64),
}

impl Adequacy {
    /// Returns whether coverage is omitted for a repository: for SymPy, as in Otter §5.
    pub fn is_omitted_for(repo: &str) -> bool {
        repo == "sympy/sympy"
    }

    fn factor(self) -> f64 {
        match self {
            Adequacy::Share(share) | Adequacy::AtLeast(share) => share,
            Adequacy::LeftOut => 1.0,
        }
    }
}

/// SWT-bench's groups of tests.
#[derive(Default)]
struct Groups<'a> {
    fail_to_pass: BTreeSet<&'a str>,
    fail_to_fail: BTreeSet<&'a str>,
    pass_to_fail: BTreeSet<&'a str>,
}

/// Returns SWT-bench's status of an outcome: passed, failed, or anything else (`None`).
fn status(outcome: Outcome) -> Option<bool> {
    match outcome {
        Outcome::Passed => Some(true),
        Outcome::Failed => Some(false),
        _ => None,
    }
}

fn groups(pairs: &Pairs) -> Groups<'_> {
    let mut groups = Groups::default();
    for (id, pair) in pairs {
        let group = match (status(pair.old), status(pair.new)) {
            (Some(false) | None, Some(true)) => &mut groups.fail_to_pass,
            (Some(false) | None, Some(false)) => &mut groups.fail_to_fail,
            (Some(true), Some(false) | None) => &mut groups.pass_to_fail,
            (Some(true), Some(true)) | (Some(false) | None, None) => continue,
        };
        group.insert(id);
    }
    groups
}

pub(super) fn swt(observations: &Observations) -> Swt {
    let (with, base) = (groups(&observations.patched), groups(&observations.base));
    let fail_to_pass = !with.fail_to_pass.is_subset(&base.fail_to_pass);
    let harmless = with.fail_to_pass.is_superset(&base.fail_to_pass)
        && with.pass_to_fail.is_subset(&base.pass_to_fail)
        && with.fail_to_fail.is_subset(&base.fail_to_fail);
    let mut contributed = observations.contributed().peekable();
    let some = contributed.peek().is_some();
    let (mut fail_to_any, mut pass_to_pass) = (false, some);
    for (id, pair) in contributed {
        fail_to_any |= observations.fails(id, pair.old);
        pass_to_pass &= pair.old == Outcome::Passed && pair.new == Outcome::Passed;
    }
    Swt {
        success: fail_to_pass && harmless,
        fail_to_any,
        fail_to_pass,
        pass_to_pass,
    }
}

pub(super) fn tdd(observations: &Observations) -> Tdd {
    let pairs: Vec<(&String, Pair)> = match &observations.isolated {
        Some(alone) => alone.iter().map(|(id, pair)| (id, *pair)).collect(),
        None => observations.contributed().collect(),
    };
    let any = |of: &dyn Fn(&str, Pair) -> bool| pairs.iter().any(|(id, pair)| of(id, *pair));
    // The paper's formula would count a test that is skipped on the new code as passing there.
    let fail_to_pass = any(&|id, pair| observations.fails(id, pair.old))
        && !any(&|id, pair| observations.fails(id, pair.new))
        && any(&|_, pair| pair.new == Outcome::Passed);
    Tdd {
        fail_to_pass,
        adequacy: None,
        score: f64::from(u8::from(fail_to_pass)),
    }
}

impl Tdd {
    /// Sets the adequacy and updates the score.
    pub fn with_adequacy(mut self, adequacy: Adequacy) -> Tdd {
        self.adequacy = match adequacy {
            Adequacy::Share(share) => Some(share),
            Adequacy::LeftOut | Adequacy::AtLeast(_) => None,
        };
        self.score = f64::from(u8::from(self.fail_to_pass)) * adequacy.factor();
        self
    }
}

/// Explains why the strict verdict differs from the official ones.
pub(super) fn differences(
    observations: &Observations,
    strict: &Strict,
    swt: &Swt,
    tdd: &Tdd,
) -> Vec<String> {
    let mut reasons = Vec::new();
    if strict.fail_to_pass != swt.success {
        reasons.push(format!(
            "SWT-bench: {}",
            swt_reason(observations, strict, swt)
        ));
    }
    if strict.fail_to_pass != tdd.fail_to_pass {
        reasons.push(format!("TDD-Bench: {}", tdd_reason(observations, strict)));
    }
    reasons
}

fn swt_reason(observations: &Observations, strict: &Strict, swt: &Swt) -> String {
    let (with, base) = (groups(&observations.patched), groups(&observations.base));
    if swt.success {
        let counted: Vec<&str> = with
            .fail_to_pass
            .difference(&base.fail_to_pass)
            .copied()
            .collect();
        let odd = counted.iter().find_map(|id| {
            let old = observations.patched.get(*id)?.old;
            (old != Outcome::Failed)
                .then(|| format!("{id}, {} before, counts as failed", word(old)))
        });
        return odd
            .unwrap_or_else(|| format!("it counts as a success, although {}", strict.reason));
    }
    let lost = base.fail_to_pass.difference(&with.fail_to_pass).next();
    let broken = with.pass_to_fail.difference(&base.pass_to_fail).next();
    let still = with.fail_to_fail.difference(&base.fail_to_fail).next();
    if let Some(id) = lost {
        format!("{id} goes from failed to passed without the prediction, but not with it")
    } else if let Some(id) = broken {
        format!("{id} is a pass-to-fail that the base suite does not have")
    } else if let Some(id) = still {
        format!("{id} is a fail-to-fail that the base suite does not have")
    } else {
        "no test goes from failed to passed only with the prediction".to_owned()
    }
}

fn tdd_reason(observations: &Observations, strict: &Strict) -> String {
    let alone = |id: &str| {
        observations
            .isolated
            .as_ref()
            .and_then(|alone| alone.get(id))
    };
    if strict.fail_to_pass {
        let on_its_own = observations
            .isolated
            .iter()
            .flatten()
            .find(|(id, pair)| observations.fails(id, pair.new));
        return match on_its_own {
            Some((id, _)) => format!("{id} fails on the new code when run on its own"),
            None => "no contributed test fails on the old code when run on its own".to_owned(),
        };
    }
    let company = observations.contributed().find(|(id, pair)| {
        alone(id).is_some_and(|own| {
            fails(own.new) != fails(pair.new) || fails(own.old) != fails(pair.old)
        })
    });
    if let Some((id, _)) = company {
        return format!(
            "{id} has another outcome on its own than with the other tests of its file"
        );
    }
    let odd = observations
        .contributed()
        .find(|(_, pair)| matches!(pair.old, Outcome::Error | Outcome::Absent));
    match odd {
        Some((id, pair)) if strict.reason.contains(id.as_str()) => {
            format!("{id}, {} before, counts as failed", word(pair.old))
        }
        _ => format!("its criteria are weaker: {}", strict.reason),
    }
}
