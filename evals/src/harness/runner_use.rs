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
mod tests;
