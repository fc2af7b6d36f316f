//! Predictions in the format shared by SWE-bench, SWT-bench and TDD-Bench: `instance_id`, `model_name_or_path`,
//! `model_patch`. A file is JSON lines, a JSON array, Parquet, or a JSON object by instance.
//!
//! Nothing is dropped silently: every prediction that cannot be graded causes a [`Warning`], which appears in the
//! report.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use testwright_tools::tools::count;

use crate::dataset::Dataset;
use crate::records::{Content, File, Problem, RecordsError};
use crate::untrusted_text::{self, NameError};

/// A model's prediction for one instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// Id of the instance.
    pub instance_id: String,
    /// Name of the prediction set, usually of the model.
    pub model_name_or_path: String,
    /// The test patch; `None` if the model gave none (null, absent or blank).
    pub model_patch: Option<String>,
}

/// Predictions of one model, at most one per instance.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Predictions {
    /// Name of the prediction set (`model_name_or_path`).
    pub model: String,
    /// Predictions by instance id.
    pub by_instance: BTreeMap<String, Prediction>,
    /// SHA-256 of each file with predictions of the model, in hex; empty if they come from no file.
    pub sha256: Vec<String>,
}

/// An anomaly in the predictions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Name of the prediction set.
    pub model_name_or_path: String,
    /// Id of the instance, as the prediction gives it.
    pub instance_id: String,
    /// Kind of the anomaly.
    pub kind: WarningKind,
}

impl Warning {
    fn new(model: &str, instance_id: &str, kind: WarningKind) -> Warning {
        Warning {
            model_name_or_path: model.to_owned(),
            instance_id: instance_id.to_owned(),
            kind,
        }
    }
}

/// Kind of an anomaly in the predictions.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum WarningKind {
    /// `model_patch` is null or absent; graded as a missing prediction.
    Null,
    /// `model_patch` is blank; graded as a missing prediction.
    Empty,
    /// The instance has several predictions; the last one is graded, as in the public harnesses.
    Duplicate,
    /// The dataset has no such instance; not graded.
    Unknown,
    /// The model has no prediction for the instance; graded as a missing prediction.
    Missing,
}

impl WarningKind {
    /// Returns the anomaly as a clause, for reports.
    pub fn text(self) -> &'static str {
        match self {
            WarningKind::Null => "the patch is null",
            WarningKind::Empty => "the patch is empty",
            WarningKind::Duplicate => "there are several predictions; the last one is used",
            WarningKind::Unknown => "the dataset has no such instance",
            WarningKind::Missing => "the prediction is missing",
        }
    }
}

/// A prediction as it was read, and what is odd about it.
type ReadPrediction = (Prediction, Option<WarningKind>);

/// Maximum number of models. Each is graded on every instance, and compared with every other.
const MAX_MODELS: usize = 500;
/// Maximum predictions in a file.
const MAX_PREDICTIONS: usize = 1_000_000;

/// A file of predictions.
#[derive(Debug, Clone, Copy)]
pub struct PredictionsFile<'a> {
    /// Path of the file.
    pub path: &'a Path,
    /// Name that replaces the one in the file, which must have predictions of one model.
    pub name: Option<&'a str>,
}

/// Reads predictions under the names that the files give them, as [`read_named`] does.
///
/// # Errors
///
/// Fails like [`read_named`].
pub fn read(
    files: &[&Path],
    dataset: &Dataset,
    chosen: &Dataset,
) -> Result<(Vec<Predictions>, Vec<Warning>), RecordsError> {
    let files = files
        .iter()
        .map(|path| PredictionsFile { path, name: None });
    read_named(&files.collect::<Vec<_>>(), dataset, chosen)
}

/// Reads predictions of one or several models, in order of each model's first occurrence. Predictions for instances
/// that are in the dataset but not among the `chosen` ones are skipped silently. A file must not replace predictions of
/// another file.
///
/// # Errors
///
/// Fails if a file cannot be read, contains invalid records or no predictions, or replaces predictions of another file.
/// Also fails if a named file has several models, or if there are too many models.
pub fn read_named(
    files: &[PredictionsFile<'_>],
    dataset: &Dataset,
    chosen: &Dataset,
) -> Result<(Vec<Predictions>, Vec<Warning>), RecordsError> {
    let mut all = Vec::new();
    let mut models = BTreeSet::new();
    let mut first_paths: BTreeMap<(String, String), &Path> = BTreeMap::new();
    let mut digests: BTreeSet<(String, String)> = BTreeSet::new();
    for PredictionsFile { path, name } in files {
        let unsuitable = |message: String| RecordsError::unsuitable(path, message);
        let (file, content) = File::read(path)?;
        let predictions = parse(content, &stem(path));
        let mut predictions = predictions.map_err(|problems| file.wrong(problems))?;
        if let Some(name) = name {
            rename(&mut predictions, name).map_err(unsuitable)?;
        }
        // Every instance would count as a failure.
        if predictions.is_empty() {
            return Err(unsuitable("the file contains no predictions".to_owned()));
        }
        for (prediction, _) in &predictions {
            let name = (
                prediction.model_name_or_path.clone(),
                prediction.instance_id.clone(),
            );
            models.insert(name.0.clone());
            digests.insert((name.0.clone(), file.sha256.clone()));
            let first = first_paths.get(&name).copied();
            let message = match first.filter(|first| first != path) {
                Some(first) => format!(
                    "duplicate prediction of `{}` for `{}`, first in {}: a file must not replace predictions of another file",
                    name.0,
                    name.1,
                    first.display()
                ),
                None if models.len() > MAX_MODELS => {
                    format!("there are more than {MAX_MODELS} models: grade them in several runs")
                }
                None => {
                    first_paths.insert(name, path);
                    continue;
                }
            };
            return Err(unsuitable(message));
        }
        all.extend(predictions);
    }
    if let (Some(file), Some(message)) = (files.first(), ungradable(&all, dataset)) {
        return Err(RecordsError::unsuitable(file.path, message));
    }
    let (mut sets, warnings) = group_by_model(all, dataset, chosen);
    for (model, sha256) in digests {
        if let Some(set) = sets.iter_mut().find(|set| set.model == model) {
            set.sha256.push(sha256);
        }
    }
    Ok((sets, warnings))
}

/// Returns one line for each model: how many predictions were read, and how many of them have a patch.
pub fn summary(sets: &[Predictions], warnings: &[Warning]) -> Vec<String> {
    let line = |set: &Predictions| {
        let patches = set.by_instance.values();
        let patches = patches.filter(|prediction| prediction.model_patch.is_some());
        let of_kind = |kind| {
            let of_set = |warning: &&Warning| {
                warning.model_name_or_path == set.model && warning.kind == kind
            };
            warnings.iter().filter(of_set).count()
        };
        let mut line = format!(
            "{}: {}, {} with a patch",
            set.model,
            count(set.by_instance.len(), "prediction"),
            patches.count()
        );
        for (kind, text) in [
            (WarningKind::Missing, "missing"),
            (WarningKind::Unknown, "not in the dataset"),
        ] {
            match of_kind(kind) {
                0 => {}
                count => line.push_str(&format!(", {count} {text}")),
            }
        }
        line
    };
    sets.iter().map(line).collect()
}

/// Returns why none of the predictions can be graded, if so. All would count as failures.
fn ungradable(predictions: &[ReadPrediction], dataset: &Dataset) -> Option<String> {
    let (first, _) = predictions.first()?;
    let number = count(predictions.len(), "prediction");
    let mut all = predictions.iter().map(|(prediction, _)| prediction);
    let mut patches = all.clone().filter_map(|one| one.model_patch.as_ref());
    if patches.next().is_none() {
        return Some(format!("{number}, 0 with a patch in `{PATCH}`"));
    }
    if !all.any(|prediction| dataset.get(&prediction.instance_id).is_some()) {
        let example = dataset.instances.first()?;
        return Some(format!(
            "{number}, 0 for an instance of {}: they have ids such as `{}`, and the dataset has `{}`",
            dataset.path.display(),
            first.instance_id,
            example.instance_id
        ));
    }
    None
}

/// Renames the predictions of a file; fails with the reason if they come from several models.
fn rename(predictions: &mut [ReadPrediction], name: &str) -> Result<(), String> {
    let models = predictions.iter().map(|(one, _)| &one.model_name_or_path);
    let models: BTreeSet<&String> = models.collect();
    if models.len() > 1 {
        let models: Vec<String> = models.into_iter().take(2).cloned().collect();
        return Err(format!(
            "the name `{name}` is for predictions of one model, but the file has several ({}, …)",
            models.join(", ")
        ));
    }
    for (prediction, _) in predictions {
        prediction.model_name_or_path = name.to_owned();
    }
    Ok(())
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(
        || "predictions".to_owned(),
        |s| s.to_string_lossy().into_owned(),
    )
}

/// Parses predictions. `name` is the model of records that do not name one.
fn parse(content: Content, name: &str) -> Result<Vec<ReadPrediction>, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut predictions = Vec::new();
    let mut fields = FieldNames::default();
    // Only the prediction is kept, since a record may contain much more.
    let mut take = |value: &Value| {
        if predictions.len() >= MAX_PREDICTIONS {
            return Err(PredictionError::TooMany.into());
        }
        fields.add(value);
        predictions.push(prediction(value, name)?);
        Ok(())
    };
    let entries = content.entries("instance_id", &mut problems, &mut |_, id, value| {
        take(&record_from_entry(id, value))
    });
    if entries.is_none() {
        content.each(&mut problems, &mut |_, value| take(&value));
    }
    // Otherwise all predictions would count as missing.
    if problems.is_empty()
        && !predictions.is_empty()
        && let Some(error) = fields.without_patch()
    {
        problems.push(Problem::new(1, error));
    }
    if problems.is_empty() {
        Ok(predictions)
    } else {
        Err(problems)
    }
}

/// The field with the patch.
const PATCH: &str = "model_patch";
/// Maximum number of other fields that are listed.
const MAX_LISTED_FIELDS: usize = 20;

/// The names of the fields in a file.
#[derive(Default)]
struct FieldNames {
    has_patch: bool,
    others: BTreeSet<String>,
}

impl FieldNames {
    fn add(&mut self, record: &Value) {
        if self.has_patch {
            return;
        }
        for name in record.as_object().into_iter().flat_map(Map::keys) {
            self.has_patch |= name == PATCH;
            if self.others.len() < MAX_LISTED_FIELDS {
                self.others.insert(name.clone());
            }
        }
    }

    /// Returns the error of a file in which no record has a patch.
    fn without_patch(&self) -> Option<PredictionError> {
        let names: Vec<&str> = self.others.iter().map(String::as_str).collect();
        (!self.has_patch).then(|| PredictionError::NoPatchField(names.join(", ")))
    }
}

/// Converts an entry of an object by instance to a record. The value is a record without an id, or just the patch.
fn record_from_entry(id: String, value: Value) -> Value {
    let mut record = match value {
        Value::Object(record) => record,
        patch => Map::from_iter([(PATCH.to_owned(), patch)]),
    };
    record.entry("instance_id").or_insert(Value::String(id));
    Value::Object(record)
}

/// An error in a record of predictions.
#[derive(Debug, thiserror::Error)]
enum PredictionError {
    #[error("there are more than {MAX_PREDICTIONS} predictions")]
    TooMany,
    #[error("the record is not a JSON object")]
    NotAnObject,
    #[error("`{0}` is not a string")]
    NotAText(&'static str),
    #[error("instance_id is missing")]
    NoId,
    #[error("no prediction has the field `{PATCH}`; the fields are: {0}")]
    NoPatchField(String),
    #[error("`{field}` {source}")]
    Name {
        field: &'static str,
        source: NameError,
    },
}

fn prediction(value: &Value, name: &str) -> Result<ReadPrediction, PredictionError> {
    let Value::Object(fields) = value else {
        return Err(PredictionError::NotAnObject);
    };
    let check_name = |field, text: &str| {
        untrusted_text::check_name(text).map_err(|source| PredictionError::Name { field, source })
    };
    let text = |field: &'static str| match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(PredictionError::NotAText(field)),
    };
    let instance_id = text("instance_id")?
        .map(str::trim)
        .filter(|id| !id.is_empty())
        .ok_or(PredictionError::NoId)?;
    check_name("instance_id", instance_id)?;
    let model = text("model_name_or_path")?
        .filter(|model| !model.trim().is_empty())
        .unwrap_or(name);
    check_name("model_name_or_path", model)?;
    let patch = text(PATCH)?;
    let warning = match patch {
        None => Some(WarningKind::Null),
        Some(patch) if patch.trim().is_empty() => Some(WarningKind::Empty),
        Some(_) => None,
    };
    let prediction = Prediction {
        instance_id: instance_id.to_owned(),
        model_name_or_path: model.to_owned(),
        model_patch: patch.filter(|_| warning.is_none()).map(str::to_owned),
    };
    Ok((prediction, warning))
}

/// Groups predictions by model, and adds warnings in the order of the files, with missing predictions last.
fn group_by_model(
    all: Vec<ReadPrediction>,
    dataset: &Dataset,
    chosen: &Dataset,
) -> (Vec<Predictions>, Vec<Warning>) {
    let mut sets: Vec<Predictions> = Vec::new();
    let mut warnings = Vec::new();
    for (prediction, odd) in all {
        let model = prediction.model_name_or_path.clone();
        let id = prediction.instance_id.clone();
        let mut warn = |kind| warnings.push(Warning::new(&model, &id, kind));
        let at = sets.iter().position(|set| set.model == model);
        let at = at.unwrap_or_else(|| {
            sets.push(Predictions {
                model: model.clone(),
                ..Predictions::default()
            });
            sets.len() - 1
        });
        if dataset.get(&id).is_none() {
            warn(WarningKind::Unknown);
            continue;
        }
        if chosen.get(&id).is_none() {
            continue;
        }
        if let Some(kind) = odd {
            warn(kind);
        }
        let earlier = sets[at].by_instance.insert(id.clone(), prediction);
        if earlier.is_some() {
            warn(WarningKind::Duplicate);
        }
    }
    for set in &sets {
        for instance in &chosen.instances {
            if !set.by_instance.contains_key(&instance.instance_id) {
                let id = &instance.instance_id;
                warnings.push(Warning::new(&set.model, id, WarningKind::Missing));
            }
        }
    }
    (sets, warnings)
}

#[cfg(test)]
mod tests;
