//! `read_function`: shows the source of a function or class by its qualified name.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::path::PathBuf;

use grep_regex::RegexMatcherBuilder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::line_numbers::{count, cut, lines_between, listed, plain};
use super::outline::{FileOutline, Outline, OutlineArgs};
use super::path_glob::path_glob;
use super::unknown_name::unknown;
use crate::python::{
    Assignment, Definition, Kind, Module, OuterNames, flatten, joined_imports, outer_names,
    plain_name,
};
use crate::tool::{Context, Effect, Reply, Result, Tool, ToolError, refusal};
use crate::workspace::{Workspace, forward};

const MAX_LINES: usize = 300;
/// A class with more lines is shown as its outline.
const CLASS_LINES: usize = 150;
const CANDIDATES: usize = 12;
/// Maximum number of module assignments that are shown, and lines of each.
const CONSTANTS: usize = 8;
const CONSTANT_LINES: usize = 15;
/// Number of lines from which on a docstring is cut in the middle, and number of lines that stay.
const DOCSTRING: usize = 15;
const DOCSTRING_KEPT: usize = 4;
/// Maximum number of the module's functions and classes that are named.
const DEFINITIONS: usize = 12;

/// A tool that shows the source of a function or class.
pub struct ReadFunction;

/// Arguments of `read_function`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadFunctionArgs {
    /// `function`, `Class.method` or `Class`.
    #[schemars(extend("plain" = true), example = "PreparedRequest.prepare_url")]
    name: Option<String>,
    /// The file; by default, any file.
    #[schemars(extend("plain" = true))]
    path: Option<String>,
}

/// A function or class, or without a name the outline of a file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReadDefinitions {
    /// The definitions of this name; several if a file has more than one.
    definitions: Vec<ReadDefinition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outline: Option<FileOutline>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ReadDefinition {
    path: String,
    /// `function` or `Class.method`.
    name: String,
    /// First and last line, decorators included, counted from 1.
    first: usize,
    last: usize,
    /// The complete source, even if the text shows only a part.
    source: String,
}

impl Tool for ReadFunction {
    type Args = ReadFunctionArgs;
    type Data = ReadDefinitions;
    const NAME: &'static str = "read_function";
    const TITLE: &'static str = "Read a function";
    const DESCRIPTION: &'static str = "Show a function or class (`Class.method`) and what of its file it uses. Without `name`: the outline of a file.";
    const EFFECT: Effect = Effect::Reads;

    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>> {
        let mut path = args.path.clone();
        let mut name = match (args.name.as_deref().map(str::trim), &path) {
            (Some(name), _) => name.to_owned(),
            (None, Some(path)) => {
                let outline = OutlineArgs {
                    path: path.clone(),
                    within: None,
                    name: None,
                };
                let Reply { text, data } = Tool::call(&Outline, context, outline)?;
                let data = ReadDefinitions {
                    definitions: Vec::new(),
                    outline: Some(data),
                };
                return Ok(Reply::new(text, data));
            }
            (None, None) => {
                return Err(ToolError::refused(
                    "Give the `name` of a function or class, or the `path` of a file for its outline.",
                ));
            }
        };
        let workspace = &*context.workspace;
        // Pytest node ids are accepted too.
        if let Some((file, rest)) = name.split_once("::")
            && file.ends_with(".py")
        {
            path = path.or_else(|| Some(file.to_owned()));
            name = rest.split('[').next().unwrap_or(rest).to_owned();
        }
        let name = plain_name(&name);
        match path {
            Some(path) => {
                let relative = workspace.resolve_file(&path)?;
                let module = Module::parse(workspace.read_text(&relative)?);
                let display_path = forward(&relative);
                let definitions = module.find(&name);
                if definitions.is_empty() {
                    return Err(unknown(&module, &display_path, &name));
                }
                Ok(read(&display_path, &module, &definitions))
            }
            None => anywhere(workspace, &name),
        }
    }
}

struct Candidate {
    path: String,
    module: Module,
    found: Vec<Definition>,
}

fn anywhere(workspace: &Workspace, name: &str) -> Result<Reply<ReadDefinitions>> {
    let last = name.rsplit('.').next().unwrap_or(name);
    let pattern = format!(
        r"^\s*(?:(?:async\s+)?def|class)\s+{}\b",
        regex::escape(last)
    );
    let matcher = RegexMatcherBuilder::new()
        .build(&pattern)
        .map_err(|e| ToolError::Broken(e.to_string()))?;
    let root = workspace.root();
    let glob = path_glob("*.py")?;
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut others: Vec<String> = Vec::new();
    for file in super::search::scan(root, root, &matcher, Some(&glob)) {
        let relative = PathBuf::from(&file.path);
        let Ok(text) = workspace.read_text(&relative) else {
            continue;
        };
        let module = Module::parse(text);
        let outline = module.outline();
        let dotted = file.path.trim_end_matches(".py").replace('/', ".");
        let dotted = dotted.trim_end_matches(".__init__").to_owned();
        let mut found = Vec::new();
        for definition in flatten(&outline).into_iter().filter(|d| d.name == last) {
            let full = format!(".{dotted}.{}", definition.qualified);
            if full.ends_with(&format!(".{name}")) {
                found.push(definition.clone());
            } else {
                others.push(definition.qualified.clone());
            }
        }
        if !found.is_empty() {
            candidates.push(Candidate {
                path: file.path,
                module,
                found,
            });
        }
    }
    // A complete name takes precedence over the end of a longer one.
    let is_complete = |d: &Definition| d.qualified == name;
    let mut found = candidates.iter().flat_map(|c| &c.found);
    if found.any(is_complete) {
        for candidate in &mut candidates {
            candidate.found.retain(is_complete);
        }
        candidates.retain(|c| !c.found.is_empty());
    }
    let distinct: HashSet<(&str, &str)> = (candidates.iter())
        .flat_map(|c| {
            c.found
                .iter()
                .map(|d| (c.path.as_str(), d.qualified.as_str()))
        })
        .collect();
    let distinct = distinct.len();
    match (distinct, candidates.first()) {
        (1, Some(only)) => Ok(read(&only.path, &only.module, &only.found)),
        (0, _) | (_, None) => {
            others.sort();
            others.dedup();
            others.truncate(5);
            let hint = match others.is_empty() {
                true => "`search` finds names in other roles.".to_owned(),
                false => format!("There is: {}.", others.join(", ")),
            };
            Err(refusal!(
                "Nothing in the repository defines `{name}`. {hint}"
            ))
        }
        _ => {
            let mut lines: Vec<String> = Vec::new();
            for candidate in &candidates {
                let path = &candidate.path;
                let places = candidate.found.iter();
                lines.extend(places.map(|d| format!("{path}:{}  {}", d.line, d.qualified)));
            }
            let lines = listed(&lines, CANDIDATES, |more| format!("… and {more} more"));
            Err(refusal!(
                "`{name}` is defined in {distinct} places; give `path` or a longer name:\n{lines}"
            ))
        }
    }
}

fn read(path: &str, module: &Module, definitions: &[Definition]) -> Reply<ReadDefinitions> {
    let definition = |definition: &Definition| ReadDefinition {
        path: path.to_owned(),
        name: definition.qualified.clone(),
        first: definition.first,
        last: definition.last,
        source: lines_between(module.text(), definition.first, definition.last),
    };
    let data = ReadDefinitions {
        definitions: definitions.iter().map(definition).collect(),
        outline: None,
    };
    Reply::new(show(path, module, definitions), data)
}

fn show(path: &str, module: &Module, definitions: &[Definition]) -> String {
    let mut out = String::new();
    for (at, definition) in definitions.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        let length = definition.last + 1 - definition.first;
        out.push_str(&format!(
            "{path}, {}, lines {}-{}\n",
            definition.qualified, definition.first, definition.last
        ));
        if definition.kind == Kind::Class && length > CLASS_LINES {
            out.push_str(&long_class(module, definition));
        } else {
            let last = definition.last.min(definition.first + MAX_LINES - 1);
            let docstring = module.docstring(definition);
            match docstring.map(|doc| (doc.first, doc.last)) {
                Some((start, end)) if end <= last && end + 1 - start > DOCSTRING => {
                    let last_kept = start + DOCSTRING_KEPT - 1;
                    out.push_str(&plain(module.text(), definition.first, last_kept));
                    let left_out = count(end - 1 - last_kept, "line");
                    out.push_str(&format!("… {left_out} of the docstring\n"));
                    out.push_str(&plain(module.text(), end, last));
                }
                _ => out.push_str(&plain(module.text(), definition.first, last)),
            }
            if last < definition.last {
                out.push_str(&format!(
                    "… {} more; continue with open_file path={path} first={}\n",
                    count(definition.last - last, "line"),
                    last + 1
                ));
            }
        }
    }
    let dependencies = ModuleDependencies::new(module, definitions);
    if !dependencies.imports.is_empty() {
        out.push_str("\nIts imports:\n");
        out.push_str(&(dependencies.imports.join("\n") + "\n"));
    }
    if !dependencies.constants.is_empty() {
        out.push_str("\nIts constants:\n");
        out.extend(dependencies.constants);
    }
    if !dependencies.definitions.is_empty() {
        out.push_str("\nIt also uses:\n");
        out.push_str(&dependencies.definitions);
    }
    out
}

/// Returns the head of a class up to its first method, and its members.
fn long_class(module: &Module, class: &Definition) -> String {
    let head = class
        .children
        .first()
        .map_or(class.line, |c| c.first - 1)
        .min(class.line + 40);
    let mut out = plain(module.text(), class.first, head.max(class.line));
    out.push_str("Members (a long class; read them by name):\n");
    for child in &class.children {
        out.push_str(&format!(
            "  {}-{} {}\n",
            child.first,
            child.last,
            cut(&child.signature, 160)
        ));
    }
    out
}

/// Names that the definitions use from their module: import statements, and lines with constants.
struct ModuleDependencies {
    imports: Vec<String>,
    constants: Vec<String>,
    /// Line and signature.
    definitions: String,
}

impl ModuleDependencies {
    fn new(module: &Module, targets: &[Definition]) -> Self {
        let mut names = OuterNames::default();
        for definition in targets {
            let more = outer_names(module, &definition.bytes);
            names.bound.extend(more.bound);
            names.others |= more.others;
        }
        let inside = |line: usize| targets.iter().any(|d| d.first <= line && line <= d.last);
        let outline = module.outline();
        let mut statements: Vec<String> = Vec::new();
        for import in module.imports().into_iter().filter(|i| !inside(i.first)) {
            if crate::python::in_function(&outline, import.first).is_some() {
                continue;
            }
            for binding in import.bindings {
                let statement = binding.statement();
                let is_needed = match binding.name.as_str() {
                    "*" => names.others,
                    _ => names.bound.contains(&binding.local),
                };
                if is_needed && !statements.contains(&statement) {
                    statements.push(statement);
                }
            }
        }
        let imports = joined_imports(&statements);
        let is_used = |a: &Assignment| a.names.iter().any(|name| names.bound.contains(name));
        let all = module.assignments();
        let used: Vec<&Assignment> = all.iter().filter(|a| is_used(a)).collect();
        let mut constants: Vec<String> = used
            .iter()
            .take(CONSTANTS)
            .map(|a| {
                let last = a.last.min(a.first + CONSTANT_LINES - 1);
                let mut text = plain(module.text(), a.first, last);
                if last < a.last {
                    text.push_str(&format!("… {}\n", count(a.last - last, "more line")));
                }
                text
            })
            .collect();
        if used.len() > CONSTANTS {
            let names: Vec<String> = used[CONSTANTS..]
                .iter()
                .flat_map(|a| a.names.clone())
                .take(CONSTANTS)
                .collect();
            constants.push(format!(
                "… and {} more: {}\n",
                used.len() - CONSTANTS,
                names.join(", ")
            ));
        }
        let is_around = |d: &Definition| {
            let mut targets = targets.iter();
            targets.any(|f| d.first <= f.first && f.last <= d.last)
        };
        let used = outline
            .iter()
            .filter(|d| names.bound.contains(&d.name) && !is_around(d));
        let lines = used.map(|d| format!("{} {}", d.line, cut(&d.signature, 120)));
        let lines: Vec<String> = lines.collect();
        let definitions = listed(&lines, DEFINITIONS, |more| format!("… and {more} more"));
        ModuleDependencies {
            imports,
            constants,
            definitions,
        }
    }
}
