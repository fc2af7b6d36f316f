//! What the outcomes of a prediction's tests mean: the strict verdict, and beside it those of SWT-bench (unit-test mode)
//! and of TDD-Bench-Verified, with the reasons where they differ.
//!
//! Pure: outcomes in, verdicts out. Nothing is run here.

mod official;
mod strict;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_tools::outcomes::report::{FailureClass, Outcome, is_of};

pub use official::{Adequacy, Swt, Tdd};
pub use strict::Strict;

/// A test on the old and on the new code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    pub old: Outcome,
    pub new: Outcome,
}

/// Outcomes by node id.
pub type Pairs = BTreeMap<String, Pair>;

/// What was seen of one prediction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Observations {
    /// Contributed tests, without parameters: `path::Class::function`.
    pub contributed: Vec<String>,
    /// Tests of the files that the prediction touches, with the prediction applied.
    pub with: Pairs,
    /// Tests of the same files without it.
    pub base: Pairs,
    /// The contributed tests run on their own, as TDD-Bench does; `None` where the files hold nothing else, and `with`
    /// says the same.
    pub alone: Option<Pairs>,
    /// How contributed tests failed on the old code.
    pub failures: BTreeMap<String, FailureClass>,
    /// Contributed tests that do not run on the old code because a name is missing there that the issue asks for.
    pub asked_for: Vec<String>,
    /// Ids that one side does not have and never will: it ran the same test with other parameters. They are absent there,
    /// and did not fail.
    pub elsewhere: BTreeSet<String>,
    /// Files that both the prediction and the golden code patch change: there the prediction decides itself what is old
    /// and new.
    pub edits: Vec<String>,
    /// Files of the prediction that Python runs before any test, in the place of what runs and records the tests.
    #[serde(default)]
    pub startup: Vec<String>,
    /// What in the outcomes contradicts itself, in words: tests have written them.
    #[serde(default)]
    pub forged: Vec<String>,
}

impl Observations {
    pub(crate) fn is_contributed(&self, id: &str) -> bool {
        self.contributed.iter().any(|test| is_of(id, test))
    }

    fn contributed(&self) -> impl Iterator<Item = (&String, Pair)> {
        self.with
            .iter()
            .filter(|(id, _)| self.is_contributed(id))
            .map(|(id, pair)| (id, *pair))
    }

    /// A test that did not come to its end counts as failed.
    fn fails(&self, id: &str, outcome: Outcome) -> bool {
        fails(outcome) && !(outcome == Outcome::Absent && self.elsewhere.contains(id))
    }

    fn others(&self) -> impl Iterator<Item = (&String, Pair)> {
        self.with
            .iter()
            .filter(|(id, _)| !self.is_contributed(id))
            .map(|(id, pair)| (id, *pair))
    }

    /// How the contributed tests ended on the old code, taken together (Otter §5.3).
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

/// The classes of the paper's table, in the order in which they outweigh each other: one assertion that fails says
/// more of a prediction than another test's pass, an error less.
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
    /// No contributed test ran.
    #[default]
    None,
    Pass,
    Error,
    Failure,
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    pub old_class: OldClass,
    pub strict: Strict,
    pub swt: Swt,
    pub tdd: Tdd,
    /// Why the strict verdict is not that of the public harnesses; empty where all three agree.
    pub differs: Vec<String>,
}

fn fails(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Failed | Outcome::Error | Outcome::Absent)
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Failed => "failed",
        Outcome::Error => "an error",
        Outcome::Skipped => "skipped",
        Outcome::Xfailed => "xfailed",
        Outcome::Xpassed => "xpassed",
        Outcome::Absent => "absent",
    }
}
