//! Finds code of a candidate patch that starts to use a test runner. Such code can change how tests end.

use std::collections::BTreeSet;

use testwright_sandboxes::repository::Tree;
use testwright_tools::python::Module;

/// Packages of test runners.
const PACKAGES: [&str; 3] = ["pytest", "_pytest", "unittest"];
/// The variable in which pytest puts the name of the running test.
const CURRENT_TEST: &str = "PYTEST_CURRENT_TEST";
/// Expressions that find a module by a name in a string.
const LOOKUPS: [&str; 4] = ["sys.modules", "import_module(", "__import__(", "find_spec("];

/// Returns whether the code is a test runner itself, which uses its own packages.
pub(super) fn is_runner(tree: &Tree) -> bool {
    let has_package = |folder: &str| {
        let path = |package: &str| format!("{folder}{package}");
        PACKAGES
            .iter()
            .any(|package| tree.has_folder(&path(package)))
    };
    has_package("") || has_package("src/")
}

/// Returns the line and the package of each new use of a test runner. A package that the file used before is not
/// reported.
pub(super) fn find_new_uses(before: &str, after: &str) -> Vec<(usize, &'static str)> {
    let mut uses = find_uses(after);
    if !uses.is_empty() {
        let old: BTreeSet<&str> = find_uses(before)
            .iter()
            .map(|(_, package)| *package)
            .collect();
        uses.retain(|(_, package)| !old.contains(package));
    }
    uses
}

fn find_uses(text: &str) -> Vec<(usize, &'static str)> {
    // Most files contain none of the words, and need no parser.
    let mut words = PACKAGES.iter().chain([&CURRENT_TEST]);
    if !words.any(|word| text.contains(word)) {
        return Vec::new();
    }
    let mut uses = Vec::new();
    for import in Module::parse(text).imports() {
        let mut modules = import.bindings.iter().map(|binding| {
            let is_plain = binding.module.is_empty();
            if is_plain {
                &binding.name
            } else {
                &binding.module
            }
        });
        if let Some(package) = modules.find_map(|module| package_of(module)) {
            uses.push((import.first, package));
        }
    }
    for (at, line) in text.lines().enumerate() {
        let code = line.split('#').next().unwrap_or_default();
        if code.contains(CURRENT_TEST) {
            uses.push((at + 1, "pytest"));
        }
        if LOOKUPS.iter().any(|lookup| code.contains(lookup))
            && let Some(package) = code.split(['"', '\'']).skip(1).find_map(package_of)
        {
            uses.push((at + 1, package));
        }
    }
    uses.sort_unstable();
    uses.dedup();
    uses
}

/// Returns the package of the runner that contains a module.
fn package_of(module: &str) -> Option<&'static str> {
    let first = module.split('.').next().unwrap_or_default();
    PACKAGES.into_iter().find(|package| *package == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_use_of_test_runner_is_found() {
        for (code, expected) in [
            ("import os, pytest\n", Some((1, "pytest"))),
            ("import unittest.mock\n", Some((1, "unittest"))),
            (
                "name = os.getenv('PYTEST_CURRENT_TEST')\n",
                Some((1, "pytest")),
            ),
            ("import pytest_mock\n", None),
            ("from .pytest import run\n", None),
            ("x = 1  # import pytest\n", None),
            ("\"\"\"Example::\n\n    import pytest\n\"\"\"\n", None),
            ("name = \"pytest\"\n", None),
            (
                "def f():\n    from _pytest.python import Function\n",
                Some((2, "_pytest")),
            ),
            (
                "import sys\nif 'pytest' in sys.modules:\n    x = 1\n",
                Some((2, "pytest")),
            ),
            (
                "m = sys.modules.get(\"_pytest.runner\")\n",
                Some((1, "_pytest")),
            ),
            (
                "m = importlib.import_module('_pytest.python')\n",
                Some((1, "_pytest")),
            ),
        ] {
            let uses = find_new_uses("", code);
            assert_eq!(uses.first().copied(), expected, "{code}");
        }
        let old = "import pytest\n";
        assert!(find_new_uses(old, "import pytest\nx = pytest.approx(1)\n").is_empty());
        let new = "import pytest\nfrom _pytest import python\n";
        assert_eq!(find_new_uses(old, new), [(2, "_pytest")]);
    }
}
