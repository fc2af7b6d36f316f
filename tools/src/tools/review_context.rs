//! `review_context`: finds code that a reviewer of a submission should see beside the change, for the host.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::outcomes::files_of;
use crate::python::{Definition, Excerpt, Kind, Module, used_code};
use crate::tool::{Audience, Context, Effect, Reply, Result, Tool};
use crate::workspace::{FileChange, Workspace, added_lines, decode_source};

/// Maximum lines of one excerpt, and of all excerpts of a kind.
const MAX_LINES: usize = 28;
const ALL_LINES: usize = 120;
/// Number of docstring lines that stay, not counting the last one.
const DOCSTRING: usize = 2;
/// Lines before a place in a function that is longer than [`MAX_LINES`], and of the head of a class.
const BEFORE: usize = 16;

/// A tool that returns code for the reviewer of a submission, for the host.
pub struct ReviewContext;

/// Arguments of `review_context`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewContextArgs {
    /// Node ids of tests, without parameters.
    tests: Vec<String>,
    /// Places whose enclosing functions to show.
    places: Vec<SourceLine>,
}

/// A line of a file, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceLine {
    /// Path relative to the workspace.
    pub path: String,
    /// Line number, from 1.
    pub line: usize,
}

/// Code that a reviewer should see beside a change.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Excerpts {
    /// Code of their files that the tests use and the change does not show.
    pub used: Vec<Excerpt>,
    /// The functions around the places, each once.
    pub functions: Vec<Excerpt>,
}

impl Tool for ReviewContext {
    type Args = ReviewContextArgs;
    type Data = Excerpts;
    const NAME: &'static str = "review_context";
    const DESCRIPTION: &'static str =
        "The code of their files that tests use, and the functions around places.";
    const AUDIENCE: Audience = Audience::Host;
    const EFFECT: Effect = Effect::Reads;

    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>> {
        let changes = context.workspace.changes()?;
        let excerpts = Excerpts {
            used: used(context.workspace, &changes, &args.tests),
            functions: functions(context.workspace, &args.places),
        };
        let text = format!(
            "{} excerpts.",
            excerpts.used.len() + excerpts.functions.len()
        );
        Ok(Reply::new(text, excerpts))
    }
}

fn used(workspace: &Workspace, changes: &[FileChange], tests: &[String]) -> Vec<Excerpt> {
    let mut excerpts = Vec::new();
    for file in files_of(tests) {
        let change = changes.iter().find(|change| change.path == file);
        let Some(now) = change.and_then(|change| change.now.as_deref()) else {
            continue;
        };
        let now = decode_source(now);
        let base = change.and_then(|change| change.base.as_deref());
        let added = added_lines(&decode_source(base.unwrap_or_default()), &now);
        let prefix = format!("{file}::");
        let ids: Vec<&str> = tests
            .iter()
            .filter_map(|id| id.strip_prefix(&prefix))
            .collect();
        let all = used_code(&file, &now, &ids, workspace.layout());
        excerpts.extend(all.into_iter().filter(|excerpt| {
            let mut lines = excerpt.line..excerpt.line + excerpt.source.lines().count();
            !lines.all(|line| added.contains(&line))
        }));
    }
    for excerpt in &mut excerpts {
        shorten(excerpt);
    }
    bounded(excerpts)
}

/// Returns one excerpt for each function, in the order of their first places.
fn functions(workspace: &Workspace, places: &[SourceLine]) -> Vec<Excerpt> {
    let mut files: Vec<&str> = Vec::new();
    for place in places {
        if !files.contains(&place.path.as_str()) {
            files.push(&place.path);
        }
    }
    let of_file = |path: &str| {
        let text = workspace.resolve_file(path);
        let module = Module::parse(text.and_then(|path| workspace.read_text(&path)).ok()?);
        let places = places.iter().filter(|place| place.path == path);
        let lines: Vec<usize> = places.map(|place| place.line).collect();
        Some(in_file(path, &module, &lines))
    };
    bounded(files.into_iter().filter_map(of_file).flatten().collect())
}

fn in_file(path: &str, module: &Module, places: &[usize]) -> Vec<Excerpt> {
    let outline = module.outline();
    // Group by enclosing function; places outside of functions belong to the module.
    let mut groups: Vec<(Option<&Definition>, BTreeSet<usize>)> = Vec::new();
    for place in places {
        let definition = outermost_function(&outline, *place);
        let mut numbers = around(module, &outline, definition, *place);
        if definition.is_some_and(|definition| definition.kind == Kind::Function) {
            numbers.extend(class_lines(&outline, *place));
        }
        let first = |definition: Option<&Definition>| definition.map(|definition| definition.first);
        match groups
            .iter_mut()
            .find(|(other, _)| first(*other) == first(definition))
        {
            Some((_, shown_lines)) if shown_lines.contains(place) => {}
            Some((_, shown_lines)) => shown_lines.extend(numbers),
            None => groups.push((definition, numbers.into_iter().collect())),
        }
    }
    let excerpts = groups.iter().filter(|(_, numbers)| !numbers.is_empty());
    excerpts
        .map(|(definition, numbers)| excerpt(path, module, *definition, numbers))
        .collect()
}

/// Returns the outermost function around a line, or else the innermost class.
fn outermost_function(outline: &[Definition], line: usize) -> Option<&Definition> {
    let outer = outline.iter().find(|d| d.first <= line && line <= d.last)?;
    match outer.kind {
        Kind::Function => Some(outer),
        Kind::Class => outermost_function(&outer.children, line).or(Some(outer)),
    }
}

/// Returns the line numbers of the `class` statements around a line.
fn class_lines(outline: &[Definition], line: usize) -> Vec<usize> {
    let class = outline
        .iter()
        .find(|d| d.kind == Kind::Class && d.first <= line && line <= d.last);
    class.map_or_else(Vec::new, |class| {
        let mut lines = class_lines(&class.children, line);
        lines.push(class.line);
        lines
    })
}

/// Returns the line numbers of the decorators and the signature.
fn head(module: &Module, definition: &Definition) -> RangeInclusive<usize> {
    let before_body = &module.text().as_bytes()[..definition.body.start];
    let last = before_body.iter().filter(|byte| **byte == b'\n').count();
    definition.first..=last.clamp(definition.line, definition.line + MAX_LINES)
}

/// Returns the line numbers to show. For a function, its lines without the middle of its docstring, or at most
/// [`MAX_LINES`] with its head and those around the place. For a class or a module, the lines around the place.
fn around(
    module: &Module,
    outline: &[Definition],
    definition: Option<&Definition>,
    place: usize,
) -> Vec<usize> {
    let near = (place.saturating_sub(BEFORE / 3).max(1), place + BEFORE / 3);
    let Some(definition) = definition else {
        let lines: Vec<&str> = module.text().lines().collect();
        // The space between two functions has nothing to show.
        let is_blank = place == 0
            || lines
                .get(place - 1)
                .is_none_or(|line| line.trim().is_empty());
        let last = if is_blank { 0 } else { near.1.min(lines.len()) };
        // Functions and classes get their own excerpts.
        let is_defined = |n: &usize| outline.iter().any(|d| d.first <= *n && *n <= d.last);
        let above = (near.0..place).rev().take_while(|n| !is_defined(n));
        let below = (place..=last).take_while(|n| !is_defined(n));
        return above.chain(below).collect();
    };
    let (first, last) = match definition.kind {
        Kind::Function => (definition.first, definition.last),
        Kind::Class => (definition.first.max(near.0), definition.last.min(near.1)),
    };
    let docstring = module.docstring(definition);
    let left_out = match docstring.map(|doc| doc.first + DOCSTRING..doc.last) {
        Some(middle) if !middle.contains(&place) => middle,
        _ => 0..0,
    };
    let all: Vec<usize> = (first..=last).filter(|n| !left_out.contains(n)).collect();
    let at = all.iter().position(|number| *number == place);
    let start = at.unwrap_or_default().saturating_sub(BEFORE);
    let start = start.min(all.len().saturating_sub(MAX_LINES));
    let head = head(module, definition);
    let is_kept = |(at, number): &(usize, &usize)| {
        head.contains(number) || (start..start + MAX_LINES).contains(at)
    };
    let kept_lines = all.iter().enumerate().filter(is_kept);
    kept_lines.map(|(_, number)| *number).collect()
}

/// Builds an excerpt of these lines, with `…` in place of the others.
fn excerpt(
    path: &str,
    module: &Module,
    definition: Option<&Definition>,
    numbers: &BTreeSet<usize>,
) -> Excerpt {
    let text: Vec<&str> = module.text().lines().collect();
    let mut lines: Vec<&str> = Vec::new();
    let mut before = None;
    for number in numbers {
        if before.is_some_and(|before| before + 1 < *number) {
            lines.push("    …");
        }
        before = Some(*number);
        lines.extend(text.get(number - 1));
    }
    let function = definition.filter(|definition| definition.kind == Kind::Function);
    if function.is_some_and(|function| before < Some(function.last)) {
        lines.push("    …");
    }
    Excerpt {
        path: path.to_owned(),
        line: numbers.first().copied().unwrap_or(1),
        source: lines.join("\n"),
    }
}

/// Shortens an excerpt to at most [`MAX_LINES`].
fn shorten(excerpt: &mut Excerpt) {
    let lines: Vec<&str> = excerpt.source.lines().collect();
    if lines.len() > MAX_LINES {
        excerpt.source = format!("{}\n    …", lines[..MAX_LINES].join("\n"));
    }
}

fn bounded(mut excerpts: Vec<Excerpt>) -> Vec<Excerpt> {
    let mut lines = 0;
    excerpts.retain(|excerpt| {
        lines += excerpt.source.lines().count();
        lines <= ALL_LINES
    });
    excerpts
}

#[cfg(test)]
mod tests;
