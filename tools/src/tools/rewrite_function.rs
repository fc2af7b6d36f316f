//! `rewrite_function`: replaces a function or class with new code, or deletes it.

use schemars::JsonSchema;
use serde::Deserialize;

use super::editing::{self, EditAction, EditResult};
use super::unknown_name::unknown;
use crate::python::edit::{remove, replace};
use crate::python::{Definition, Module, flatten, plain_name};
use crate::tool::{Context, Reply, Result, Tool, refusal};
use crate::workspace::forward;

/// A tool that replaces or deletes a function or class.
pub struct RewriteFunction;

/// Arguments of `rewrite_function`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RewriteFunctionArgs {
    /// The file.
    #[schemars(example = "tests/test_module.py")]
    pub(super) path: String,
    /// `function` or `Class.method`.
    #[schemars(example = "TestParse.test_empty")]
    pub(super) name: String,
    /// As in `insert_function`; its decorators stay unless there are some here. Empty: delete.
    #[schemars(example = "def test_empty(self):\n    assert parse('') == []\n")]
    pub(super) code: String,
    /// Import statements that the code needs.
    #[serde(default)]
    #[schemars(extend("unlisted" = true))]
    pub(super) imports: Vec<String>,
}

impl Tool for RewriteFunction {
    type Args = RewriteFunctionArgs;
    type Data = EditResult;
    const NAME: &'static str = "rewrite_function";
    const TITLE: &'static str = "Rewrite a function";
    const IS_IDEMPOTENT: bool = true;
    const DESCRIPTION: &'static str = "Replace a function or class.";

    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>> {
        let workspace = &mut *context.workspace;
        let relative = workspace.resolve_file(&args.path)?;
        let display_path = forward(&relative);
        let before = Module::parse(workspace.read_text(&relative)?);
        let name = plain_name(&args.name);
        match before.find(&name).as_slice() {
            [] => return Err(unknown(&before, &display_path, &name)),
            [_] => {}
            several => {
                let at: Vec<String> = several.iter().map(|d| d.line.to_string()).collect();
                return Err(refusal!(
                    "{display_path} defines `{name}` more than once (lines {}); rewrite the class or function around them.",
                    at.join(", ")
                ));
            }
        }
        if args.code.trim().is_empty() && args.imports.is_empty() {
            let definitions = before.find(&name);
            let text = definitions.first().map(|d| remove(&before, d));
            let after = Module::parse(text.unwrap_or_default());
            editing::check(workspace, &display_path, Some(&before), &after)?;
            workspace.write_text(&relative, after.text())?;
            let text = format!("Deleted `{name}` from {display_path}.\n");
            let data = EditResult::one(&display_path, EditAction::Modified, None);
            return Ok(Reply::new(text, data));
        }
        let (code, imported) =
            editing::with_imports(workspace, &before, &args.code, &args.imports)?;
        let module = Module::parse(imported.text.as_str());
        let definitions = module.find(&name);
        let Some(definition) = definitions.first() else {
            return Err(unknown(&module, &display_path, &name));
        };
        let edited = replace(&module, definition, &code);
        let after = Module::parse(edited.text.clone());
        editing::check(workspace, &display_path, Some(&before), &after)?;
        if edited.text == before.text() {
            let text = format!("{display_path} is as it was: the code is the same.\n");
            return Ok(Reply::new(text, EditResult::default()));
        }
        workspace.write_text(&relative, &edited.text)?;
        let (first, last) = (edited.first, edited.last);
        let mut out = format!("Rewritten in {display_path}, lines {first}-{last}.\n");
        out.push_str(&editing::imports_note(&imported));
        if after.find(&name).is_empty() {
            let names = code.names.join("`, `");
            out.push_str(&format!("`{name}` is gone; there is now `{names}`.\n"));
        }
        if !code.is_decorated() && !definition.decorators.is_empty() {
            let decorators = definition.decorators.join(", ");
            out.push_str(&format!("Its decorators stay: {decorators}\n"));
        }
        let dropped = dropped_decorators(definition, &after, (first, last)).join(", ");
        if !dropped.is_empty() {
            out.push_str(&format!("Decorators that are gone: {dropped}\n"));
        }
        out.push_str(&editing::kept_lines(&edited));
        let lines = Some((first, last));
        let data = EditResult::one(&display_path, EditAction::Modified, lines);
        Ok(Reply::new(out, data))
    }
}

/// Returns decorators of a function, and of its nested definitions, that the new code in these lines lacks. They are
/// compared by text and number, since a method may have been renamed.
fn dropped_decorators(old: &Definition, new: &Module, lines: (usize, usize)) -> Vec<String> {
    let outline = new.outline();
    let mut now: Vec<&str> = (flatten(&outline).into_iter())
        .filter(|definition| (lines.0..=lines.1).contains(&definition.line))
        .flat_map(|definition| definition.decorators.iter().map(String::as_str))
        .collect();
    let mut dropped = Vec::new();
    for definition in flatten(std::slice::from_ref(old)) {
        for decorator in &definition.decorators {
            match now.iter().position(|other| other == decorator) {
                Some(at) => {
                    now.swap_remove(at);
                }
                None if definition.first == old.first => dropped.push(decorator.clone()),
                None => dropped.push(format!("{decorator} of `{}`", definition.name)),
            }
        }
    }
    dropped
}

#[cfg(test)]
mod tests;
