//! The files that contain tests, by their names and by pytest's configuration.

mod names;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) use names::innermost;
use names::{TestNames, is_inside, is_named, name_pattern};
use regex::Regex;

use super::project_folders::{is_excluded, project_folders};
use super::{Files, ci, local_lines, text};
use crate::pattern::Pattern;
use crate::repository::Tree;
use crate::sandbox::Result;

/// Files that import the modules of a suite. Its runner collects those, whatever their names.
const SUITES: [&str; 5] = [
    "__init__.py",
    "__main__.py",
    "all.py",
    "run_tests.py",
    "runtests.py",
];

/// Scripts in the root that run the tests.
const SCRIPTS: [&str; 2] = ["run_tests.py", "runtests.py"];

/// The rest of an import statement, and of the path of a module of tests.
static IMPORTS: Pattern = Pattern::new(r"(?m)^\s*(?:from|import)\s(.*)|\btests?\.([\w.]+)");

static TEST_CODE: Pattern =
    Pattern::new(r"(?m)TestCase\)|^\s*(?:import|from)\s+(?:unittest|pytest|django\.test)\b");

/// A command that runs unittest, with the pattern for the names of files, if there is one.
static UNITTEST: Pattern =
    Pattern::new(r#"-m\s+unittest\b(?:[^\n]*?\s(?:-p|--pattern)[ =]*["']?([\w*?.-]+))?"#);

/// Returns the files that contain tests according to their names. If pytest is configured to search only some folders,
/// only files in those are returned.
///
/// `chosen` are the projects below the root: each can have its own configuration. Files of other projects are left out.
pub(crate) fn test_files(tree: &Tree, chosen: &[String]) -> Result<Vec<String>> {
    let names = TestNames::read(tree)?;
    let mut all: Vec<&str> = tree.paths().filter(|path| names.is_match(path)).collect();
    all.extend(otherwise_named(tree)?);
    all.sort_unstable();
    all.dedup();
    if !chosen.is_empty() {
        let mut others = project_folders(tree);
        others.retain(|folder| !is_excluded(folder));
        let is_chosen =
            |path: &&str| innermost(path, chosen).is_some() || innermost(path, &others).is_none();
        all = or_all(all.iter().copied().filter(is_chosen).collect(), all);
    }
    let configured = searched_paths(tree, chosen)?;
    let mut files = Vec::new();
    for (project, searched) in &configured {
        let is_own = |path: &&str| innermost(path, configured.keys()) == Some(project);
        let own: Vec<&str> = all.iter().copied().filter(is_own).collect();
        let is_searched = |path: &&str| searched.iter().any(|folder| is_inside(path, folder));
        files.extend(or_all(
            own.iter().copied().filter(is_searched).collect(),
            own,
        ));
    }
    files.sort_unstable();
    Ok(files.into_iter().map(str::to_owned).collect())
}

/// Returns the paths that pytest is configured to search, by the folder of the project. The root and chosen projects with
/// their own configuration have an entry, which is empty if pytest searches everything.
fn searched_paths(tree: &Tree, chosen: &[String]) -> Result<BTreeMap<String, Vec<String>>> {
    let mut configured = BTreeMap::new();
    for folder in [""].into_iter().chain(chosen.iter().map(String::as_str)) {
        let settings = Files::read(&tree.subtree(folder))?.pytest_settings();
        if folder.is_empty() || !settings.is_empty() {
            let setting = settings.iter().find(|(key, _)| key == "testpaths");
            let paths = setting.map_or("", |(_, paths)| paths.as_str());
            let paths = paths.split_whitespace().filter_map(|path| {
                let path = path.trim_matches(['"', '\'']);
                local_lines::join(folder, path)
            });
            configured.insert(folder.to_owned(), paths.collect());
        }
    }
    Ok(configured)
}

/// Returns some of the files, or all of them if there would be none.
fn or_all<'a>(some: Vec<&'a str>, all: Vec<&'a str>) -> Vec<&'a str> {
    if some.is_empty() { all } else { some }
}

/// Returns the files that define tests under a name that pytest does not expect: `tests.py`, as in tutorials of Flask and
/// Django, `test.py` in the root, those that unittest discovers, and modules in folders of tests that the repository's own
/// runner imports. If no file has an expected name, all modules with tests in such folders count.
fn otherwise_named(tree: &Tree) -> Result<Vec<&str>> {
    let has_expected = tree.paths().any(is_named);
    let by_scripts = imported_names(tree, "", &SCRIPTS)?;
    let by_unittest = unittest_patterns(tree)?;
    let mut by_suites: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut paths = Vec::new();
    let is_candidate = |path: &&str| path.ends_with(".py") && !is_named(path);
    for path in tree.paths().filter(is_candidate) {
        let (folder, name) = path.split_at(path.rfind('/').map_or(0, |slash| slash + 1));
        let is_in_suite = folder
            .split('/')
            .any(|part| matches!(part, "test" | "tests"))
            && !SUITES.contains(&name)
            && name != "conftest.py";
        let is_discovered = by_unittest.iter().any(|pattern| pattern.is_match(name));
        let is_usual = is_discovered || name == "tests.py" || path == "test.py";
        let mut is_collected = is_usual || is_in_suite && !has_expected;
        if is_in_suite && !is_collected {
            let by_suite = match by_suites.entry(folder) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(imported_names(tree, folder, &SUITES)?),
            };
            let module = name.trim_end_matches(".py");
            is_collected = by_suite.contains(module) || by_scripts.contains(module);
        }
        if !is_collected {
            continue;
        }
        let code = text(tree, path)?.unwrap_or_default();
        if TEST_CODE.is_match(&code) && code.contains("def test") {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// Returns the patterns of the file names that unittest collects, if the repository's commands run it and not pytest.
fn unittest_patterns(tree: &Tree) -> Result<Vec<Regex>> {
    let commands = ci::test_commands(tree)?;
    let runs_pytest = |text: &String| text.contains("pytest") || text.contains("py.test");
    if commands.iter().any(|(_, text)| runs_pytest(text)) {
        return Ok(Vec::new());
    }
    let calls = commands
        .iter()
        .flat_map(|(_, text)| UNITTEST.captures_iter(text));
    let patterns = calls.filter_map(|call| {
        let pattern = call.get(1).map_or("test*.py", |pattern| pattern.as_str());
        name_pattern(pattern)
    });
    Ok(patterns.collect())
}

/// Returns the names that files of a folder import. The folder is empty or ends with a slash.
fn imported_names(tree: &Tree, folder: &str, files: &[&str]) -> Result<BTreeSet<String>> {
    let is_separator = |c: char| !c.is_alphanumeric() && c != '_';
    let mut names = BTreeSet::new();
    for file in files {
        let code = text(tree, &format!("{folder}{file}"))?.unwrap_or_default();
        for captures in IMPORTS.captures_iter(&code) {
            for group in captures.iter().skip(1).flatten() {
                names.extend(group.as_str().split(is_separator).map(str::to_owned));
            }
        }
    }
    Ok(names)
}

/// Returns the patterns of the project's configuration, and whether they must be passed to pytest: the project can have
/// none, and test files with other names than pytest expects.
pub(super) fn patterns(tree: &Tree, files: &Files) -> Result<(Vec<String>, bool)> {
    let settings = files.pytest_settings();
    if let Some((_, patterns)) = settings.iter().find(|(key, _)| key == "python_files") {
        let patterns = patterns.split_whitespace().map(str::to_owned);
        return Ok((patterns.collect(), false));
    }
    let mut patterns = vec!["test_*.py".to_owned(), "*_test.py".to_owned()];
    let paths = otherwise_named(tree)?;
    for path in paths.iter().copied() {
        let pattern = match path.rsplit('/').next() {
            Some("tests.py") => "tests.py",
            _ => path,
        };
        let is_new = !patterns.iter().any(|other| other == pattern);
        if is_new && !pattern.contains([' ', '\'', '"', '\\', '[']) {
            patterns.push(pattern.to_owned());
        }
    }
    Ok((patterns, !paths.is_empty()))
}

/// Returns pytest's option for patterns of test files. It is one argument: before pytest 3.3, `-o` took every word up
/// to the next option.
pub(super) fn patterns_option(patterns: &[String]) -> String {
    format!("--override-ini=python_files={}", patterns.join(" "))
}
