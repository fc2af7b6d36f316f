//! Finds files of a test patch that are not tests: code under test, settings of runners, and files that Python or
//! pytest loads automatically. With such a file, a patch can decide the outcomes of its tests itself.

use std::collections::BTreeSet;
use std::path::Path;

use testwright_sandboxes::repository::{File, Files, Tree};
use testwright_tools::python::{code_tokens, is_standard_library};
use testwright_tools::workspace::{Layout, decode_source, is_conftest};

use super::special_files::{
    BYTECODE, BYTECODE_FOLDER, EXTENSION_MODULES, RUNNER_SETTINGS, SHARED_SETTINGS, is_metadata,
    is_of_startup, module_path,
};

/// Beginnings of the names of pytest's hooks that can change which tests run, or how they come out.
const HOOKS: [&str; 16] = [
    "pytest_cmdline_",
    "pytest_collect",
    "pytest_deselected",
    "pytest_exception_interact",
    "pytest_fixture_",
    "pytest_ignore_collect",
    "pytest_itemcollected",
    "pytest_load_initial_conftests",
    "pytest_plugin_registered",
    "pytest_pycollect_",
    "pytest_pyfunc_call",
    "pytest_report_teststatus",
    "pytest_runtest",
    "pytest_sessionfinish",
    "pytest_sessionstart",
    PLUGINS,
];

/// The variable of a module that names plugins of pytest.
const PLUGINS: &str = "pytest_plugins";

/// Returns why a file of the patch does not belong in a test patch, as a clause without a subject, such as `edits code
/// under test: src/a.py`. `files` are all files of the patch, `fix` those of the golden code patch.
pub(super) fn reason(
    path: &str,
    files: &Files,
    fix: &Files,
    tree: &Tree,
    layout: &Layout,
) -> Option<String> {
    let now = files.get(path).and_then(Option::as_ref);
    if now.is_some() {
        if is_of_startup(path, tree) {
            return Some(format!("adds {path}, which runs before its tests"));
        }
        if is_compiled(path) {
            return Some(format!("adds {path}, which is not source code"));
        }
    }
    if is_setting(path, tree, layout) {
        return Some(format!("changes {path}, which decides how tests are run"));
    }
    if is_metadata(path) && !layout.is_test_path(path) {
        return Some(format!("changes {path}, which is metadata of a package"));
    }
    // A folder `test` may hold code, such as a test client.
    let is_fixed = fix.contains_key(path) && !layout.is_test_file(path);
    if is_fixed || !layout.is_test_path(path) {
        let is_code = path.ends_with(".py");
        return match is_code {
            true => Some(format!("edits code under test: {path}")),
            false if is_prose(path, tree) => None,
            false => Some(format!(
                "changes {path}, which is outside the folders of tests"
            )),
        };
    }
    let now = now?;
    if is_conftest(path) && reaches_existing_tests(path, tree, layout) {
        let hook = new_name(path, now, tree, |name| {
            HOOKS.iter().any(|h| name.starts_with(h))
        });
        if let Some(hook) = hook {
            return Some(format!(
                "changes {path}, whose `{hook}` decides about other tests than its own"
            ));
        }
    }
    if let Some(name) = shadowed_name(&module_path(path, now), files, tree, layout) {
        return Some(format!(
            "adds {path}, which tests would import in the place of `{name}`"
        ));
    }
    if path.ends_with(".py")
        && new_name(path, now, tree, |name| name == PLUGINS).is_some()
        && !loads_only_pytester(&decode_source(&now.content))
    {
        return Some(format!("changes {path}, which loads plugins of pytest"));
    }
    None
}

/// Returns whether a file is compiled code, or adds folders to Python's path.
fn is_compiled(path: &str) -> bool {
    let mut endings = BYTECODE.iter().chain(&EXTENSION_MODULES).chain(&[".pth"]);
    endings.any(|ending| path.ends_with(ending))
        || path.split('/').any(|part| part == BYTECODE_FOLDER)
}

/// Folders of changelogs and documentation.
const PROSE_FOLDERS: [&str; 7] = [
    "changelog",
    "changelog.d",
    "changes",
    "doc",
    "docs",
    "news",
    "newsfragments",
];

/// Returns whether a file is prose, such as a changelog, which no code reads. Text beside modules may be their data.
fn is_prose(path: &str, tree: &Tree) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let top = path.split('/').next().unwrap_or_default();
    let is_text = name
        .rsplit_once('.')
        .is_none_or(|(_, end)| matches!(end, "rst" | "md" | "txt"));
    let is_in_package = tree.contains(&format!("{folder}/__init__.py"));
    PROSE_FOLDERS.contains(&top.to_lowercase().as_str()) || is_text && !is_in_package
}

/// Returns whether a file is documentation: prose in the root or a folder of documentation, or in a markup language.
/// Other prose may be a template of the code.
pub(super) fn is_documentation(path: &str, tree: &Tree) -> bool {
    let (top, is_in_root) = match path.split_once('/') {
        Some((top, _)) => (top, false),
        None => ("", true),
    };
    let is_in_folder = PROSE_FOLDERS.contains(&top.to_lowercase().as_str());
    let is_markup = path.ends_with(".rst") || path.ends_with(".md");
    !path.ends_with(".py") && is_prose(path, tree) && (is_in_root || is_in_folder || is_markup)
}

/// Returns whether a path holds settings of a runner, above or beside tests. Elsewhere such files are ordinary data.
fn is_setting(path: &str, tree: &Tree, layout: &Layout) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut settings = RUNNER_SETTINGS.iter().chain(&SHARED_SETTINGS);
    settings.any(|setting| *setting == name)
        && tree
            .paths()
            .any(|file| layout.is_test_file(file) && Path::new(file).starts_with(folder))
}

/// Returns whether tests exist below the folder of a `conftest.py`, so that it decides about them too.
fn reaches_existing_tests(path: &str, tree: &Tree, layout: &Layout) -> bool {
    let folder = path.strip_suffix("conftest.py").unwrap_or_default();
    tree.contains(path)
        || tree
            .paths()
            .any(|file| file.starts_with(folder) && layout.is_test_file(file))
}

/// Returns the module whose place a new file would take, because pytest puts the folder of a test file first into
/// `sys.path`.
fn shadowed_name(path: &str, files: &Files, tree: &Tree, layout: &Layout) -> Option<String> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_named_as_test = name.starts_with("test_") || name.ends_with("_test.py");
    if tree.contains(path) || is_named_as_test || !path.ends_with(".py") {
        return None;
    }
    let (mut folder, mut module) = path.rsplit_once('/').unwrap_or(("", path));
    module = module.strip_suffix(".py").unwrap_or(module);
    if module == "__init__" {
        (folder, module) = folder.rsplit_once('/').unwrap_or(("", folder));
    }
    while tree.contains(&format!("{folder}/__init__.py")) {
        (folder, module) = folder.rsplit_once('/').unwrap_or(("", folder));
    }
    let existed = [
        format!("{folder}/{module}.py"),
        format!("{folder}/{module}/__init__.py"),
    ];
    let is_there = existed.iter().any(|path| tree.contains(path));
    if is_there || matches!(module, "" | "conftest") || !has_tests(folder, files, tree, layout) {
        return None;
    }
    let is_public = !module.starts_with('_');
    // A folder `test` may become a package although the standard library has one, which is only for its own tests.
    let is_of_python =
        is_public && is_standard_library(module) && !matches!(module, "test" | "tests" | "testing");
    let is_of_repository = || {
        ["", "src/", "lib/"].into_iter().any(|root| {
            let package = format!("{root}{module}");
            let (file, inside) = (format!("{package}.py"), format!("{package}/x.py"));
            let has_package =
                tree.contains(&format!("{package}/__init__.py")) && !layout.is_test_path(&inside);
            has_package || tree.contains(&file) && !layout.is_test_path(&file)
        })
    };
    (is_of_python || is_of_repository()).then(|| module.to_owned())
}

/// Returns whether pytest puts a folder into `sys.path`, because it has test files.
fn has_tests(folder: &str, files: &Files, tree: &Tree, layout: &Layout) -> bool {
    let added = files.keys().map(String::as_str);
    tree.paths().chain(added).any(|path| {
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        above == folder && (layout.is_test_file(path) || is_conftest(path))
    })
}

/// Returns a name in the code of a file that meets a condition, and that the file at the base commit does not have.
fn new_name(
    path: &str,
    now: &File,
    tree: &Tree,
    condition: impl Fn(&str) -> bool,
) -> Option<String> {
    let names = |file: &File| {
        let tokens = code_tokens(&decode_source(&file.content));
        let names: BTreeSet<String> = tokens
            .into_iter()
            .filter(|token| condition(token))
            .collect();
        names
    };
    let before = tree.file(path).ok().flatten();
    let before = before.as_ref().map(names).unwrap_or_default();
    names(now).into_iter().find(|name| !before.contains(name))
}

/// Returns whether all plugins that a module names are pytest's own `pytester`, which tests of plugins use. It decides
/// nothing about other tests.
fn loads_only_pytester(source: &str) -> bool {
    let mut lines = source.lines().filter(|line| line.contains(PLUGINS));
    lines.all(|line| {
        let value = line.strip_prefix(PLUGINS).map(str::trim_start);
        let value = value.and_then(|value| value.strip_prefix('='));
        value.is_some_and(is_pytester)
    })
}

/// Returns whether a value on one line names only `pytester`. For Python, a carriage return ends a line, too, and three
/// quotes may begin a longer text.
fn is_pytester(value: &str) -> bool {
    let mut others = ["\r", "\"\"\"", "'''"].iter();
    let may_continue = others.any(|other| value.contains(other));
    let code = value.split('#').next().unwrap_or_default().trim();
    let count = |bracket: char| code.matches(bracket).count();
    let is_closed = code.ends_with(['"', '\'', ']', ')'])
        && count('[') == count(']')
        && count('(') == count(')');
    let names = code.split(['"', '\'', '[', ']', '(', ')', ',']);
    let mut names = names.map(str::trim).filter(|name| !name.is_empty());
    !may_continue && is_closed && names.all(|name| matches!(name, "pytester" | "_pytest.pytester"))
}

#[cfg(test)]
mod tests;
