//! The searches that AutoCodeRover offers, as calls written in text.

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use testwright_sandboxes::Pattern;
use testwright_sandboxes::repository::Tree;
use testwright_tools::python::{Definition, Module, flatten};

use crate::agent::Flow;
use crate::retrieval::Index;

/// Maximum results shown in full; of the others, only the places are listed.
const WHOLE: usize = 3;
/// Maximum lines of one result.
const LINES: usize = 150;
const ABOUT: usize = 3;
/// Maximum places to list.
const PLACES: usize = 30;
/// Maximum calls to run in one round.
pub(super) const MAX_CALLS: usize = 5;

/// A call such as `search_method_in_class("save", "Model")`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SearchCall {
    name: String,
    arguments: Vec<String>,
}

impl fmt::Display for SearchCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted: Vec<String> = (self.arguments.iter())
            .map(|argument| {
                let argument = argument.replace('\n', "\\n");
                format!("\"{}\"", argument.replace('"', "\\\""))
            })
            .collect();
        write!(f, "{}({})", self.name, quoted.join(", "))
    }
}

/// Returns the distinct calls in a reply.
pub(super) fn calls(reply: &str) -> Vec<SearchCall> {
    const TEXT: &str = r#""((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'"#;
    static TEXTS: Pattern = Pattern::new(TEXT);
    static CALLED: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(&format!(
            r"\b(search_\w+)\s*\(((?:\s*(?:\w+\s*=\s*)?(?:{TEXT})\s*,?)+)\)"
        ))
        .ok()
    });
    let Some(called) = CALLED.as_ref() else {
        return Vec::new();
    };
    let mut search_calls: Vec<SearchCall> = Vec::new();
    for written in called.captures_iter(reply) {
        let argument = |part: regex::Captures<'_>| {
            let text = part.get(1).or_else(|| part.get(2));
            let text = text.map_or("", |text| text.as_str());
            text.replace("\\n", "\n")
                .replace("\\\"", "\"")
                .replace("\\'", "'")
        };
        let call = SearchCall {
            name: written[1].to_owned(),
            arguments: TEXTS.captures_iter(&written[2]).map(argument).collect(),
        };
        if !search_calls.contains(&call) {
            search_calls.push(call);
        }
    }
    search_calls
}

/// The Python files of the old code, with test files last.
pub(super) struct CodeSearch {
    files: Vec<SearchedFile>,
}

struct SearchedFile {
    path: String,
    text: String,
    outline: Vec<Definition>,
}

/// A piece of a file.
struct Hit<'f> {
    file: &'f SearchedFile,
    first: usize,
    last: usize,
    /// Enclosing class or function, unless the piece is one itself.
    within: Option<String>,
    /// Numbers of the matching lines.
    matches: Vec<usize>,
}

impl CodeSearch {
    pub(super) fn from_tree(tree: &Tree) -> Flow<Self> {
        let index = Index::from_tree(tree)?;
        let files = index.files().iter().map(|file| SearchedFile {
            outline: Module::parse(file.text.clone()).outline(),
            path: file.path.clone(),
            text: file.text.clone(),
        });
        Ok(CodeSearch::of_files(files.collect()))
    }

    fn of_files(mut files: Vec<SearchedFile>) -> Self {
        // Look for the code of the issue first, and for its tests after that.
        files.sort_by_key(|file| is_test_path(&file.path));
        CodeSearch { files }
    }

    /// Returns the result of a call, for the model.
    pub(super) fn answer(&self, call: &SearchCall) -> String {
        let hits = match (call.name.as_str(), call.arguments.as_slice()) {
            ("search_class", [name]) => self.definitions(name, None, None, true),
            ("search_class_in_file", [name, file]) => {
                self.definitions(name, None, Some(file), true)
            }
            ("search_class_signature", [name]) => return self.signatures(call, name),
            ("search_method", [name]) => self.definitions(name, None, None, false),
            ("search_method_in_class", [name, class]) => {
                self.definitions(name, Some(class), None, false)
            }
            ("search_method_in_file", [name, file]) => {
                self.definitions(name, None, Some(file), false)
            }
            ("search_code", [code]) => self.lines(code, None),
            ("search_code_in_file", [code, file]) => self.lines(code, Some(file)),
            _ => return format!("{call}: no search has this name and number of arguments"),
        };
        self.format_hits(call, &hits)
    }

    fn in_files<'f>(
        &'f self,
        file_name: Option<&'f String>,
    ) -> impl Iterator<Item = &'f SearchedFile> + 'f {
        let fits = move |path: &str| {
            file_name.is_none_or(|file_name| {
                let suffix = file_name.trim_start_matches("./");
                path.strip_suffix(suffix)
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
            })
        };
        self.files.iter().filter(move |file| fits(&file.path))
    }

    /// Finds classes, or functions and methods.
    fn definitions<'f>(
        &'f self,
        name: &str,
        class: Option<&String>,
        file: Option<&'f String>,
        classes: bool,
    ) -> Vec<Hit<'f>> {
        let mut hits = Vec::new();
        for file in self.in_files(file) {
            for definition in flatten(&file.outline) {
                let is_class = definition.signature.starts_with("class ");
                let parent = definition.qualified.rsplit_once('.');
                let parent = parent.map(|(parent, _)| parent);
                let in_class = class.is_none_or(|class| {
                    parent.is_some_and(|p| p == class || p.ends_with(&format!(".{class}")))
                });
                if definition.name == name && is_class == classes && in_class {
                    hits.push(Hit {
                        file,
                        first: definition.first,
                        last: definition.last,
                        within: parent.map(str::to_owned),
                        matches: vec![definition.line],
                    });
                }
            }
        }
        hits
    }

    /// Finds lines that contain a piece of code, with their context.
    fn lines<'f>(&'f self, code: &str, file: Option<&'f String>) -> Vec<Hit<'f>> {
        let needle = code.lines().map(str::trim).find(|line| !line.is_empty());
        let Some(needle) = needle else {
            return Vec::new();
        };
        let mut hits: Vec<Hit<'f>> = Vec::new();
        for file in self.in_files(file) {
            let all = file.text.lines().count();
            for (at, line) in file.text.lines().enumerate() {
                if line.contains(needle) {
                    let number = at + 1;
                    let first = number.saturating_sub(ABOUT).max(1);
                    let last = (number + ABOUT).min(all);
                    // Adjacent lines form one piece.
                    if let Some(before) = hits.last_mut()
                        && std::ptr::eq(before.file, file)
                        && first <= before.last + 1
                    {
                        before.last = last;
                        before.matches.push(number);
                        continue;
                    }
                    let flat = flatten(&file.outline);
                    let contains = |d: &&&Definition| (d.first..=d.last).contains(&number);
                    let within = flat.iter().rev().find(contains);
                    hits.push(Hit {
                        file,
                        first,
                        last,
                        within: within.map(|d| d.qualified.clone()),
                        matches: vec![number],
                    });
                }
            }
        }
        hits
    }

    /// Returns a class with the first lines of its methods.
    fn signatures(&self, call: &SearchCall, name: &str) -> String {
        let mut text = String::new();
        for file in &self.files {
            let all = flatten(&file.outline);
            let is_class = |d: &&&Definition| d.name == name && d.signature.starts_with("class ");
            for class in all.iter().filter(is_class) {
                text.push_str(&format!(
                    "<file>{}</file> lines {}-{}\n",
                    file.path, class.first, class.last
                ));
                for inner in all
                    .iter()
                    .filter(|d| (class.first..=class.last).contains(&d.first))
                {
                    let indent = " ".repeat(inner.indent);
                    text.push_str(&format!("{indent}{}\n", inner.signature));
                }
            }
        }
        match text.is_empty() {
            true => format!("{call}: nothing found"),
            false => format!("{call}:\n{text}"),
        }
    }

    fn format_hits(&self, call: &SearchCall, hits: &[Hit<'_>]) -> String {
        if hits.is_empty() {
            return format!("{call}: nothing found");
        }
        let places = hits.len();
        let mut text = match hits.iter().map(|hit| hit.matches.len()).sum::<usize>() {
            lines if lines == places => format!("{call}: {places} found\n"),
            lines if places == 1 => format!("{call}: {lines} lines found, next to each other\n"),
            lines => format!("{call}: {lines} lines found, in {places} places\n"),
        };
        for hit in hits.iter().take(WHOLE) {
            text.push_str(&format!(
                "<file>{}</file> lines {}-{}",
                hit.file.path, hit.first, hit.last
            ));
            if let Some(within) = &hit.within {
                text.push_str(&format!(" in {within}"));
            }
            let lines: Vec<&str> = hit.file.text.lines().collect();
            let last = hit.last.min(hit.first + LINES - 1).min(lines.len());
            let cut = if last < hit.last { "\n… (cut)" } else { "" };
            let code = lines[hit.first - 1..last].join("\n");
            text.push_str(&format!("\n<code>\n{code}{cut}\n</code>\n"));
        }
        let place = |hit: &Hit<'_>| {
            let lines: Vec<String> = hit.matches.iter().map(usize::to_string).collect();
            let at = format!("{}:{}", hit.file.path, lines.join(","));
            match &hit.within {
                Some(within) => format!("{at} in {within}"),
                None => at,
            }
        };
        let others = hits.iter().skip(WHOLE).take(PLACES);
        let others: Vec<String> = others.map(place).collect();
        if !others.is_empty() {
            let more = match hits.len() > WHOLE + PLACES {
                true => ", …",
                false => "",
            };
            text.push_str(&format!("also in {}{more}\n", others.join(", ")));
        }
        text
    }
}

fn is_test_path(path: &str) -> bool {
    let is_test = |part: &str| {
        let name = part.trim_end_matches(".py");
        ["test", "tests", "testing", "conftest"].contains(&name)
            || name.starts_with("test_")
            || name.ends_with("_test")
            || name.ends_with("_tests")
    };
    path.split('/').any(is_test)
}

#[cfg(test)]
mod tests;
