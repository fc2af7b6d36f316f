//! Finds changed files in test folders that the code under test uses, so that their change affects the tested code:
//! `numpy/testing`, `django/test`, but not `astropy/table/tests`.
//!
//! A folder named for tests belongs to the code under test if a module outside of such folders imports from it. It also
//! does if such a module names it as in imports by name (`"pkg.testing"`, or `"testing"` in the same package). Modules
//! in folders that already belong to the code count too. A test file belongs to the code if it is itself imported, or if
//! its name is not one of tests and the project's metadata run it as a program. The search does not find names built at
//! run time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::python::{Module, package_start};
use crate::workspace::{
    Change, FileChange, Layout, Workspace, decode_source, is_at_or_below, is_conftest,
};

/// Top-level folders whose modules are not installed.
const SCRIPT_FOLDERS: &[&str] = &[
    "bench",
    "benchmarks",
    "bin",
    "ci",
    "doc",
    "docs",
    "example",
    "examples",
    "scripts",
    "tools",
];

/// A folder or test file that may be imported.
struct Target {
    /// Path without `.py`.
    path: String,
    is_folder: bool,
    /// Minimum number of last parts of `path` that form an importable name.
    min_parts: usize,
}

/// Returns the paths of such changes.
pub(super) fn used_by_code(workspace: &Workspace, changes: &[FileChange]) -> BTreeSet<String> {
    let layout = workspace.layout();
    let is_changed_test =
        |c: &&FileChange| c.change == Change::Modified && layout.is_test_file(&c.path);
    let in_folder = |c: &&FileChange| {
        !layout.is_test_file(&c.path) && !is_conftest(&c.path) && layout.in_test_folder(&c.path)
    };
    let tests: Vec<&FileChange> = changes.iter().filter(is_changed_test).collect();
    let others: Vec<&FileChange> = changes.iter().filter(in_folder).collect();
    if tests.is_empty() && others.is_empty() {
        return BTreeSet::new();
    }
    let files = workspace.files();
    let mut targets: Vec<Target> = (tests.iter())
        .filter_map(|change| change.path.strip_suffix(".py"))
        .map(|path| Target::new(path, false, workspace))
        .collect();
    if !others.is_empty() {
        let folders: BTreeSet<&str> = files
            .iter()
            .filter_map(|path| folder_of_tests(path, layout))
            .collect();
        let folders = folders.into_iter();
        targets.extend(folders.map(|path| Target::new(path, true, workspace)));
    }
    let texts = texts(workspace, &files, &targets);
    let mut reached = reached(&targets, &texts, layout);
    let metadata = metadata(workspace);
    let is_named = |target: &&Target| {
        layout.is_unclear(&format!("{}.py", target.path)) && target.is_named_in(&metadata)
    };
    let modules = targets.iter().filter(|target| !target.is_folder);
    reached.extend(modules.filter(is_named).map(|target| target.path.as_str()));
    let tests = tests.into_iter().filter(|change| {
        let path = change.path.strip_suffix(".py").unwrap_or_default();
        reached.contains(path)
    });
    let others = others.into_iter().filter(|change| {
        folder_of_tests(&change.path, layout).is_some_and(|folder| reached.contains(folder))
    });
    tests
        .chain(others)
        .map(|change| change.path.clone())
        .collect()
}

/// Returns the project's metadata, which name the modules that are run as programs.
fn metadata(workspace: &Workspace) -> String {
    let files = ["pyproject.toml", "setup.cfg", "setup.py"];
    let texts = files.map(|file| workspace.read_text(Path::new(file)).unwrap_or_default());
    texts.join("\n")
}

/// Returns the outermost parent folder of the file that is named for tests.
fn folder_of_tests<'a>(path: &'a str, layout: &Layout) -> Option<&'a str> {
    let ends = path.match_indices('/').map(|(at, _)| at);
    ends.map(|end| &path[..end])
        .find(|folder| layout.in_test_folder(&format!("{folder}/x")))
}

/// A module that may refer to a target.
struct Text {
    path: String,
    text: String,
    /// Imported modules, as paths from an unknown root.
    absolute: Vec<String>,
    /// Imported modules, as paths from the root of the repository.
    relative: Vec<String>,
}

/// Reads the Python modules that are code, or are support modules in test folders, if they mention one of the targets.
fn texts(workspace: &Workspace, files: &[String], targets: &[Target]) -> Vec<Text> {
    let layout = workspace.layout();
    let names: BTreeSet<&str> = targets.iter().map(Target::name).collect();
    let is_code = |path: &&String| {
        let is_python = path.ends_with(".py");
        is_python && !layout.is_test_file(path) && !is_conftest(path) && !is_script(path)
    };
    let text = |path: &String| {
        // An unreadable file cannot be imported either.
        let text = decode_source(&workspace.read(Path::new(path)).ok()?);
        let is_naming = names.iter().any(|name| text.contains(name));
        is_naming.then(|| Text::new(path, text))
    };
    files.iter().filter(is_code).filter_map(text).collect()
}

/// Returns whether a file is a script beside the code, which is never imported.
pub(super) fn is_script(path: &str) -> bool {
    match path.split_once('/') {
        Some((folder, _)) => SCRIPT_FOLDERS.contains(&folder) || folder.starts_with('.'),
        None => path == "setup.py" || path == "noxfile.py" || path.contains("test"),
    }
}

fn reached<'a>(targets: &'a [Target], texts: &[Text], layout: &Layout) -> BTreeSet<&'a str> {
    // Modules in test folders wait until their folder is reached.
    let mut waiting: BTreeMap<&str, Vec<&Text>> = BTreeMap::new();
    let mut active = Vec::new();
    for text in texts {
        match folder_of_tests(&text.path, layout) {
            Some(folder) => waiting.entry(folder).or_default().push(text),
            None => active.push(text),
        }
    }
    let mut reached = BTreeSet::new();
    while let Some(text) = active.pop() {
        for target in targets {
            if !reached.contains(target.path.as_str()) && text.uses(target) {
                reached.insert(target.path.as_str());
                active.extend(waiting.remove(target.path.as_str()).unwrap_or_default());
            }
        }
    }
    reached
}

impl Target {
    fn new(path: &str, is_folder: bool, workspace: &Workspace) -> Target {
        // Imports may begin in the nearest parent folder that is not a package.
        let parts: Vec<&str> = path.split('/').collect();
        Target {
            path: path.to_owned(),
            is_folder,
            min_parts: parts.len() - package_start(workspace.root(), &parts),
        }
    }

    /// Returns whether a text names the module, as entry points do (`pkg.module:main`).
    fn is_named_in(&self, text: &str) -> bool {
        let is_named = |end: &str| {
            let name = end.replace('/', ".");
            text.contains(&format!("{name}:")) || (end.contains('/') && text.contains(&name))
        };
        self.ends().any(is_named)
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Returns the ends of the path by which it may be imported.
    fn ends(&self) -> impl Iterator<Item = &str> {
        let starts = self.path.match_indices('/').map(|(at, _)| at + 1);
        std::iter::once(0)
            .chain(starts)
            .map(|start| &self.path[start..])
            .filter(|end| end.split('/').count() >= self.min_parts)
    }
}

impl Text {
    fn new(path: &str, text: String) -> Text {
        let (mut absolute, mut relative) = (Vec::new(), Vec::new());
        let folder: Vec<&str> = path.split('/').rev().skip(1).collect();
        let bindings = Module::parse(text.as_str()).imports();
        for binding in bindings.into_iter().flat_map(|import| import.bindings) {
            let module = binding.module.trim_start_matches('.');
            let level = binding.module.len() - module.len();
            let parts = [module, binding.name.as_str()].map(|part| part.replace('.', "/"));
            let from = |level: usize| {
                let above = folder.iter().skip(level).rev().copied();
                let parts = parts.iter().map(String::as_str);
                let parts = above.chain(parts).filter(|part| !part.is_empty());
                parts.collect::<Vec<_>>().join("/")
            };
            match level {
                0 => {
                    absolute.push(from(folder.len()));
                    // Python 2 looks there first.
                    relative.push(from(0));
                }
                level => relative.push(from(level - 1)),
            }
        }
        Text {
            path: path.to_owned(),
            text,
            absolute,
            relative,
        }
    }

    fn uses(&self, target: &Target) -> bool {
        let lead = |paths: &[String], to: &str| paths.iter().any(|path| is_at_or_below(path, to));
        let imports = lead(&self.relative, &target.path)
            || target.ends().any(|end| lead(&self.absolute, end));
        imports || (target.is_folder && self.names(target))
    }

    /// Returns whether a string seems to name the target; strings are not parsed.
    fn names(&self, target: &Target) -> bool {
        let dotted = |end: &str| end.contains('/') && self.text.contains(&end.replace('/', "."));
        let folder = target.folder();
        let beside = !folder.is_empty() && Path::new(&self.path).starts_with(folder);
        let name = target.name();
        let quoted = |quote: char| {
            self.text.contains(&format!("{quote}{name}{quote}"))
                || self.text.contains(&format!("{quote}.{name}"))
        };
        target.ends().any(dotted) || (beside && (quoted('"') || quoted('\'')))
    }
}

#[cfg(test)]
mod tests;
