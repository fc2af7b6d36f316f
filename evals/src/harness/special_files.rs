//! Files that Python and pytest use without being asked: settings, compiled code, and modules that run at startup.

use testwright_sandboxes::repository::{File, FileKind, Tree};

/// Name endings of bytecode.
pub(super) const BYTECODE: [&str; 2] = [".pyc", ".pyo"];
/// Folder of bytecode.
pub(super) const BYTECODE_FOLDER: &str = "__pycache__";
/// Name endings of extension modules.
pub(super) const EXTENSION_MODULES: [&str; 4] = [".so", ".pyd", ".dll", ".dylib"];
/// Files that hold only settings of test runners.
pub(super) const RUNNER_SETTINGS: [&str; 5] = [
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    ".coveragerc",
];
/// Files that hold settings of pytest beside others, such as those for packaging.
pub(super) const SHARED_SETTINGS: [&str; 3] = ["tox.ini", "setup.cfg", "pyproject.toml"];
/// Modules that Python imports when it starts.
pub(super) const STARTUP_MODULES: [&str; 2] = ["sitecustomize.py", "usercustomize.py"];

/// Modules that run and record tests.
const RUNNERS: [&str; 5] = ["pytest", "_pytest", "pluggy", "coverage", "unittest"];

/// Returns the path of the module that a file would be for Python. A link may lead to a package.
pub(super) fn module_path(path: &str, file: &File) -> String {
    match file.kind {
        FileKind::Link if !path.ends_with(".py") => format!("{path}/__init__.py"),
        _ => path.to_owned(),
    }
}

/// Returns whether Python loads the file automatically, or in place of a module that runs and records tests. Such a
/// module takes effect in every folder on the import path, such as the repository or `src`.
pub(super) fn is_of_startup(path: &str, tree: &Tree) -> bool {
    let mut above = String::new();
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        let is_file = parts.peek().is_none();
        let module = part.strip_suffix(".py").unwrap_or(part);
        if !is_file || module.len() < part.len() {
            let is_own = matches!(module, "sitecustomize" | "usercustomize")
                || module.starts_with("testwright_");
            // A module of that name inside a package replaces nothing.
            let is_in_package = tree.contains(&format!("{above}__init__.py"));
            let is_runner = RUNNERS.contains(&module) && !is_test_folder(&above) && !is_in_package;
            above.push_str(part);
            // The repository under test may be pytest itself.
            if (is_own || is_runner) && !tree.contains(&above) && !tree.has_folder(&above) {
                return true;
            }
        }
        above.push('/');
    }
    false
}

/// Returns whether a path lies in a test folder, where a package may have the name of the package it tests.
fn is_test_folder(above: &str) -> bool {
    above.split('/').any(|part| part.starts_with("test"))
}

/// Returns whether a file is metadata of a package, which can name plugins.
pub(super) fn is_metadata(path: &str) -> bool {
    path.split('/').any(|part| {
        part.ends_with(".egg-info") || part.ends_with(".dist-info") || part == "entry_points.txt"
    })
}
