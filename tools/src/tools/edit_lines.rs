//! `edit_lines`: replaces a range of lines.

use schemars::JsonSchema;
use serde::Deserialize;

use super::editing::{self, EditAction, EditResult};
use super::line_numbers::{count, end_line, numbered};
use crate::python::Module;
use crate::python::edit::LineEnding;
use crate::tool::{Context, Reply, Result, Tool, refusal};
use crate::workspace::forward;

/// Lines shown above and below the edit.
const CONTEXT_LINES: usize = 5;

/// A tool that replaces a range of lines.
pub struct EditLines;

/// Arguments of `edit_lines`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditLinesArgs {
    /// The file, relative to the repository's root.
    #[schemars(example = "tests/test_module.py")]
    path: String,
    /// First line to replace, counted from 1 (`open_file` shows the numbers).
    #[schemars(example = 12)]
    first: usize,
    /// Last line to replace, inclusive; `first` minus 1 to insert before `first` without replacing.
    #[schemars(example = 14)]
    last: usize,
    /// The new lines, with their full indentation; empty to delete.
    #[schemars(example = "    assert parse('') == []\n")]
    text: String,
}

impl Tool for EditLines {
    type Args = EditLinesArgs;
    type Data = EditResult;
    const NAME: &'static str = "edit_lines";
    const TITLE: &'static str = "Replace lines";
    const DESCRIPTION: &'static str = "Replace lines `first` to `last` of a file by `text`. Refused, with the file untouched, when a Python \
        file would no longer parse; the answer then shows how it would have looked. Line numbers after the edit change.";
    const LOW_LEVEL: bool = true;

    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>> {
        let workspace = &mut *context.workspace;
        let relative = workspace.resolve_file(&args.path)?;
        let display_path = forward(&relative);
        let before = workspace.read_text(&relative)?;
        let lines: Vec<&str> = before.split_inclusive('\n').collect();
        let total = lines.len();
        let (first, last) = (args.first, args.last);
        if first == 0 || first > total + 1 || last > total || last + 1 < first {
            let lines = count(total, "line");
            return Err(refusal!(
                "Lines {first}-{last} do not fit: {display_path} has {lines} (`first` from 1, `last` at least `first` minus 1)."
            ));
        }
        let mut new: String = lines[..first - 1].concat();
        end_line(&mut new);
        let (mut text, _) = LineEnding::split(&args.text);
        end_line(&mut text);
        new.push_str(&text);
        new.push_str(&lines[last..].concat());
        let mut note = String::new();
        if display_path.ends_with(".py") {
            let (old, module) = (Module::parse(before.clone()), Module::parse(new.clone()));
            editing::check_syntax(&display_path, Some(&old), &module)?;
            let undefined = editing::undefined(workspace, Some(&old), &module);
            if !undefined.is_empty() {
                note = format!("It now uses names that are defined nowhere:\n{undefined}");
            }
        }
        workspace.write_text(&relative, &new)?;
        let added = text.lines().count();
        let summary = match (last + 1 - first, added) {
            (0, added) if first > total => format!("{} added at the end", count(added, "line")),
            (0, added) => format!("{} inserted before line {first}", count(added, "line")),
            (removed, 0) => format!("{} deleted", count(removed, "line")),
            (removed, added) => format!("{} replaced by {added}", count(removed, "line")),
        };
        let mut out = format!(
            "{display_path}: {summary}; it has now {}.\n{note}",
            count(new.lines().count(), "line")
        );
        let end = (first + added + CONTEXT_LINES - 1).min(new.lines().count());
        out.push_str(&numbered(&new, first.saturating_sub(CONTEXT_LINES), end));
        let lines = (added > 0).then_some((first, first + added - 1));
        let data = EditResult::one(&display_path, EditAction::Modified, lines);
        Ok(Reply::new(out, data))
    }
}

#[cfg(test)]
mod tests;
