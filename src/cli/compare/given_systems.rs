//! Systems that are given by their predictions: `--predictions NAME=FILE`.

use std::path::{Path, PathBuf};

use testwright_evals::predictions::{self, Prediction, Predictions};
use testwright_evals::untrusted_text::check_name;

use crate::cli::output::{self, escape_line};
use testwright_comparisons::compare::{
    PREDICTIONS, Plan, System, prediction_files, prediction_sets,
};
use testwright_comparisons::grading::{GradingRun, records};
use testwright_config::error::{Error, Result};

/// Reads a file of predictions that come from one model, so that each instance has one patch. Prints how many there are,
/// and how many of them cannot be used.
pub(super) fn of_one_model(path: &Path, grading: &GradingRun) -> Result<Predictions> {
    let read = predictions::read(&[path], &grading.whole, &grading.dataset);
    let (mut sets, warnings) = read.map_err(records)?;
    for line in predictions::summary(&sets, &warnings) {
        output::print_status(escape_line(&format!("{}: {line}", path.display())));
    }
    let last = sets.pop();
    if let Some(first) = sets.first() {
        return Err(Error::usage(format!("use {}", path.display()))
            .cause(format!(
                "it contains patches of several models ({}, …)",
                first.model
            ))
            .hint("pass a file with patches of one model"));
    }
    Ok(last.unwrap_or_default())
}

/// Adds the systems of `--predictions` to a plan, and returns their predictions.
pub(super) fn add(
    arguments: &[String],
    grading: &GradingRun,
    plan: &mut Plan,
) -> Result<Vec<Predictions>> {
    let mut sets = Vec::new();
    for argument in arguments {
        let wrong = Error::usage(format!("use --predictions {argument}"));
        let Some((name, path)) = argument
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
        else {
            return Err(wrong
                .cause("the name is missing")
                .hint("write it as NAME=FILE"));
        };
        if let Err(error) = check_name(name) {
            return Err(wrong.cause(format!("the name {error}")));
        }
        // A further sample of a system has a prediction set of its own.
        let sets_of_plan = prediction_sets(plan, &[]);
        if sets_of_plan.iter().any(|set| set.model == name) {
            return Err(wrong.cause(format!(
                "another system, or a sample of one, is named {name}"
            )));
        }
        let set = of_one_model(Path::new(path), grading)?;
        let sha256 = set.sha256.first().map(String::as_str).unwrap_or_default();
        plan.systems.push(System::of_predictions(name, sha256));
        sets.push(add_missing_predictions(set, name, grading));
    }
    Ok(sets)
}

/// Reads the predictions of such systems from the folder of a recorded comparison.
pub(super) fn recorded(
    folder: &Path,
    plan: &Plan,
    grading: &GradingRun,
) -> Result<Vec<Predictions>> {
    let all = prediction_sets(plan, &[]);
    let files = all.iter().zip(prediction_files(&all));
    let of_given = files.filter(|(set, _)| {
        let mut systems = plan.systems.iter();
        systems.any(|system| !system.has_runs() && system.name() == set.model)
    });
    let paths: Vec<(&str, PathBuf)> = of_given
        .map(|(set, file)| (set.model.as_str(), folder.join(PREDICTIONS).join(file)))
        .collect();
    let read = |(name, path): &(&str, PathBuf)| -> Result<Predictions> {
        // The file is empty if the system has no test for any of the recorded instances.
        let is_empty = path.metadata().is_ok_and(|file| file.len() == 0);
        let set = match is_empty {
            true => Predictions::default(),
            false => of_one_model(path, grading)?,
        };
        Ok(add_missing_predictions(set, name, grading))
    };
    paths.iter().map(read).collect()
}

/// Renames a set, and adds an empty prediction for each instance that it lacks, so that it counts as a failure.
fn add_missing_predictions(set: Predictions, name: &str, grading: &GradingRun) -> Predictions {
    let mut by_instance = set.by_instance;
    for instance in &grading.dataset.instances {
        let id = &instance.instance_id;
        let prediction = by_instance.entry(id.clone()).or_insert_with(|| Prediction {
            instance_id: id.clone(),
            model_name_or_path: String::new(),
            model_patch: None,
        });
        prediction.model_name_or_path = name.to_owned();
    }
    Predictions {
        model: name.to_owned(),
        by_instance,
        sha256: set.sha256,
    }
}
