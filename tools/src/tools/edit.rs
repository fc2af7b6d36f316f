//! `edit`: replaces text or a function in a file, creates a file, or restores one. Together with `insert_function`, an
//! agent needs no other editing tool; that matters because schemas are sent with every call.

use schemars::JsonSchema;
use serde::Deserialize;

use super::create_file::{CreateFile, CreateFileArgs};
use super::editing::{self, EditAction, EditResult};
use super::replacement::replace_text;
use super::revert::{Revert, RevertArgs};
use super::rewrite_function::{RewriteFunction, RewriteFunctionArgs};
use crate::python::Module;
use crate::python::edit::LineEnding;
use crate::tool::{Context, Reply, Result, Tool, ToolError};
use crate::workspace::{forward, unified};

/// Maximum lines of the change that are shown; the model has just sent a longer change itself.
const MAX_SHOWN_LINES: usize = 12;

/// A tool that replaces text or a function, or creates or restores a file.
pub struct Edit;

/// Arguments of `edit`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditArgs {
    #[schemars(example = "tests/test_module.py")]
    /// The file.
    path: String,
    /// Occurs once; not for a new file.
    old: Option<String>,
    /// `Class.method`, replaced whole; its decorators stay unless `new` has some. Empty `new`: delete.
    function: Option<String>,
    /// The replacement text.
    #[schemars(extend("plain" = true))]
    new: Option<String>,
    /// The line at which `old` begins, if it occurs more than once.
    #[schemars(extend("unlisted" = true))]
    line: Option<usize>,
}

impl Tool for Edit {
    type Args = EditArgs;
    type Data = EditResult;
    const NAME: &'static str = "edit";
    const TITLE: &'static str = "Edit a file";
    const DESCRIPTION: &'static str = "Change or make a text file. `path` alone: put it back.";

    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>> {
        let old = args.old.filter(|old| !old.is_empty());
        let Some(new) = args.new else {
            if old.is_some() || args.function.is_some() {
                return Err(ToolError::refused("Say by `new` what comes instead."));
            }
            let path = Some(args.path);
            return Tool::call(&Revert, context, RevertArgs { path });
        };
        let old = match (old, args.function) {
            (Some(_), Some(_)) => {
                return Err(ToolError::refused(
                    "Give either `old` or `function`, not both.",
                ));
            }
            (None, Some(name)) => {
                let rewritten = RewriteFunctionArgs {
                    path: args.path,
                    name,
                    code: new,
                    imports: Vec::new(),
                };
                return Tool::call(&RewriteFunction, context, rewritten);
            }
            (old, None) => old.unwrap_or_default(),
        };
        let resolved = context.workspace.resolve(&args.path)?;
        if old.is_empty() && !context.workspace.root().join(&resolved).exists() {
            let (path, content) = (args.path, new);
            return Tool::call(&CreateFile, context, CreateFileArgs { path, content });
        }
        let workspace = &mut *context.workspace;
        let relative = workspace.resolve_file(&args.path)?;
        let display_path = forward(&relative);
        if old.is_empty() {
            return Err(ToolError::refused(
                "`old` is empty, and the file exists already: give the text to replace.",
            ));
        }
        let before = workspace.read_text(&relative)?;
        let (old, _) = LineEnding::split(&old);
        let (new, _) = LineEnding::split(&new);
        let after = replace_text(&display_path, &before, &old, &new, args.line)?;
        if after == before {
            let text = format!("{display_path} is as it was: `old` and `new` are the same.\n");
            return Ok(Reply::new(text, EditResult::default()));
        }
        let is_python = display_path.ends_with(".py");
        if is_python {
            let (old, new) = (
                Module::parse(before.as_str()),
                Module::parse(after.as_str()),
            );
            editing::check(workspace, &display_path, Some(&old), &new)?;
        }
        workspace.write_text(&relative, &after)?;
        let hunks = unified(&before, &after, is_python);
        let lines: Vec<&str> = hunks.lines().collect();
        let mut out = format!("Edited {display_path}.\n");
        let end = if lines.len() > MAX_SHOWN_LINES {
            1
        } else {
            lines.len()
        };
        for line in &lines[..end] {
            out.push_str(line);
            out.push('\n');
        }
        let data = EditResult::one(&display_path, EditAction::Modified, None);
        Ok(Reply::new(out, data))
    }
}

#[cfg(test)]
mod tests;
