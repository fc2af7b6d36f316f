//! Predictions in the shared format: one file per system and sample, ready for the public benchmarks.

use std::collections::BTreeMap;
use std::path::Path;

use testwright_evals::folder::json_lines;
use testwright_evals::predictions::{Prediction, Predictions};

use super::{PREDICTIONS, Plan, RunRecord, RunStatus, encoded};
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
            model,
        })
        .collect()
}

/// Writes `predictions/NAME.jsonl` for each set.
///
/// # Errors
///
/// Fails if a file cannot be written.
pub fn write_predictions(folder: &Path, sets: &[Predictions]) -> Result<()> {
    let folder = folder.join(PREDICTIONS);
    let failed =
        |error: std::io::Error| Error::io(format!("write to {}", folder.display()), &error);
    for set in sets {
        let text = json_lines(set.by_instance.values()).map_err(|e| failed(e.into()))?;
        let path = folder.join(format!("{}.jsonl", encoded(&set.model)));
        super::replace(&path, &text).map_err(failed)?;
    }
    Ok(())
}
