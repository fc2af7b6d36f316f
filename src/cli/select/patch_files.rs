//! Reads the tests and patches to select with: files of predictions, and patches in files of their own.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use testwright_evals::dataset::Dataset;
use testwright_evals::predictions::{self, Prediction, Predictions};
use testwright_evals::untrusted_text::check_name;
use testwright_sandboxes::plain_file;

use super::expand::{expand, is_patch, reading};
use crate::cli::output::{self, escape_line};
use testwright_comparisons::grading::{GradingRun, records};
use testwright_config::error::Result;

/// Maximum bytes of a patch.
const MAX_PATCH_BYTES: u64 = 32 << 20;

/// Reads the files, also those in folders and those that match a pattern. A patch (.patch or .diff) is a prediction for
/// the only instance, and is named after its file.
pub(super) fn read(files: &[PathBuf], grading: &GradingRun) -> Result<Vec<Predictions>> {
    let files = expand(files)?;
    let files = files.iter().map(PathBuf::as_path);
    let (patches, of_predictions): (Vec<&Path>, Vec<&Path>) =
        files.partition(|file| is_patch(file));
    let (mut sets, warnings) =
        predictions::read(&of_predictions, &grading.whole, &grading.dataset).map_err(records)?;
    for line in predictions::summary(&sets, &warnings) {
        output::print_status(escape_line(&line));
    }
    let named = |set: &Predictions| (set.model.clone(), "a file of predictions".to_owned());
    let mut origins: BTreeMap<String, String> = sets.iter().map(named).collect();
    for path in patches {
        let set = read_patch(path, &grading.dataset)?;
        if let Some(other) = origins.insert(set.model.clone(), path.display().to_string()) {
            return Err(reading(path)
                .cause(format!(
                    "its name, `{}`, is also used by {other}",
                    set.model
                ))
                .hint("rename one of the files: a patch is named after its file"));
        }
        sets.push(set);
    }
    Ok(sets)
}

fn read_patch(path: &Path, dataset: &Dataset) -> Result<Predictions> {
    let [instance] = dataset.instances.as_slice() else {
        return Err(reading(path)
            .cause("a patch does not name the instance that it is for")
            .hint("select one instance with --instances, or pass a file of predictions"));
    };
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    check_name(&name).map_err(|error| reading(path).cause(format!("its name {error}")))?;
    let content =
        plain_file::read_user_file(path, MAX_PATCH_BYTES).map_err(|error| match error.kind() {
            ErrorKind::NotFound => reading(path).cause("the file does not exist"),
            _ => reading(path).cause(error),
        })?;
    let text =
        String::from_utf8(content).map_err(|_| reading(path).cause("it is not UTF-8 text"))?;
    let mut set = Predictions {
        model: name.into_owned(),
        ..Predictions::default()
    };
    let prediction = Prediction {
        instance_id: instance.instance_id.clone(),
        model_name_or_path: set.model.clone(),
        model_patch: Some(text).filter(|text| !text.trim().is_empty()),
    };
    set.by_instance
        .insert(instance.instance_id.clone(), prediction);
    Ok(set)
}

#[cfg(test)]
mod tests;
