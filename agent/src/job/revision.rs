//! The difference between a revised test and the test before.

use std::collections::BTreeSet;

use testwright_sandboxes::repository::{self, Files, Source};
use testwright_tools::workspace::unified;

use crate::approaches::extra_inputs::ExtraInputs;
use crate::outcome::Outcome;
use testwright_config::error::Result;

/// Returns a unified diff of the files as the two patches leave them; `None` if no test was to be revised, or the
/// run wrote none. A patch that does not apply counts as one without changes.
///
/// # Errors
///
/// Fails if the code cannot be read, or the patches cannot be tried.
pub(super) fn difference(
    source: &Source,
    inputs: &ExtraInputs,
    outcome: &Outcome,
) -> Result<Option<String>> {
    let (Some(earlier), Some(now)) = (&inputs.revises, outcome.written_patch()) else {
        return Ok(None);
    };
    let tree = source.tree()?;
    let apply = |patch: &str| -> Result<Files> {
        let applied = repository::apply(&tree, &Files::new(), patch)?;
        Ok(applied.map(|applied| applied.files).unwrap_or_default())
    };
    let (before, after) = (apply(&earlier.patch)?, apply(now)?);
    let text = |files: &Files, path: &str| -> Result<String> {
        let file = match files.get(path) {
            Some(file) => file.clone(),
            None => tree.file(path)?,
        };
        let content = file.map(|file| file.content).unwrap_or_default();
        Ok(String::from_utf8_lossy(&content).into_owned())
    };
    let mut difference = String::new();
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for path in paths {
        let (old, new) = (text(&before, path)?, text(&after, path)?);
        if old != new {
            let hunks = unified(&old, &new, path.ends_with(".py"));
            difference.push_str(&format!("--- a/{path}\n+++ b/{path}\n{hunks}"));
        }
    }
    Ok(Some(difference))
}
