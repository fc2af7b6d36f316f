//! The verdicts that reports count.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::result::InstanceResult;
use crate::statistics::Rate;

/// The three verdicts that can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Strict fail-to-pass.
    FailToPass,
    /// SWT-bench's success.
    Success,
    /// TDD-Bench-Verified's fail-to-pass.
    TddFailToPass,
}

impl Metric {
    /// All verdicts, in display order.
    pub const ALL: [Metric; 3] = [Metric::FailToPass, Metric::Success, Metric::TddFailToPass];

    /// Returns the name of the verdict in reports.
    pub fn title(self) -> &'static str {
        match self {
            Metric::FailToPass => "F→P, strict",
            Metric::Success => "SWT-bench success",
            Metric::TddFailToPass => "TDD-Bench F→P",
        }
    }

    pub(super) fn holds(self, graded: &InstanceResult) -> bool {
        let verdict = match self {
            Metric::FailToPass => graded.strict.fail_to_pass,
            Metric::Success => graded.swt.success,
            Metric::TddFailToPass => graded.tdd.fail_to_pass,
        };
        counts(graded) && verdict
    }

    pub(super) fn rate(self, graded: &[&InstanceResult]) -> Rate {
        rate(graded, |g| self.holds(g))
    }
}

/// Returns whether there is a prediction that applies; every other result counts as 0.
pub(super) fn counts(graded: &InstanceResult) -> bool {
    graded.has_patch && graded.applied
}

/// Returns the share of results for which `holds` is true. Missing and non-applying predictions count as failures.
pub(super) fn rate(graded: &[&InstanceResult], holds: impl Fn(&InstanceResult) -> bool) -> Rate {
    let those = graded.iter().filter(|g| counts(g) && holds(g)).count();
    Rate::new(those, graded.len())
}
