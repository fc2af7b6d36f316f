//! Interprets the outcomes of a prediction's tests: the strict verdict, and those of SWT-bench (unit-test mode) and
//! TDD-Bench-Verified, with the reasons for differences.
//!
//! These functions are pure: they convert outcomes to verdicts and run nothing.

mod official;
mod strict;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_tools::outcomes::report::{FailureClass, Outcome, belongs_to_test};

pub use official::{Adequacy, Swt, Tdd};
pub use strict::Strict;

/// Outcomes of a test on the old and the new code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// Outcome on the old code.
    pub old: Outcome,
    /// Outcome on the new code.
    pub new: Outcome,
}

/// Outcomes by node id.
pub type Pairs = BTreeMap<String, Pair>;

/// Observations of one prediction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Observations {
    /// Contributed tests, without parameters: `path::Class::function`.
    pub contributed: Vec<String>,
    /// Tests in the files that the prediction touches, with the prediction applied.
    pub patched: Pairs,
    /// Tests in the same files without the prediction.
    pub base: Pairs,
    /// Outcomes of running only the contributed tests, as TDD-Bench does. `None` if the files contain no other tests,
    /// in which case `with` has the same outcomes.
    pub isolated: Option<Pairs>,
    /// Failure classes of contributed tests on the old code.
    pub failures: BTreeMap<String, FailureClass>,
    /// Contributed tests that do not run on the old code because a name is missing that the issue asks for.
    pub missing_names: Vec<String>,
    /// Ids that one side cannot have, because it ran the same test with other parameters. They are absent there, but
    /// did not fail.
    pub unmatched: BTreeSet<String>,
    /// Files of the prediction that are not tests, as clauses such as `edits code under test: src/a.py`. With them, the
    /// prediction itself can decide about outcomes.
    #[serde(default)]
    pub foreign: Vec<String>,
    /// Other runs of the contributed tests, made if the first runs are a success.
    #[serde(default)]
    pub repeats: Vec<Repeat>,
    /// Contradictions in the outcomes, which tests must have forged.
    #[serde(default)]
    pub forged: Vec<String>,
}

/// A repeat of the runs on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    /// Condition that differs from the first runs.
    pub condition: Condition,
    /// Outcomes of the tests that ran.
    pub pairs: Pairs,
}

/// A condition that must not change the outcome of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Another value of `PYTHONHASHSEED`, and another user.
    HashSeed,
    /// A change of the code under test that does not change its meaning.
    Placebo,
}

impl Observations {
    pub(crate) fn is_contributed(&self, id: &str) -> bool {
        self.contributed
            .iter()
            .any(|test| belongs_to_test(id, test))
    }

    fn contributed(&self) -> impl Iterator<Item = (&String, Pair)> {
        self.tests(true)
    }

    /// Returns the tests that are contributed, or the others.
    fn tests(&self, contributed: bool) -> impl Iterator<Item = (&String, Pair)> {
        let tests = self.patched.iter().map(|(id, pair)| (id, *pair));
        tests.filter(move |(id, _)| self.is_contributed(id) == contributed)
    }

    /// Returns whether a test failed. A test that did not finish counts as failed.
    fn fails(&self, id: &str, outcome: Outcome) -> bool {
        fails(outcome) && !(outcome == Outcome::Absent && self.unmatched.contains(id))
    }

    /// Returns whether a repeat contradicts the success of the first runs.
    pub(crate) fn contradicts(&self, repeat: &Repeat) -> bool {
        let mut once = self.clone();
        once.repeats = vec![repeat.clone()];
        !once.verdict().strict.fail_to_pass
    }

    /// Returns whether the contributed tests have the same outcomes alone as with the other tests of their files.
    pub(crate) fn is_same_alone(&self) -> bool {
        let alone = self.isolated.as_ref();
        alone.is_some_and(|alone| {
            self.contributed()
                .all(|(id, pair)| alone.get(id) == Some(&pair))
        })
    }

    fn others(&self) -> impl Iterator<Item = (&String, Pair)> {
        self.tests(false)
    }

    /// Returns the combined outcome of the contributed tests on the old code (Otter §5.3).
    pub fn old_class(&self) -> OldClass {
        let mut worst = OldClass::None;
        for (id, pair) in self.contributed() {
            let class = match (pair.old, self.failures.get(id)) {
                (Outcome::Passed | Outcome::Xfailed | Outcome::Xpassed, _) => OldClass::Pass,
                (Outcome::Skipped, _) => OldClass::None,
                (Outcome::Failed, Some(FailureClass::Assertion)) => OldClass::Assertion,
                (Outcome::Failed, Some(FailureClass::Exception) | None) => OldClass::Failure,
                (Outcome::Failed, Some(FailureClass::Error)) => OldClass::Error,
                (Outcome::Error | Outcome::Absent, _) => OldClass::Error,
            };
            worst = worst.max(class);
        }
        worst
    }

    /// Computes all verdicts from the observations.
    pub fn verdict(&self) -> Verdict {
        let strict = strict::strict(self);
        let swt = official::swt(self);
        let tdd = official::tdd(self);
        let differs = official::differences(self, &strict, &swt, &tdd);
        Verdict {
            old_class: self.old_class(),
            strict,
            swt,
            tdd,
            differs,
        }
    }
}

/// Classes of Otter's table, from weakest to strongest. If tests have different classes, the strongest one counts: a
/// failing assertion says more than a pass, and an error says less than a failure.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum OldClass {
    /// Contributed tests did not run.
    #[default]
    None,
    /// The tests pass.
    Pass,
    /// A test could not be set up or run, and none failed.
    Error,
    /// A test fails with an exception other than a failing assertion.
    Failure,
    /// An assertion of a test fails.
    Assertion,
}

impl OldClass {
    /// All classes, in the order of reports.
    pub const ALL: [OldClass; 5] = [
        OldClass::Pass,
        OldClass::Assertion,
        OldClass::Failure,
        OldClass::Error,
        OldClass::None,
    ];
}

/// The verdicts on one prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Combined outcome of the contributed tests on the old code.
    pub old_class: OldClass,
    /// Verdict of testwright.
    pub strict: Strict,
    /// Verdict of SWT-bench's harness.
    pub swt: Swt,
    /// TDD-Bench-Verified's verdict and score.
    pub tdd: Tdd,
    /// Why the strict verdict differs from those of the public harnesses; empty if all three agree.
    pub differs: Vec<String>,
}

fn fails(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Failed | Outcome::Error | Outcome::Absent)
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Error => "an error",
        Outcome::Absent => "absent",
        other => other.as_str(),
    }
}
