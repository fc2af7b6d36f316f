//! Shared code of the tools that edit Python: a change is checked before it is written.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::line_numbers::{count, cut, numbered};
use crate::python::edit::{Code, EditedText};
use crate::python::import_edit::{ImportedText, add_imports, read_imports};
use crate::python::{Module, new_undefined_names, suggest};
use crate::tool::{Result, refusal};
use crate::workspace::{Workspace, forward};

/// The files that a call changed; empty if all stayed the same.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct EditResult {
    files: Vec<EditedFile>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct EditedFile {
    /// Path relative to the repository.
    path: String,
    action: EditAction,
    /// First and last of the new lines, counted from 1, if the call wrote any.
    lines: Option<(usize, usize)>,
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EditAction {
    Created,
    Modified,
    /// Restored to the state at the start.
    Restored,
    /// A new file was removed.
    Removed,
}

impl EditResult {
    pub fn one(path: &str, action: EditAction, lines: Option<(usize, usize)>) -> Self {
        let mut edited = EditResult::default();
        edited.add(path, action, lines);
        edited
    }

    pub fn add(&mut self, path: &str, action: EditAction, lines: Option<(usize, usize)>) {
        self.files.push(EditedFile {
            path: path.to_owned(),
            action,
            lines,
        });
    }
}

/// Refuses `after` if it introduces syntax errors or undefined names.
///
/// # Errors
///
/// Returns the refusal.
pub(super) fn check(
    workspace: &Workspace,
    path: &str,
    before: Option<&Module>,
    after: &Module,
) -> Result<()> {
    check_syntax(path, before, after)?;
    let undefined = undefined(workspace, before, after);
    if undefined.is_empty() {
        return Ok(());
    }
    Err(refusal!(
        "Not written: the code uses names that are defined nowhere in {path}.\n{undefined}\
         Import them (above the functions that you insert, or by an `edit` before this one), or define them."
    ))
}

/// Refuses new syntax errors.
///
/// # Errors
///
/// Returns the refusal, which shows the lines around the first error.
pub(super) fn check_syntax(path: &str, before: Option<&Module>, after: &Module) -> Result<()> {
    let errors = after.new_errors(before);
    let Some(first) = errors.first() else {
        return Ok(());
    };
    Err(refusal!(
        "Not written: {path} would not parse. Line {}: {}.\nIt would read:\n{}",
        first.line,
        first.what,
        numbered(after.text(), first.line.saturating_sub(5), first.line + 5)
    ))
}

/// Lists each undefined name that `before` did not have on one line, with imports that would define it.
pub(super) fn undefined(workspace: &Workspace, before: Option<&Module>, after: &Module) -> String {
    let names = new_undefined_names(before, after);
    if names.is_empty() {
        return String::new();
    }
    let files = workspace.files();
    let mut out = String::new();
    for name in names.iter().take(8) {
        let suggestions: Vec<String> = suggest(workspace.root(), &files, &name.name)
            .into_iter()
            .map(|statement| format!("`{statement}`"))
            .collect();
        let line = after.text().lines().nth(name.line - 1).unwrap_or_default();
        out.push_str(&format!("`{}` in `{}`", name.name, cut(line.trim(), 80)));
        if !suggestions.is_empty() {
            out.push_str(&format!(": {}", suggestions.join(" or ")));
        }
        out.push('\n');
    }
    out
}

/// Reads code from a model, and adds to a module the imports at its top and those given beside it.
///
/// # Errors
///
/// Returns the refusal.
pub(super) fn with_imports(
    workspace: &Workspace,
    module: &Module,
    code: &str,
    imports: &[String],
) -> Result<(Code, ImportedText)> {
    let code = Code::read(code).map_err(|what| refusal!("Not written: {what}."))?;
    let mut bindings =
        read_imports(imports).map_err(|what| refusal!("Not written: in `imports`, {what}."))?;
    bindings.extend(code.imports.iter().cloned());
    let imported = add_imports(module, &bindings, &|top| is_own_package(workspace, top));
    Ok((
        code,
        imported.map_err(|what| refusal!("Not written: {what}."))?,
    ))
}

/// Says which imports were added, and which existed elsewhere.
pub(super) fn imports_note(imported: &ImportedText) -> String {
    let mut lines = imported.existing.clone();
    if !imported.added.is_empty() {
        lines.insert(0, format!("Imports added: {}", imported.added.join("; ")));
    }
    let lines = lines.iter();
    lines.flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// Describes how the inserted code differs from the given code; empty if it does not.
pub(super) fn kept_lines(edited: &EditedText) -> String {
    match edited.kept {
        0 => String::new(),
        line_count => format!(
            "{} inside of strings kept the indentation that you gave: it is part of the string.\n",
            count(line_count, "line")
        ),
    }
}

/// Returns whether the repository contains a package or module of this name.
fn is_own_package(workspace: &Workspace, top: &str) -> bool {
    ["", "src", "lib"].iter().any(|folder| {
        let place = workspace.root().join(folder).join(top);
        place.is_dir() || place.with_extension("py").is_file()
    })
}

/// Returns the `__init__.py` that a new file in a new folder needs, if neighbouring folders have one.
pub(super) fn package_file(workspace: &Workspace, relative: &Path) -> Option<PathBuf> {
    let folder = relative.parent().filter(|f| !f.as_os_str().is_empty())?;
    let whole = workspace.root().join(folder);
    if whole.exists() || relative.extension().is_none_or(|e| e != "py") {
        return None;
    }
    let around = whole.parent()?;
    let has_one = |folder: &Path| folder.join("__init__.py").is_file();
    let siblings = std::fs::read_dir(around).ok()?;
    let sibling_is_package = siblings.flatten().any(|s| {
        let name = s.file_name();
        workspace
            .layout()
            .is_test_path(&forward(&relative.with_file_name("x").join(name)))
            && has_one(&s.path())
    });
    let inside_package = around != workspace.root() && has_one(around);
    (inside_package || sibling_is_package).then(|| folder.join("__init__.py"))
}
