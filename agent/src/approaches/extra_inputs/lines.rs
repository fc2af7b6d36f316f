//! Lines of the old code to write tests for, given as `FILE::FUNCTION` or `FILE:FIRST-LAST`.

use std::collections::{BTreeMap, BTreeSet};

use testwright_sandboxes::repository::Tree;
use testwright_tools::python::{Definition, Kind, Module, flatten, in_function};

use testwright_config::error::{Error, Result};

/// A range of lines in a file, numbered from 1, with both ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineRange {
    /// Path relative to the repository.
    pub path: String,
    /// Number of the first line.
    pub first: usize,
    /// Number of the last line.
    pub last: usize,
}

/// Resolves each target, in the same order.
///
/// # Errors
///
/// Fails if a target names no existing function or lines, or is ambiguous.
pub fn resolve(tree: &Tree, targets: &[String]) -> Result<Vec<LineRange>> {
    targets.iter().map(|target| range(tree, target)).collect()
}

/// Groups the line numbers by file.
pub fn by_file(ranges: &[LineRange]) -> BTreeMap<String, BTreeSet<u32>> {
    let mut lines: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for range in ranges {
        let numbers = (range.first..=range.last).filter_map(|line| u32::try_from(line).ok());
        lines.entry(range.path.clone()).or_default().extend(numbers);
    }
    lines
}

/// Returns the numbered lines as shown to a model, with one text per range, in the same order.
///
/// # Errors
///
/// Fails if a file cannot be read.
pub fn numbered(tree: &Tree, ranges: &[LineRange]) -> Result<Vec<String>> {
    let excerpt = |range: &LineRange| -> Result<String> {
        let module = module(tree, &range.path, &range.path)?;
        Ok(number(&module, range))
    };
    ranges.iter().map(excerpt).collect()
}

fn number(module: &Module, range: &LineRange) -> String {
    let lines = module.text().lines().enumerate().skip(range.first - 1);
    let lines = lines.take(range.last + 1 - range.first);
    let mut out = format!("{}, lines {}-{}", range.path, range.first, range.last);
    // A definition that starts within the lines is visible in them.
    let outline = module.outline();
    let around = in_function(&outline, range.first);
    if let Some(around) = around.filter(|around| around.first < range.first) {
        out.push_str(&format!(", in `{}`", around.qualified));
    }
    out.push(':');
    for (at, line) in lines {
        out.push_str(&format!("\n{:>5}  {line}", at + 1));
    }
    out
}

/// Returns the source of a test, `file::Class::function`, and the imports of its file.
///
/// # Errors
///
/// Fails if the test does not exist or is ambiguous, or its file cannot be read.
pub fn stub(tree: &Tree, test: &str) -> Result<Stub> {
    let (path, name) = test
        .split_once("::")
        .ok_or_else(|| wrong(test, "it names no function"))?;
    let module = module(tree, test, path)?;
    let function = definition(&module, test, path, name)?;
    let lines = module.text().lines().skip(function.first - 1);
    let source: Vec<&str> = lines.take(function.last + 1 - function.first).collect();
    let imports = module.imports().into_iter();
    Ok(Stub {
        imports: imports
            .filter(|import| import.top_level)
            .map(|import| import.source)
            .collect(),
        source: source.join("\n"),
    })
}

/// A test with a missing body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stub {
    /// Imports at the top of its file, one statement each.
    pub imports: Vec<String>,
    /// Source, with decorators.
    pub source: String,
}

fn range(tree: &Tree, target: &str) -> Result<LineRange> {
    if let Some((path, name)) = target.split_once("::") {
        let path = plain(path);
        let function = definition(&module(tree, target, &path)?, target, &path, name)?;
        return Ok(LineRange {
            path,
            first: function.line,
            last: function.last,
        });
    }
    let parts = target.rsplit_once(':').and_then(|(path, lines)| {
        let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
        Some((path, first.parse().ok()?, last.parse().ok()?))
    });
    let Some((path, first, last)) = parts else {
        return Err(wrong(target, "it names neither a function nor lines"));
    };
    let path = plain(path);
    let count = read(tree, target, &path)?.lines().count();
    if first == 0 || last < first || last > count {
        let cause = format!("{path} has the lines 1-{count}");
        return Err(wrong(target, cause));
    }
    Ok(LineRange { path, first, last })
}

/// Finds the only definition with this name, `Class::method` or `Class.method`.
fn definition(module: &Module, target: &str, path: &str, name: &str) -> Result<Definition> {
    let name = name.replace("::", ".");
    let mut matches = module.find(&name);
    match matches.as_slice() {
        [_] => Ok(matches.remove(0)),
        [] => {
            let outline = module.outline();
            let functions = flatten(&outline).into_iter();
            let functions = functions.filter(|function| function.kind == Kind::Function);
            let nearest = functions
                .min_by_key(|function| strsim::damerau_levenshtein(&name, &function.qualified));
            let nearest = nearest.map_or_else(String::new, |function| {
                format!("; the nearest is `{}`", function.qualified)
            });
            Err(wrong(target, format!("{path} has no `{name}`{nearest}")))
        }
        several => {
            let lines = several.iter().map(|candidate| candidate.line.to_string());
            let lines = lines.collect::<Vec<String>>().join(", ");
            let cause = format!("{path} defines `{name}` more than once (lines {lines})");
            Err(wrong(target, cause))
        }
    }
}

fn module(tree: &Tree, target: &str, path: &str) -> Result<Module> {
    Ok(Module::parse(read(tree, target, path)?))
}

fn plain(path: &str) -> String {
    path.trim_start_matches("./").to_owned()
}

fn read(tree: &Tree, target: &str, path: &str) -> Result<String> {
    if !path.ends_with(".py") {
        return Err(wrong(target, format!("{path} is not a Python file")));
    }
    match tree.text(path)? {
        Some(text) if !text.contains('\0') => Ok(text),
        Some(_) => Err(wrong(target, format!("{path} is not a text file"))),
        None => Err(wrong(target, format!("the repository has no file {path}"))),
    }
}

fn wrong(target: &str, cause: impl Into<String>) -> Error {
    Error::usage(format!("find the target `{target}`"))
        .cause(cause.into())
        .hint("write a function as pkg/mod.py::Class.method, or lines as pkg/mod.py:10-20")
}
