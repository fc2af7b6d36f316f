//! Keys that identify gradings, and the initial result of a grading.

use testwright_sandboxes::recipe::built_in_digest;

use super::test_run_cache::RecordKey;
use super::{Harness, VERSION};
use crate::dataset::Instance;
use crate::predictions::Prediction;
use crate::result::{Infrastructure, InstanceResult};
use crate::verdict::{Observations, Verdict};

/// Returns a key that identifies the input and the settings of a grading.
pub fn key(harness: &Harness, instance: &Instance, prediction: &Prediction) -> String {
    let mut key = RecordKey::default();
    let settings = [&harness.python, &harness.image].map(|s| s.clone().unwrap_or_default());
    let limits = format!("{:?} {:?}", harness.limits, harness.test_time);
    for text in [
        VERSION,
        &built_in_digest(),
        testwright_tools::DIGEST,
        &harness.backend.layout(),
        &limits,
        &settings[0],
        &settings[1],
        &instance.instance_id,
        &instance.repo,
        &instance.base_commit,
        &instance.problem_statement,
        instance.patch.as_deref().unwrap_or_default(),
        instance.test_patch.as_deref().unwrap_or_default(),
        prediction.model_patch.as_deref().unwrap_or_default(),
    ] {
        key.add(text.as_bytes());
    }
    if let Some(recipe) = &harness.environment {
        key.add(recipe.keys().to_string().as_bytes());
    }
    let mut digest = key.digest();
    digest.truncate(32);
    digest
}

/// Returns the result of a prediction that could not be graded.
pub fn ungraded_result(
    harness: &Harness,
    instance: &Instance,
    prediction: &Prediction,
    failed: Infrastructure,
) -> InstanceResult {
    let mut result = empty_result(harness, instance, prediction);
    result.mark_ungraded(failed);
    result
}

/// Returns a result without any observations.
pub(super) fn empty_result(
    harness: &Harness,
    instance: &Instance,
    prediction: &Prediction,
) -> InstanceResult {
    let Verdict {
        old_class,
        strict,
        swt,
        tdd,
        differs,
    } = Observations::default().verdict();
    InstanceResult {
        instance_id: instance.instance_id.clone(),
        prediction: prediction.model_name_or_path.clone(),
        key: key(harness, instance, prediction),
        repo: instance.repo.clone(),
        issue_tokens: instance.problem_statement.chars().count().div_ceil(4) as u64,
        has_patch: prediction.model_patch.is_some(),
        old_class,
        strict,
        swt,
        tdd,
        differs,
        ..InstanceResult::default()
    }
}
