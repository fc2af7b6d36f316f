//! `insert_function`: inserts complete functions or classes into a file.

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Deserialize;

use super::editing::{self, EditAction, EditResult};
use super::unknown_name::unknown;
use crate::python::edit::{Code, InsertionPoint, insert};
use crate::python::import_edit::{ImportedText, add_imports, read_imports};
use crate::python::{Binding, Kind, Module, plain_name};
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
        let code = Code::read(&args.code).map_err(|what| refusal!("Not written: {what}."))?;
        let imports = wanted_imports(&args.imports, &code)?;
        let is_own = |top: &str| editing::is_own_package(workspace, top);
        let imported = add_imports(&Module::parse(text), &imports, &is_own)
            .map_err(|what| refusal!("Not written: {what}."))?;
        let module = Module::parse(imported.text.as_str());
        let place = find_place(&module, &display_path, &args)?;
        let prefix = match &place {
            Place::After(d) => d
                .qualified
                .rsplit_once('.')
                .map(|(outer, _)| format!("{outer}.")),
            Place::In(d) => Some(format!("{}.", d.qualified)),
            Place::End => None,
        }
        .unwrap_or_default();
        for name in &code.names {
            let definitions = module.find(&format!("{prefix}{name}"));
            // Python code defines the same name twice for setters and overloads.
            if let Some(existing) = definitions
                .first()
                .filter(|_| !args.code.contains(".setter") && !args.code.contains("overload"))
            {
                return Err(refusal!(
                    "Not written: {display_path} defines `{prefix}{name}` already (line {}). Replace that one, or use another name.",
                    existing.line
                ));
            }
        }
        if let Place::In(class) = &place {
            let head = module.text().get(..class.body.start).unwrap_or_default();
            let start = head.rsplit('\n').next().unwrap_or_default();
            if !start.trim().is_empty() {
                return Err(refusal!(
                    "Not written: the body of `{}` stands on the line of `class`; replace the whole class.",
                    class.qualified
                ));
            }
        }
        let edited = insert(&module, &code, place.insertion_point());
        let after = Module::parse(edited.text.clone());
        editing::check(workspace, &display_path, before.as_ref(), &after)?;
        let package = editing::package_file(workspace, &relative);
        if let Some(package) = &package {
            workspace.write(package, b"")?;
        }
        workspace.write_text(&relative, &edited.text)?;
        let mut out = match exists {
            true => format!(
                "Written to {display_path}, lines {}-{}.\n",
                edited.first, edited.last
            ),
            false => format!(
                "Made {display_path}, {} lines.\n",
                after.text().lines().count()
            ),
        };
        let action = match exists {
            true => EditAction::Modified,
            false => EditAction::Created,
        };
        let mut edited_files =
            EditResult::one(&display_path, action, Some((edited.first, edited.last)));
        if let Some(package) = &package {
            edited_files.add(&forward(package), EditAction::Created, None);
            out.push_str(&format!(
                "Made {} as neighbouring folders have one.\n",
                forward(package)
            ));
        }
        report_imports(&mut out, &imported);
        out.push_str(&editing::kept_lines(&edited));
        Ok(Reply::new(out, edited_files))
    }
}

/// Combines the imports given beside the code with those at its top.
///
/// # Errors
///
/// Fails if a given import is not an import statement.
pub fn wanted_imports(statements: &[String], code: &Code) -> Result<Vec<Binding>> {
    let mut bindings =
        read_imports(statements).map_err(|what| refusal!("Not written: in `imports`, {what}."))?;
    bindings.extend(code.imports.iter().cloned());
    Ok(bindings)
}

/// Appends to an answer which imports were added, and which existed elsewhere.
pub fn report_imports(out: &mut String, imported: &ImportedText) {
    if !imported.added.is_empty() {
        out.push_str(&format!("Imports added: {}\n", imported.added.join("; ")));
    }
    for line in &imported.existing {
        out.push_str(&format!("{line}\n"));
    }
}

enum Place {
    After(crate::python::Definition),
    In(crate::python::Definition),
    End,
}

impl Place {
    fn insertion_point(&self) -> InsertionPoint<'_> {
        match self {
            Place::After(d) => InsertionPoint::After(d),
            Place::In(d) => InsertionPoint::In(d),
            Place::End => InsertionPoint::End,
        }
    }
}

fn find_place(module: &Module, display_path: &str, args: &InsertFunctionArgs) -> Result<Place> {
    let class = match &args.class {
        Some(name) => {
            let name = plain_name(name);
            let definition = module
                .find(&name)
                .into_iter()
                .rev()
                .find(|d| d.kind == Kind::Class);
            Some(definition.ok_or_else(|| unknown(module, display_path, &name))?)
        }
        None => None,
    };
    if let Some(after) = &args.after {
        let plain = plain_name(after);
        let mut definitions = module.find(&plain);
        if let (Some(class), true) = (&class, definitions.is_empty()) {
            definitions = module.find(&format!("{}.{plain}", class.qualified));
        }
        let definition = definitions
            .pop()
            .ok_or_else(|| unknown(module, display_path, &plain))?;
        return Ok(Place::After(definition));
    }
    Ok(class.map_or(Place::End, Place::In))
}
