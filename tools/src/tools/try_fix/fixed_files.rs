//! The files of a fix. Each edit is located in the file as the model sees it, not in the result of earlier edits.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use super::FixEdit;
use crate::python::edit::{LineEnding, reindented};
use crate::python::indentation::indentation;
use crate::python::{Definition, Module, flatten};
use crate::similarity::most_similar;
use crate::tool::{Result, ToolError, refusal};
use crate::tools::line_numbers::end_line;
use crate::tools::replacement::find_text;
use crate::workspace::{Workspace, forward};

#[derive(Default)]
pub(super) struct FixedFiles {
    files: BTreeMap<PathBuf, FixedFile>,
}

/// A file and the replacements in it.
struct FixedFile {
    /// The text that the edits refer to.
    text: String,
    is_new: bool,
    /// Replacements by start offset: the end offset and the new text.
    replaced: BTreeMap<usize, (usize, String)>,
}

impl FixedFile {
    fn fixed(&self) -> String {
        let mut out = String::new();
        let mut at = 0;
        for (start, (end, new)) in &self.replaced {
            out.push_str(&self.text[at..*start]);
            out.push_str(new);
            at = *end;
        }
        out.push_str(&self.text[at..]);
        out
    }

    fn is_free(&self, start: usize, end: usize) -> bool {
        let mut others = self.replaced.iter();
        !others.any(|(from, (to, _))| *from < end && start < *to || *from == start)
    }
}

impl FixedFiles {
    /// Returns the names of the innermost functions and classes that the edits touch. For a special method, the name of
    /// its class.
    pub(super) fn edited_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for file in self.files.values() {
            let outline = Module::parse(file.text.clone()).outline();
            let is_edited = |definition: &&Definition| {
                let Range { start, end } = definition.bytes;
                let mut replaced = file.replaced.iter();
                replaced.any(|(from, (to, _))| *from < end && start < *to)
            };
            let edited: Vec<_> = flatten(&outline).into_iter().filter(is_edited).collect();
            for definition in &edited {
                let is_within = |other: &&Definition| {
                    let prefix = format!("{}.", definition.qualified);
                    other.qualified.starts_with(&prefix)
                };
                if !edited.iter().any(is_within) {
                    let mut path = definition.qualified.rsplit('.');
                    names.extend(path.find(|name| !name.starts_with("__")).map(str::to_owned));
                }
            }
        }
        names.sort();
        names.dedup();
        names
    }

    pub(super) fn add(&mut self, workspace: &Workspace, edit: &FixEdit) -> Result<()> {
        let path = workspace.resolve(&edit.path)?;
        let display_path = forward(&path);
        if workspace.layout().is_test_path(&display_path) && !display_path.contains("/testing/") {
            return Err(refusal!(
                "`{display_path}` is test code. A fix changes the code under test; change tests with the editing tools."
            ));
        }
        if !self.files.contains_key(&path) {
            let is_new = !workspace.root().join(&path).exists();
            let text = match is_new {
                true => String::new(),
                false => workspace.read_text(&path)?,
            };
            let file = FixedFile {
                text,
                is_new,
                replaced: BTreeMap::new(),
            };
            self.files.insert(path.clone(), file);
        }
        let Some(file) = self.files.get_mut(&path) else {
            return Ok(());
        };
        if file.is_new && edit.function.is_none() && edit.old.is_none() {
            file.text = LineEnding::split(&edit.new).0;
            return Ok(());
        }
        match place(&display_path, &file.text, edit) {
            Ok((start, end, new)) if file.is_free(start, end) => {
                file.replaced.insert(start, (end, new));
            }
            first => {
                // The edit targets text that an earlier edit inserted.
                let fixed = file.fixed();
                let second = place(&display_path, &fixed, edit);
                let (start, end, new) = match (first, second) {
                    (_, Ok(replacement)) => replacement,
                    (Err(first), Err(_)) => return Err(first),
                    (Ok(_), Err(error)) => return Err(error),
                };
                file.text = fixed;
                file.replaced = BTreeMap::from([(start, (end, new))]);
            }
        }
        Ok(())
    }

    /// Returns each file with its fixed text.
    ///
    /// # Errors
    ///
    /// Fails if a file that parsed before no longer does.
    pub(super) fn texts(&self) -> Result<Vec<(&PathBuf, String)>> {
        let mut texts = Vec::new();
        for (path, file) in &self.files {
            let fixed = file.fixed();
            check(
                &forward(path),
                if file.is_new { "" } else { &file.text },
                &fixed,
            )?;
            texts.push((path, fixed));
        }
        Ok(texts)
    }
}

/// Returns the byte range that an edit replaces, and the new text.
fn place(path: &str, text: &str, edit: &FixEdit) -> Result<(usize, usize, String)> {
    match (&edit.old, &edit.function) {
        (Some(old), None) if !old.is_empty() => {
            let (old, _) = LineEnding::split(old);
            let start = find_text(path, text, &old, edit.line)?;
            let (new, _) = LineEnding::split(&edit.new);
            Ok((start, start + old.len(), new))
        }
        (None, Some(name)) => definition(path, text, name, &LineEnding::split(&edit.new).0),
        (Some(_), Some(_)) => Err(ToolError::refused(
            "Give either `old` or `function` in an edit, not both.",
        )),
        _ => Err(refusal!(
            "Say what to replace in `{path}`: `old` (text that occurs once) or `function` (its name)."
        )),
    }
}

/// Finds a definition by its name. Its decorators stay unless the new code has its own.
fn definition(path: &str, now: &str, name: &str, new: &str) -> Result<(usize, usize, String)> {
    let module = Module::parse(now);
    let definitions = module.find(name);
    let definition = match definitions.as_slice() {
        [one] => one,
        [] => {
            let outline = module.outline();
            let names = flatten(&outline).into_iter().map(|d| &d.qualified);
            let near: Vec<&str> = most_similar(names, name)
                .into_iter()
                .map(String::as_str)
                .collect();
            return Err(refusal!(
                "There is no `{name}` in `{path}`. The nearest are: {}.",
                near.join(", ")
            ));
        }
        many => {
            let lines: Vec<String> = many.iter().map(|d| d.line.to_string()).collect();
            return Err(refusal!(
                "`{name}` is defined {} times in `{path}` (lines {}). Use `old` instead.",
                many.len(),
                lines.join(", ")
            ));
        }
    };
    let lines: Vec<&str> = now.split_inclusive('\n').collect();
    let first = match new.trim_start().starts_with('@') {
        true => definition.first,
        false => definition.line,
    };
    let bytes = |lines: &[&str]| lines.iter().map(|line| line.len()).sum::<usize>();
    let last = definition.last.min(lines.len());
    let (start, end) = (bytes(&lines[..first - 1]), bytes(&lines[..last]));
    let prefix = indentation(lines.get(definition.first - 1).copied().unwrap_or_default());
    let mut new = reindented(new.trim_matches('\n').trim_end(), prefix);
    end_line(&mut new);
    Ok((start, end, new))
}

fn check(path: &str, was: &str, after: &str) -> Result<()> {
    if !path.ends_with(".py") {
        return Ok(());
    }
    let errors = Module::parse(after).new_errors(Some(&Module::parse(was)));
    match errors.first() {
        None => Ok(()),
        Some(error) => Err(refusal!(
            "With this edit `{path}` does not parse: line {}: {}. Nothing was changed.",
            error.line,
            error.what
        )),
    }
}

#[cfg(test)]
mod tests;
