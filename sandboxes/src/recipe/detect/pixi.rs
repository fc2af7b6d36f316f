//! The packages that pixi installs: `pixi.toml`, or `[tool.pixi]` in pyproject.toml.

use std::collections::BTreeSet;

use toml::Value;

use super::{Files, ci, conda, entries, poetry, strings, text};
use crate::repository::Tree;
use crate::sandbox::Result;

/// The packages that pixi installs.
#[derive(Debug, Default)]
pub(super) struct PixiPackages {
    /// File that lists the packages.
    pub path: &'static str,
    /// Requirements in all environments.
    pub general: Vec<String>,
    /// Requirements of the features and environments for tests. Without such environments, the default one counts.
    pub for_tests: Vec<String>,
}

/// Returns the packages that pixi installs. `choose` selects the features and environments for tests by their names.
pub(super) fn packages(
    tree: &Tree,
    files: &Files,
    choose: fn(&[String]) -> Option<Vec<String>>,
) -> Result<PixiPackages> {
    let own = text(tree, "pixi.toml")?.unwrap_or_default();
    let own: toml::Table = own.parse().unwrap_or_default();
    let (path, table) = match files.get("tool.pixi") {
        Some(Value::Table(table)) if own.is_empty() => ("pyproject.toml", table),
        _ => ("pixi.toml", &own),
    };
    if table.is_empty() {
        return Ok(PixiPackages::default());
    }
    let imported = conda::imported_modules(tree)?;
    let features = table.get("feature").and_then(Value::as_table);
    let environments = table.get("environments").and_then(Value::as_table);
    let chosen = |table: Option<&toml::Table>| {
        let names = table.into_iter().flatten().map(|(name, _)| name.clone());
        choose(&names.collect::<Vec<_>>()).unwrap_or_default()
    };
    let mut names: BTreeSet<String> = chosen(features).into_iter().collect();
    let mut for_tests = chosen(environments);
    if for_tests.is_empty() {
        for_tests.push("default".to_owned());
    }
    for name in for_tests {
        let environment = environments.and_then(|all| all.get(&name));
        names.extend(strings(
            environment.map(|value| value.get("features").unwrap_or(value)),
        ));
    }
    // The default environment often has tools for documentation and for checks of the code too.
    names.retain(|name| !ci::is_for_other_purpose(name));
    let tables = names
        .iter()
        .filter_map(|name| features?.get(name)?.as_table());
    Ok(PixiPackages {
        path,
        general: requirements(table, &imported),
        for_tests: tables
            .flat_map(|feature| requirements(feature, &imported))
            .collect(),
    })
}

/// Returns the requirements in a table with packages of conda and of PyPI.
fn requirements(table: &toml::Table, imported: &BTreeSet<String>) -> Vec<String> {
    let items = |key: &str| entries(table.get(key));
    let conda = items("dependencies").filter_map(|(name, value)| {
        let version = value.get("version").unwrap_or(value).as_str()?;
        let version = version.replace(' ', "");
        // `1.2.*` means `=1.2` in files of conda.
        let mark = match version.starts_with(|c: char| c.is_ascii_digit()) {
            true => "=",
            false => "",
        };
        let version = version.trim_start_matches('*');
        // Versions that conda writes differently from pip, such as `2.0.0rc1|3.*`, are left out.
        conda::pip_requirement(&format!("{name}{mark}{version}"), imported)
            .or_else(|| conda::pip_requirement(name, imported))
    });
    let pypi = items("pypi-dependencies");
    conda
        .chain(pypi.flat_map(|(name, value)| poetry::requirements(name, value)))
        .collect()
}
