//! Builds the jobs to grade: every instance with the predictions of every set.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use testwright_evals::dataset::Dataset;
use testwright_evals::harness::{Job, Results};
use testwright_evals::predictions::{Prediction, Predictions, Warning, WarningKind};
use testwright_evals::{Instance, InstanceResult};

use testwright_config::error::{Error, Result};

/// Returns an empty prediction for each missing one, so that it counts in every rate. A set can also lack predictions of
/// failed runs, which do not count.
pub(super) fn missing_predictions(warnings: &[Warning]) -> Vec<Prediction> {
    let missing = warnings.iter();
    let missing = missing.filter(|warning| warning.kind == WarningKind::Missing);
    let empty = |warning: &Warning| Prediction {
        instance_id: warning.instance_id.clone(),
        model_name_or_path: warning.model_name_or_path.clone(),
        model_patch: None,
    };
    missing.map(empty).collect()
}

pub(super) fn jobs<'b>(
    dataset: &'b Dataset,
    sets: &'b [Predictions],
    missing: &'b [Prediction],
) -> Vec<Job<'b>> {
    let of_instance = |instance: &'b Instance| {
        let predictions = sets
            .iter()
            .filter_map(|set| set.by_instance.get(&instance.instance_id));
        let absent = missing
            .iter()
            .filter(|p| p.instance_id == instance.instance_id);
        Job {
            instance,
            predictions: predictions.chain(absent).collect(),
        }
    };
    dataset.instances.iter().map(of_instance).collect()
}

/// Maximum models that an error names, and maximum results per model; dots stand for the rest.
const NAMED: usize = 3;

/// Checks that the folder contains no other results than these jobs request, because a report covers the whole folder.
pub(super) fn check_folder(jobs: &[Job<'_>], results: &Results, out: &Path) -> Result<()> {
    let requested_keys: BTreeSet<(&str, &str)> = jobs
        .iter()
        .flat_map(|job| job.predictions.iter())
        .map(|p| (p.model_name_or_path.as_str(), p.instance_id.as_str()))
        .collect();
    let is_requested = |result: &InstanceResult| {
        requested_keys.contains(&(result.prediction.as_str(), result.instance_id.as_str()))
    };
    let mut others: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for result in results.all().filter(|result| !is_requested(result)) {
        let instances = others.entry(&result.prediction).or_default();
        instances.push(&result.instance_id);
    }
    let number: usize = others.values().map(Vec::len).sum();
    if number == 0 {
        return Ok(());
    }
    let of_model = |(model, instances): (&str, Vec<&str>)| {
        let more = if instances.len() > NAMED { ", …" } else { "" };
        let examples = &instances[..instances.len().min(NAMED)];
        format!("{model}: {}{more}", examples.join(", "))
    };
    let models = others.len();
    let mut descriptions: Vec<String> = others.into_iter().take(NAMED).map(of_model).collect();
    if models > NAMED {
        descriptions.push("…".to_owned());
    }
    let results = if number == 1 { "result" } else { "results" };
    Err(Error::usage("grade")
        .cause(format!(
            "{} contains {number} {results} that this command does not request ({})",
            out.display(),
            descriptions.join("; ")
        ))
        .hint("use another folder with --out, or the same instances and predictions"))
}
