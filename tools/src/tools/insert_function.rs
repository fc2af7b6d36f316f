//! `insert_function`: inserts complete functions or classes into a file.

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Deserialize;

use super::editing::{self, EditAction, EditResult};
use super::unknown_name::unknown;
use crate::python::edit::{InsertionPoint, insert};
use crate::python::{Definition, Kind, Module, plain_name};
use crate::tool::{Context, Reply, Result, Tool, refusal};
use crate::workspace::forward;

/// A tool that inserts functions or classes into a file.
pub struct InsertFunction;

/// Arguments of `insert_function`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InsertFunctionArgs {
    /// The file.
    #[schemars(example = "tests/test_module.py")]
    path: String,
    /// With the imports it needs above. Indentation is put right, but not inside of strings.
    #[schemars(example = "def test_empty():\n    assert parse('') == []\n")]
    code: String,
    /// Import statements that the code needs.
    #[serde(default)]
    #[schemars(extend("unlisted" = true))]
    imports: Vec<String>,
    /// The function or class to insert it after.
    #[schemars(extend("plain" = true))]
    after: Option<String>,
    /// The class to insert it into.
    #[schemars(extend("plain" = true))]
    class: Option<String>,
}

impl Tool for InsertFunction {
    type Args = InsertFunctionArgs;
    type Data = EditResult;
    const NAME: &'static str = "insert_function";
    const TITLE: &'static str = "Insert functions";
    const IS_DESTRUCTIVE: bool = false;
    const DESCRIPTION: &'static str = "Add functions or classes to a Python file, new or not: at its end, at that of a `class`, or `after` another.";

    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>> {
        let workspace = &mut *context.workspace;
        let relative = workspace.resolve(&args.path)?;
        let display_path = forward(&relative);
        if !display_path.ends_with(".py") {
            return Err(refusal!("`{display_path}` is not a Python file."));
        }
        let exists = workspace.root().join(&relative).exists();
        let text = match exists {
            true => workspace.read_text(&relative)?,
            false => String::new(),
        };
        let before = exists.then(|| Module::parse(text.clone()));
        let (code, imported) =
            editing::with_imports(workspace, &Module::parse(text), &args.code, &args.imports)?;
        let module = Module::parse(imported.text.as_str());
        let class = find_class(&module, &display_path, args.class.as_deref())?;
        let after = find_after(
            &module,
            &display_path,
            args.after.as_deref(),
            class.as_ref(),
        )?;
        let point = match (&after, &class) {
            (Some(definition), _) => InsertionPoint::After(definition),
            (None, Some(class)) => InsertionPoint::In(class),
            (None, None) => InsertionPoint::End,
        };
        let around = match (&after, &class) {
            (Some(definition), _) => definition
                .qualified
                .rsplit_once('.')
                .map(|(outer, _)| outer),
            (None, class) => class.as_ref().map(|class| class.qualified.as_str()),
        };
        let prefix = around.map_or_else(String::new, |outer| format!("{outer}."));
        // Python code defines the same name twice for setters and overloads.
        let is_unique = !args.code.contains(".setter") && !args.code.contains("overload");
        for name in code.names.iter().filter(|_| is_unique) {
            if let Some(existing) = module.find(&format!("{prefix}{name}")).first() {
                return Err(refusal!(
                    "Not written: {display_path} defines `{prefix}{name}` already (line {}). Replace that one, or use another name.",
                    existing.line
                ));
            }
        }
        if let InsertionPoint::In(class) = point {
            let head = module.text().get(..class.body.start).unwrap_or_default();
            let start = head.rsplit('\n').next().unwrap_or_default();
            if !start.trim().is_empty() {
                return Err(refusal!(
                    "Not written: the body of `{}` stands on the line of `class`; replace the whole class.",
                    class.qualified
                ));
            }
        }
        let edited = insert(&module, &code, point);
        let new = Module::parse(edited.text.as_str());
        editing::check(workspace, &display_path, before.as_ref(), &new)?;
        let package = editing::package_file(workspace, &relative);
        if let Some(package) = &package {
            workspace.write(package, b"")?;
        }
        workspace.write_text(&relative, &edited.text)?;
        let (first, last) = (edited.first, edited.last);
        let made = new.text().lines().count();
        let (mut out, action) = match exists {
            true => (
                format!("Written to {display_path}, lines {first}-{last}.\n"),
                EditAction::Modified,
            ),
            false => (
                format!("Made {display_path}, {made} lines.\n"),
                EditAction::Created,
            ),
        };
        let mut edited_files = EditResult::one(&display_path, action, Some((first, last)));
        if let Some(package) = package.as_deref().map(forward) {
            edited_files.add(&package, EditAction::Created, None);
            out.push_str(&format!(
                "Made {package} as neighbouring folders have one.\n"
            ));
        }
        out.push_str(&editing::imports_note(&imported));
        out.push_str(&editing::kept_lines(&edited));
        Ok(Reply::new(out, edited_files))
    }
}

fn find_class(module: &Module, path: &str, name: Option<&str>) -> Result<Option<Definition>> {
    let Some(name) = name.map(plain_name) else {
        return Ok(None);
    };
    let mut definitions = module.find(&name);
    definitions.retain(|definition| definition.kind == Kind::Class);
    let class = definitions.pop();
    Ok(Some(class.ok_or_else(|| unknown(module, path, &name))?))
}

/// Finds the definition to insert the code after; its name may be that of a member of the class.
fn find_after(
    module: &Module,
    path: &str,
    name: Option<&str>,
    class: Option<&Definition>,
) -> Result<Option<Definition>> {
    let Some(name) = name.map(plain_name) else {
        return Ok(None);
    };
    let mut definitions = module.find(&name);
    if let (Some(class), true) = (class, definitions.is_empty()) {
        definitions = module.find(&format!("{}.{name}", class.qualified));
    }
    let definition = definitions.pop();
    Ok(Some(
        definition.ok_or_else(|| unknown(module, path, &name))?,
    ))
}
