//! Folders of the repository from which tests import modules, although no package is installed and no configuration of
//! pytest names them. A Makefile or an editor sets PYTHONPATH then.

use std::collections::BTreeSet;

use super::Environment;
use super::missing::missing_modules;
use crate::pattern::Pattern;
use crate::repository::Tree;

const VARIABLE: &str = "PYTHONPATH";

/// Folders with code that tests do not import as modules of the root.
const EXCLUDED: [&str; 6] = ["doc", "docs", "example", "examples", "test", "tests"];

/// Modules that Python or pytest imports before tests, after the folder. One that has them would break both.
static STANDARD_MODULE: Pattern = Pattern::new(concat!(
    "^/(?:abc|argparse|ast|code|collections|contextlib|copy|dataclasses|email|enum|functools|glob|html|http|inspect",
    "|io|json|logging|operator|os|platform|queue|random|re|select|signal|socket|string|token|types|typing|warnings",
    r"|xml)(?:\.py|/__init__\.py)$",
));

/// Maximum depth of the folder.
const MAX_DEPTH: usize = 2;

/// Adds the folder that has a missing module to PYTHONPATH, if there is exactly one. Returns whether it was added.
pub(super) fn add(environment: &mut Environment, asked_by: &str, text: &str, tree: &Tree) -> bool {
    if environment.env.contains_key(VARIABLE) {
        return false;
    }
    let mut modules = missing_modules(text).into_iter();
    let Some(folder) = modules.find_map(|module| folder_of(module, tree.paths())) else {
        return false;
    };
    if hides_standard_module(&folder, tree.paths()) {
        return false;
    }
    let place = environment.paths.workspace.join(&folder);
    let place = place.to_string_lossy();
    environment.set_variable(VARIABLE, &place);
    let note = format!("added {folder} to {VARIABLE}: {asked_by} needs it");
    environment.notes.push(note);
    true
}

/// Returns whether a folder on PYTHONPATH would replace a module of Python.
fn hides_standard_module<'a>(folder: &str, mut paths: impl Iterator<Item = &'a str>) -> bool {
    paths.any(|path| {
        let inside = path.strip_prefix(folder);
        inside.is_some_and(|inside| STANDARD_MODULE.is_match(inside))
    })
}

/// Returns the only folder below the root that has a module. The root itself is always on the import path.
fn folder_of<'a>(module: &str, paths: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut folders = BTreeSet::new();
    let ends = [format!("{module}/__init__.py"), format!("{module}.py")];
    for path in paths {
        let Some(folder) = ends.iter().find_map(|end| path.strip_suffix(end.as_str())) else {
            continue;
        };
        let Some(folder) = folder.strip_suffix('/') else {
            // The root has it, unless the name only ends like that of the module.
            if folder.is_empty() {
                return None;
            }
            continue;
        };
        let is_hidden = |part: &str| part.starts_with('.') || EXCLUDED.contains(&part);
        if folder.matches('/').count() < MAX_DEPTH && !folder.split('/').any(is_hidden) {
            folders.insert(folder.to_owned());
        }
    }
    folders.pop_first().filter(|_| folders.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{folder_of, hides_standard_module};

    #[test]
    fn folders_with_modules_of_python_are_recognized() {
        for (path, expected) in [
            ("lib/types.py", true),
            ("lib/logging/__init__.py", true),
            ("lib/more/types.py", false),
            ("lib/more.py", false),
        ] {
            let actual = hides_standard_module("lib", [path].into_iter());
            assert_eq!(actual, expected, "{path}");
        }
    }

    #[test]
    fn only_folder_with_module_is_found() {
        for (paths, folder) in [
            (&["src/mod/__init__.py", "tests/test_a.py"][..], Some("src")),
            (&["python/lib/mod.py"], Some("python/lib")),
            (&["mod/__init__.py", "src/mod/__init__.py"], None),
            (&["a/mod.py", "b/mod.py"], None),
            (&["tests/mod.py", "src/othermod.py"], None),
        ] {
            let actual = folder_of("mod", paths.iter().copied());
            assert_eq!(actual.as_deref(), folder, "{paths:?}");
        }
    }
}
