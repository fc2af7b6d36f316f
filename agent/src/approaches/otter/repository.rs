//! What Otter asks of the old code: its files by kind, and their functions.

use std::collections::{BTreeSet, HashSet};

use testwright_agent_prompts::CodeFile;
use testwright_tools::python::{Module, flatten};

use crate::agent::{Flow, Run};
use crate::formats::OldFiles;
use crate::retrieval::{Index, tokens};

/// Tokens that a list of files may take.
const LISTED: usize = 20_000;
/// Lines of a function that are shown.
const LINES: usize = 200;

pub struct Repository {
    files: Box<dyn OldFiles + Send + Sync>,
    /// Of all files.
    pub paths: BTreeSet<String>,
    /// With at least one test.
    pub tests: Vec<String>,
    /// Python files that are no tests.
    pub sources: Vec<String>,
}

/// `path::function`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionName {
    pub path: String,
    pub function: String,
}

impl std::fmt::Display for FunctionName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}::{}", self.path, self.function)
    }
}

/// By name and by what it holds.
fn is_test_file(path: &str, text: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_named =
        name.starts_with("test") || name.ends_with("_test.py") || name.ends_with("_tests.py");
    let is_there = path
        .split('/')
        .any(|part| part == "tests" || part == "test" || part == "testing");
    (is_named || is_there)
        && text
            .lines()
            .map(|line| line.trim_start().trim_start_matches("async "))
            .any(|line| line.trim_start().starts_with("def test"))
}

impl Repository {
    /// The most relevant files first, where not all can be listed.
    pub fn of(run: &Run) -> Flow<Repository> {
        let tree = run.tree()?;
        let index = Index::of(&tree).map_err(crate::agent::infrastructure)?;
        let (mut tests, mut sources) = (Vec::new(), Vec::new());
        // What shares no word with the issue comes last.
        let ranked = index.ranked(&run.issue.folded_text());
        let mut seen = HashSet::new();
        for file in ranked.into_iter().chain(index.files()) {
            if seen.insert(file.path.as_str()) {
                let is_test = is_test_file(&file.path, &file.text);
                let kind = if is_test { &mut tests } else { &mut sources };
                kind.push(file.path.clone());
            }
        }
        let in_tests = |path: &String| {
            path.split('/')
                .any(|part| part == "tests" || part == "test")
        };
        sources.retain(|path| !in_tests(path));
        Ok(Repository {
            paths: tree.paths().map(str::to_owned).collect(),
            files: Box::new(tree),
            tests: listed(tests),
            sources: listed(sources),
        })
    }

    pub fn text(&self, path: &str) -> Option<String> {
        self.files.text(path)
    }

    /// A file with tests, where one may be written or changed.
    pub fn is_test_file(&self, path: &str) -> bool {
        let text = self.text(path);
        text.is_some_and(|text| is_test_file(path, &text))
    }

    /// Qualified names of the functions of a file; of a test file of its tests alone.
    pub fn functions(&self, path: &str, tests: bool) -> Vec<String> {
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

    /// The source of a function or class.
    pub fn source(&self, name: &FunctionName) -> Option<CodeFile> {
        let module = Module::parse(self.text(&name.path)?);
        let found = module.find(&name.function).into_iter().next()?;
        let lines: Vec<&str> = module.text().lines().collect();
        let last = found.last.min(found.first + LINES - 1).min(lines.len());
        Some(CodeFile {
            path: name.to_string(),
            text: lines[found.first - 1..last].join("\n"),
        })
    }

    /// Imports, classes and functions of a file, one line each.
    pub fn structure(&self, path: &str) -> String {
        let module = Module::parse(self.text(path).unwrap_or_default());
        let imports = module.imports();
        let mut lines: Vec<String> = imports.iter().map(|import| import.source.clone()).collect();
        let outline = module.outline();
        for definition in flatten(&outline) {
            lines.push(format!(
                "{}{}",
                " ".repeat(definition.indent),
                definition.signature
            ));
        }
        lines.join("\n")
    }
}

/// Sorted by path, as many as may be listed.
fn listed(files: Vec<String>) -> Vec<String> {
    let mut left = LISTED;
    let fits = |path: &String| {
        let tokens = tokens::count(path) + 1;
        let fits = tokens <= left;
        left = left.saturating_sub(tokens);
        fits
    };
    let mut files: Vec<String> = files.into_iter().take_while(fits).collect();
    files.sort();
    files
}

#[cfg(test)]
impl Repository {
    /// Of these files, for tests.
    pub fn of_files(files: &[(&str, &str)]) -> Repository {
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
    fn files_of_tests_are_told_by_name_and_content() {
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
