//! Detects new modules that would be imported instead of others.
//!
//! pytest puts the folder of each test file, or the parent of its package, first into `sys.path`. Modules there take
//! precedence over the code under test, the standard library and installed packages. (unittest does the same with its
//! start folder.)

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::code_dependencies::is_script;
use crate::process::{self, Command};
use crate::python::package_start;
use crate::tool::Result;
use crate::workspace::{Change, FileChange, Workspace, is_conftest};

/// Time limit for Python to find the names.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Prints the origin of each name that is a module. The current folder is excluded.
const QUESTION: &str = "
import importlib.util, sys
sys.path[:] = [path for path in sys.path if path]
for name in sys.argv[1:]:
    try:
        spec = importlib.util.find_spec(name)
    except Exception:
        continue
    if spec is not None and spec.origin not in (None, 'namespace'):
        print(name, spec.origin, sep='\\t')
";

/// Returns the paths of such changes, and the names of the modules that they would replace.
///
/// # Errors
///
/// Fails if Python cannot be run.
pub(super) fn shadows(
    workspace: &Workspace,
    changes: &[FileChange],
) -> Result<BTreeMap<String, String>> {
    let layout = workspace.layout();
    let new: Vec<(&FileChange, String, String)> = (changes.iter())
        .filter(|change| change.change == Change::Added && layout.is_test_path(&change.path))
        .filter(|change| !is_named_as_a_test(&change.path))
        .filter_map(|change| {
            let (root, name) = imported_as(workspace, &change.path)?;
            Some((change, root, name))
        })
        .collect();
    if new.is_empty() {
        return Ok(BTreeMap::new());
    }
    let files = workspace.files();
    let roots: BTreeSet<String> = (files.iter())
        .filter(|path| layout.is_test_file(path) || is_conftest(path))
        .filter_map(|path| Some(imported_as(workspace, path)?.0))
        .collect();
    let new: Vec<_> = (new.into_iter())
        .filter(|(_, root, name)| roots.contains(root) && is_new(workspace, root, name))
        .collect();
    let names: BTreeSet<&str> = new.iter().map(|(_, _, name)| name.as_str()).collect();
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut taken_names = of_repository(workspace, &files);
    taken_names.extend(installed(workspace, &names)?);
    let shadowing = new
        .into_iter()
        .filter(|(_, _, name)| taken_names.contains(name));
    Ok(shadowing
        .map(|(change, _, name)| (change.path.clone(), name))
        .collect())
}

/// Returns whether a file is named like a test. Code has no such names, and most patches contain no other new files.
fn is_named_as_a_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.starts_with("test_") || name.ends_with("_test.py")
}

/// Returns the folder from which the file can be imported, and the first part of its module name there.
fn imported_as(workspace: &Workspace, path: &str) -> Option<(String, String)> {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = match file.strip_suffix(".py") {
        Some(stem) => stem,
        // `name.cpython-311-x86_64-linux-gnu.so`
        None if file.ends_with(".so") => file.split('.').next()?,
        None => return None,
    };
    let folders = folder.split('/').filter(|part| !part.is_empty());
    let parts: Vec<&str> = folders.chain([stem]).collect();
    let start = package_start(workspace.root(), &parts);
    let name = parts[start];
    let is_module = name != "conftest" && name != "__init__" && !name.is_empty();
    is_module.then(|| (parts[..start].join("/"), name.to_owned()))
}

/// Returns whether no module of this name could be imported from there before.
fn is_new(workspace: &Workspace, root: &str, name: &str) -> bool {
    let root = Path::new(root);
    let there = |path: PathBuf| workspace.base(&path).ok().flatten().is_some();
    !there(root.join(name).join("__init__.py")) && !there(root.join(format!("{name}.py")))
}

/// Returns the first name parts of the repository's own modules that are not tests.
fn of_repository(workspace: &Workspace, files: &[String]) -> BTreeSet<String> {
    let layout = workspace.layout();
    let code = files.iter().filter(|path| {
        path.ends_with(".py")
            && !layout.is_test_path(path)
            && !layout.is_test_support(path)
            && !is_script(path)
    });
    let mut names = BTreeSet::new();
    for path in code {
        names.extend(imported_as(workspace, path).map(|(_, name)| name));
        // A package without `__init__.py`.
        let mut roots = ["src/", "lib/"].iter();
        let inside = roots.find_map(|root| path.strip_prefix(root));
        let package = inside.unwrap_or(path).split_once('/');
        names.extend(package.map(|(name, _)| name.to_owned()));
    }
    names
}

/// Returns the names that Python finds without the repository's tests.
fn installed(workspace: &Workspace, names: &BTreeSet<&str>) -> Result<BTreeSet<String>> {
    let config = workspace.config();
    let mut args = vec!["-c".into(), QUESTION.into()];
    // A folder `test` may become a package although the standard library has one, which is only for its own tests.
    let candidates = names
        .iter()
        .filter(|name| !matches!(**name, "test" | "tests" | "testing"));
    args.extend(candidates.map(|name| (*name).into()));
    let mut command = Command::python(config, args, "/");
    command.merge = false;
    command.max_output_bytes = 1 << 20;
    let finished = process::run(&command, Instant::now() + TIMEOUT)?;
    let printed = finished.stdout.text();
    let is_test = |origin: &str| {
        let inside = Path::new(origin).strip_prefix(workspace.root()).ok();
        let inside = inside.and_then(Path::to_str);
        inside.is_some_and(|path| workspace.layout().is_test_path(path))
    };
    let modules = printed.lines().filter_map(|line| line.split_once('\t'));
    let others = modules.filter(|(_, origin)| !is_test(origin));
    Ok(others.map(|(name, _)| name.to_owned()).collect())
}

#[cfg(test)]
mod tests;
