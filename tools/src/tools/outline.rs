//! `outline`: lists the classes and functions of a file.

use std::collections::HashSet;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::line_numbers::{count, cut, listed};
use super::unknown_name::unknown;
use crate::python::{Definition, Kind, Module, flatten, plain_name};
use crate::tool::{Context, Effect, Reply, Result, Tool};
use crate::workspace::{Workspace, forward};

const MAX_SHOWN: usize = 200;
const WIDTH: usize = 160;
const FIXTURES: usize = 30;

/// A tool that lists the classes and functions of a file.
pub struct Outline;

/// Arguments of `outline`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutlineArgs {
    /// The file.
    #[schemars(example = "src/package/module.py")]
    pub(super) path: String,
    /// Show only this class or function.
    #[schemars(extend("unlisted" = true))]
    pub(super) within: Option<String>,
    /// Only names that contain this.
    pub(super) name: Option<String>,
}

/// Classes and functions of a file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FileOutline {
    path: String,
    /// Total number of lines in the file.
    lines: usize,
    /// The definitions that the text lists.
    definitions: Vec<OutlinedDefinition>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct OutlinedDefinition {
    /// `function` or `Class.method`.
    name: String,
    /// First and last line, decorators included, counted from 1.
    first: usize,
    last: usize,
    signature: String,
}

impl From<&Definition> for OutlinedDefinition {
    fn from(definition: &Definition) -> Self {
        OutlinedDefinition {
            name: definition.qualified.clone(),
            first: definition.first,
            last: definition.last,
            signature: cut(&definition.signature, WIDTH),
        }
    }
}

impl Tool for Outline {
    type Args = OutlineArgs;
    type Data = FileOutline;
    const NAME: &'static str = "outline";
    const TITLE: &'static str = "Outline of a file";
    const DESCRIPTION: &'static str = "List the classes and functions of a Python file; of a test file also the fixtures that it may use.";
    const EFFECT: Effect = Effect::Reads;

    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>> {
        let relative = context.workspace.resolve_file(&args.path)?;
        let display_path = forward(&relative);
        let text = context.workspace.read_text(&relative)?;
        let module = Module::parse(text);
        let mut outline = module.outline();
        if let Some(within) = &args.within {
            outline = module.find(within);
            if outline.is_empty() {
                return Err(unknown(&module, &display_path, &plain_name(within)));
            }
        }
        let mut out = format!(
            "{display_path}, {}\n",
            count(module.text().lines().count(), "line")
        );
        if outline.is_empty() {
            out.push_str("No classes or functions.\n");
        }
        let mut lines = Vec::new();
        let mut definitions = Vec::new();
        if let Some(name) = args.name.as_deref().map(plain_name) {
            let lower_name = name.to_lowercase();
            definitions = flatten(&outline);
            definitions.retain(|d| d.qualified.to_lowercase().contains(&lower_name));
            lines.extend(definitions.iter().map(|d| line(d, &d.qualified)));
            if lines.is_empty() && !outline.is_empty() {
                return Err(unknown(&module, &display_path, &name));
            }
        } else {
            for definition in &outline {
                let inner = args.within.is_some();
                list(definition, 0, inner, &mut lines, &mut definitions);
            }
        }
        let listed_definitions = definitions.into_iter().take(MAX_SHOWN);
        let data = FileOutline {
            path: display_path,
            lines: module.text().lines().count(),
            definitions: listed_definitions.map(OutlinedDefinition::from).collect(),
        };
        out.push_str(&listed(&lines, MAX_SHOWN, |more| {
            format!(
                "… and {more} more; name a class with `within`, or a part of the names with `name`."
            )
        }));
        if args.within.is_none() && args.name.is_none() {
            out.push_str(&fixtures(context.workspace, &relative));
        }
        for error in module.errors().iter().take(3) {
            out.push_str(&format!("line {}: {}\n", error.line, error.what));
        }
        Ok(Reply::new(out, data))
    }
}

/// Formats the range, decorators and signature; `name` replaces the definition's own name.
fn line(definition: &Definition, name: &str) -> String {
    let decorators = definition.decorators.iter();
    let decorators: String = decorators.map(|d| short_decorator(d) + " ").collect();
    let own = format!(" {}", definition.name);
    let signature = definition.signature.replacen(&own, &format!(" {name}"), 1);
    let (first, last) = (definition.first, definition.last);
    format!("{first}-{last} {decorators}{}", cut(&signature, WIDTH))
}

/// Shortens a decorator: `parametrize` keeps its parameter names, others keep short arguments.
fn short_decorator(decorator: &str) -> String {
    let plain = decorator.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((name, arguments)) = plain.split_once('(') else {
        return plain;
    };
    if name.ends_with("parametrize") {
        let names = arguments
            .split(['[', ']', '(', ')'])
            .find(|part| !part.trim().is_empty());
        let is_name =
            |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
        let quoted = names.unwrap_or_default().split(['"', '\'']).enumerate();
        // Collect the text between quotation marks.
        let names: Vec<&str> = quoted
            .filter(|(at, _)| at % 2 == 1)
            .flat_map(|(_, text)| text.split(',').map(str::trim))
            .filter(is_name)
            .collect();
        if !names.is_empty() {
            return format!("@parametrize({})", names.join(", "));
        }
    }
    match plain.chars().count() > 60 {
        true => format!("{name}(…)"),
        false => plain,
    }
}

/// Lists the fixtures of the `conftest.py` files above a test file: name, position, first line of the docstring.
fn fixtures(workspace: &Workspace, relative: &Path) -> String {
    if !workspace.layout().is_test_path(&forward(relative)) {
        return String::new();
    }
    let mut lines = Vec::new();
    let mut seen = HashSet::new();
    for folder in relative.ancestors().skip(1) {
        let path = folder.join("conftest.py");
        if path == relative || !workspace.root().join(&path).is_file() {
            continue;
        }
        let Ok(text) = workspace.read_text(&path) else {
            continue;
        };
        let module = Module::parse(text);
        for definition in module.outline() {
            let is_fixture = |decorator: &String| {
                let name = decorator.split('(').next().unwrap_or_default();
                name.trim_end().ends_with("fixture")
            };
            // A nearer fixture hides one of the same name.
            if definition.decorators.iter().any(is_fixture) && seen.insert(definition.name.clone())
            {
                let doc = module.docstring(&definition);
                let doc = doc.as_ref().map_or("", |doc| doc.summary());
                let (name, line) = (&definition.name, definition.line);
                let mut line = format!("  {name} ({}:{line})", forward(&path));
                if !doc.is_empty() {
                    line.push_str(&format!(": {}", cut(doc, 80)));
                }
                lines.push(line);
            }
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    let more = lines.len().saturating_sub(FIXTURES);
    lines.truncate(FIXTURES);
    if more > 0 {
        lines.push(format!("  … and {more} more"));
    }
    format!("Fixtures from conftest.py:\n{}\n", lines.join("\n"))
}

fn list<'d>(
    definition: &'d Definition,
    depth: usize,
    inner_functions: bool,
    lines: &mut Vec<String>,
    definitions: &mut Vec<&'d Definition>,
) {
    let pad = "  ".repeat(depth);
    lines.push(format!("{pad}{}", line(definition, &definition.name)));
    definitions.push(definition);
    // Definitions inside functions are left out unless requested.
    if definition.kind == Kind::Class || inner_functions {
        for child in &definition.children {
            list(child, depth + 1, inner_functions, lines, definitions);
        }
    }
}

#[cfg(test)]
mod tests;
