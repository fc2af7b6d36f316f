//! What is counted of a result, and what is not.

use serde::{Deserialize, Serialize};

use crate::graded::Graded;
use crate::statistics::Rate;

/// The three verdicts that can be compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Strict fail-to-pass.
    FailToPass,
    /// SWT-bench's success.
    Success,
    /// TDD-Bench-Verified's fail-to-pass.
    TddFailToPass,
}

impl Measure {
    pub const ALL: [Measure; 3] = [
        Measure::FailToPass,
        Measure::Success,
        Measure::TddFailToPass,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Measure::FailToPass => "F→P, strict",
            Measure::Success => "SWT-bench success",
            Measure::TddFailToPass => "TDD-Bench F→P",
        }
    }

    pub(super) fn holds(self, graded: &Graded) -> bool {
        let verdict = match self {
            Measure::FailToPass => graded.strict.fail_to_pass,
            Measure::Success => graded.swt.success,
            Measure::TddFailToPass => graded.tdd.fail_to_pass,
        };
        counts(graded) && verdict
    }

    pub(super) fn rate(self, graded: &[&Graded]) -> Rate {
        rate(graded, |g| self.holds(g))
    }
}

/// There is a prediction and it applies; every other result counts as 0.
pub(super) fn counts(graded: &Graded) -> bool {
    graded.given && graded.applied
}

/// Share of the results for which it holds; a prediction that is none, or does not apply, is one for which it does not.
pub(super) fn rate(graded: &[&Graded], holds: impl Fn(&Graded) -> bool) -> Rate {
    let those = graded.iter().filter(|g| counts(g) && holds(g)).count();
    Rate::of(those, graded.len())
}
