//! Builds the test lists of a dataset from the outcomes of the golden tests.

use std::path::Path;

use testwright_tools::outcomes::report::Outcome;

use crate::dataset::Instance;
use crate::harness::logged_pairs;
use crate::result::InstanceResult;
use crate::verdict::Pair;

/// Adds FAIL_TO_PASS and PASS_TO_PASS for the files that the test patch changes.
pub(super) fn with_lists(instance: Instance, result: &InstanceResult, out: &Path) -> Instance {
    let pairs = logged_pairs(result, out).unwrap_or_default();
    let test_ids = |is: &dyn Fn(&Pair) -> bool| {
        let matching_pairs = pairs.iter().filter(|(_, pair)| is(pair));
        Some(matching_pairs.map(|(id, _)| id.clone()).collect())
    };
    let fails = |old| matches!(old, Outcome::Failed | Outcome::Error | Outcome::Absent);
    Instance {
        fail_to_pass: test_ids(&|pair| fails(pair.old) && pair.new == Outcome::Passed),
        pass_to_pass: test_ids(&|pair| pair.old == Outcome::Passed && pair.new == Outcome::Passed),
        ..instance
    }
}
