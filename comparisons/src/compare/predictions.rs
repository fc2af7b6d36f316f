//! Predictions in the shared format: one file per system and sample, ready for the public benchmarks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use testwright_evals::folder::json_lines;
use testwright_evals::predictions::{Prediction, Predictions};

use super::{PREDICTIONS, Plan, RunRecord, RunStatus};
use crate::record_file::replace;
use testwright_config::error::{Error, Result};

/// Returns the predictions by system and sample. Infrastructure failures give no prediction and are not counted.
pub fn prediction_sets(plan: &Plan, runs: &[RunRecord]) -> Vec<Predictions> {
    let mut by_name: BTreeMap<String, BTreeMap<String, Prediction>> = BTreeMap::new();
    for run in runs {
        if run.status == RunStatus::Infrastructure {
            continue;
        }
        let model = run.prediction_set();
        let prediction = Prediction {
            instance_id: run.instance_id.clone(),
            model_name_or_path: model.clone(),
            model_patch: run.patch.clone(),
        };
        let set = by_name.entry(model).or_default();
        set.insert(run.instance_id.clone(), prediction);
    }
    let names = plan.systems.iter().flat_map(|system| {
        (1..=system.samples(plan.samples)).map(|sample| system.prediction_set(sample))
    });
    names
        .map(|model| Predictions {
            by_instance: by_name.remove(&model).unwrap_or_default(),
            sha256: Vec::new(),
            model,
        })
        .collect()
}

/// Returns the names of the files of prediction sets, without characters that need escaping in a path or a URL.
pub fn prediction_files(sets: &[Predictions]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let file = |set: &Predictions| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@=".contains(c);
        let plain = |c: char| if is_plain(c) { c } else { '-' };
        let name: String = set.model.chars().map(plain).collect();
        // A name must not be hidden or lead out of the folder.
        let name = name.trim_start_matches('.');
        let names = (2..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(names);
        let name = names.find(|name| taken.insert(name.clone()));
        format!("{}.jsonl", name.unwrap_or_default())
    };
    sets.iter().map(file).collect()
}

/// Writes `predictions/NAME.jsonl` for each set. Runs without a test are left out, since other harnesses may reject an
/// empty patch.
///
/// # Errors
///
/// Fails if a file cannot be written.
pub fn write_predictions(folder: &Path, sets: &[Predictions]) -> Result<()> {
    let folder = folder.join(PREDICTIONS);
    let failed =
        |error: std::io::Error| Error::io(format!("write to {}", folder.display()), &error);
    for (set, file) in sets.iter().zip(prediction_files(sets)) {
        let predictions = set.by_instance.values();
        let with_patch = predictions.filter(|prediction| prediction.model_patch.is_some());
        let text = json_lines(with_patch).map_err(|e| failed(e.into()))?;
        replace(&folder.join(file), &text).map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
