//! The old code as Otter sees it: its files by kind, and their functions.

use std::collections::{BTreeSet, HashSet};

use testwright_agent_prompts::CodeFile;
use testwright_tools::python::{Module, flatten};

use crate::agent::{Flow, Run};
use crate::formats::OldFiles;
use crate::retrieval::{Index, tokens};

/// Maximum tokens of a list of files.
const LISTED: usize = 20_000;
/// Maximum lines of a function to show.
const LINES: usize = 200;

pub(super) struct Repository {
    files: Box<dyn OldFiles + Send + Sync>,
    /// Paths of all files.
    pub paths: BTreeSet<String>,
    /// Files with at least one test.
    pub tests: Vec<String>,
    /// Python files that are not tests.
    pub sources: Vec<String>,
}

/// A function, written `path::function`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FunctionName {
    pub path: String,
    pub function: String,
}

impl std::fmt::Display for FunctionName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}::{}", self.path, self.function)
    }
}

/// Returns whether a file is a test file, by its name and contents.
fn is_test_file(path: &str, text: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let has_test_name =
        name.starts_with("test") || name.ends_with("_test.py") || name.ends_with("_tests.py");
    let is_there = (path.split('/')).any(|part| ["tests", "test", "testing"].contains(&part));
    let has_test = |line: &str| {
        let line = line.trim_start().trim_start_matches("async ");
        line.trim_start().starts_with("def test")
    };
    (has_test_name || is_there) && text.lines().any(has_test)
}

impl Repository {
    /// Reads the repository. If not all files can be listed, the most relevant ones come first.
    pub(super) fn from_run(run: &Run) -> Flow<Repository> {
        let tree = run.tree()?;
        let index = Index::from_tree(&tree)?;
        let (mut tests, mut sources) = (Vec::new(), Vec::new());
        // Files that share no word with the issue come last.
        let ranked = index.ranked(&run.issue.folded_text());
        let mut seen_paths = HashSet::new();
        for file in ranked.into_iter().chain(index.files()) {
            if seen_paths.insert(file.path.as_str()) {
                let is_test = is_test_file(&file.path, &file.text);
                let kind = if is_test { &mut tests } else { &mut sources };
                kind.push(file.path.clone());
            }
        }
        let in_tests = |path: &String| {
            path.split('/')
                .any(|part| ["tests", "test"].contains(&part))
        };
        sources.retain(|path| !in_tests(path));
        Ok(Repository {
            paths: tree.paths().map(str::to_owned).collect(),
            files: Box::new(tree),
            tests: listed(tests),
            sources: listed(sources),
        })
    }

    pub(super) fn text(&self, path: &str) -> Option<String> {
        self.files.text(path)
    }

    /// Returns whether the file has tests, so that one may be added or changed.
    pub(super) fn is_test_file(&self, path: &str) -> bool {
        let text = self.text(path);
        text.is_some_and(|text| is_test_file(path, &text))
    }

    /// Returns the qualified names of a file's functions; for test files, only of its tests.
    pub(super) fn functions(&self, path: &str, tests: bool) -> Vec<String> {
        let module = Module::parse(self.text(path).unwrap_or_default());
        let outline = module.outline();
        let functions = flatten(&outline).into_iter().filter(|definition| {
            let is_function = definition.signature.starts_with("def ")
                || definition.signature.starts_with("async def ");
            is_function && (!tests || definition.name.starts_with("test"))
        });
        functions
            .map(|definition| definition.qualified.clone())
            .collect()
    }

    /// Returns the source of a function or class.
    pub(super) fn source(&self, name: &FunctionName) -> Option<CodeFile> {
        let module = Module::parse(self.text(&name.path)?);
        let definition = module.find(&name.function).into_iter().next()?;
        let lines: Vec<&str> = module.text().lines().collect();
        let last = (definition.last).min(definition.first + LINES - 1);
        let last = last.min(lines.len());
        Some(CodeFile {
            path: name.to_string(),
            text: lines[definition.first - 1..last].join("\n"),
        })
    }

    /// Returns the imports, classes and functions of a file, one line each.
    pub(super) fn structure(&self, path: &str) -> String {
        let module = Module::parse(self.text(path).unwrap_or_default());
        let imports = module.imports();
        let mut lines: Vec<String> = imports.iter().map(|import| import.source.clone()).collect();
        let outline = module.outline();
        for definition in flatten(&outline) {
            let indent = " ".repeat(definition.indent);
            lines.push(format!("{indent}{}", definition.signature));
        }
        lines.join("\n")
    }
}

/// Returns as many files as may be listed, sorted by path.
fn listed(files: Vec<String>) -> Vec<String> {
    let mut remaining_tokens = LISTED;
    let fits = |path: &String| {
        let tokens = tokens::count(path) + 1;
        let fits = tokens <= remaining_tokens;
        remaining_tokens = remaining_tokens.saturating_sub(tokens);
        fits
    };
    let mut files: Vec<String> = files.into_iter().take_while(fits).collect();
    files.sort();
    files
}

#[cfg(test)]
impl Repository {
    /// Creates a repository of these files, for tests.
    pub(super) fn of_files(files: &[(&str, &str)]) -> Repository {
        let old = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect::<std::collections::BTreeMap<String, String>>();
        let is_test = |path: &&String| is_test_file(path, &old[*path]);
        let (tests, sources) = old.keys().partition(is_test);
        let owned = |paths: Vec<&String>| paths.into_iter().cloned().collect();
        Repository {
            paths: old.keys().cloned().collect(),
            tests: owned(tests),
            sources: owned(sources),
            files: Box::new(old),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_files_have_name_and_tests() {
        for (path, text, is_test) in [
            ("tests/test_a.py", "def test_a(): pass", true),
            ("tests/test_a.py", "async def test_a(): pass", true),
            (
                "pkg/a_test.py",
                "class A:\n    async  def test_a(self): pass",
                true,
            ),
            ("tests/conftest.py", "def fixture(): pass", false),
            ("pkg/a.py", "def test_a(): pass", false),
        ] {
            assert_eq!(is_test_file(path, text), is_test, "{path}: {text}");
        }
    }
}
