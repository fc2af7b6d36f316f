//! Requirements files: the one for tests, and those of applications.

use super::{package_name, text};
use crate::repository::Tree;
use crate::sandbox::Result;

/// Finds the requirements file for tests: one with pytest that CI or tox installs (`used`), otherwise by its name (for
/// tests or for development), or because it requires pytest.
///
/// If several match, the one with the shortest name is returned.
pub(super) fn requirements_file(tree: &Tree, used: &[String]) -> Result<Option<String>> {
    let is_used = |path: &str| used.iter().any(|file| file == path);
    let candidate = |path: &&str| {
        let lower = path.to_lowercase();
        let (folder, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
        let place = match path.matches('/').count() {
            0 => true,
            1 => folder.contains("require") || is_for_tests(folder) || folder == "ci",
            2 => matches!(
                folder,
                "test/unit" | "test/units" | "tests/unit" | "tests/units"
            ),
            _ => false,
        };
        let is_named = name.contains("require") || folder.contains("require");
        let is_list = name.ends_with(".txt") || is_uncompiled(tree, path);
        is_used(path) || place && is_named && is_list
    };
    let mut best: Option<((bool, bool, u8), usize, &str)> = None;
    for path in tree.paths().filter(candidate) {
        let requires_pytest = text(tree, path)?.unwrap_or_default().lines().any(|line| {
            let name = package_name(line);
            name == "pytest" || name.starts_with("pytest-")
        });
        let lower = path.to_lowercase();
        let kind = match (is_for_tests(&lower), lower.contains("dev")) {
            (true, _) => 0,
            (_, true) => 1,
            _ if requires_pytest => 2,
            _ => continue,
        };
        let is_certain = requires_pytest && is_used(path);
        // A file for development that lacks pytest ranks below any that requires it.
        let kind = (kind == 1 && !requires_pytest, !is_certain, kind);
        let rank = (kind, path.len(), path);
        if best.is_none_or(|best| rank < best) {
            best = Some(rank);
        }
    }
    Ok(best.map(|(_, _, path)| path.to_owned()))
}

/// Returns whether a file is the source of a requirements file that is not committed, as for pip-tools.
fn is_uncompiled(tree: &Tree, path: &str) -> bool {
    let compiled = path.strip_suffix(".in").map(|path| format!("{path}.txt"));
    compiled.is_some_and(|compiled| !tree.contains(&compiled))
}

/// Returns the requirements file of an application. The file for production counts only if there is no file for tests.
pub(super) fn application_file(tree: &Tree, has_none_for_tests: bool) -> Option<&'static str> {
    let names = "requirements.txt requirements.in requirements/base.txt requirements/base.in requirements/common.txt \
                 requirements/main.txt requirements/main.in requirements/requirements.txt";
    let for_production =
        "requirements/default.txt requirements/prod.txt requirements/production.txt";
    let for_production = for_production.split(' ').filter(|_| has_none_for_tests);
    let mut names = names.split(' ').chain(for_production);
    names.find(|path| tree.contains(path))
}

/// Returns whether a path in lower case names tests, but not those in documentation.
fn is_for_tests(path: &str) -> bool {
    path.replace("doctest", "")
        .replace("latest", "")
        .contains("test")
}
