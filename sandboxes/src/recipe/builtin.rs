//! Recipes that are built into the program: `sandboxes/recipes/OWNER/NAME.toml`.
//!
//! Each file lists the files in which the code states its version, the keys that all versions share, and one table for
//! each group of versions. The first matching table is merged over the shared keys. If none matches, the repository is
//! newer than the recipe, and detection from its files works better.

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{Recipe, parse};
use crate::error::SandboxError;
use crate::hex::hex;
use crate::pattern::Pattern;
use crate::repository::{Source, Tree};
use crate::sandbox::Result;

/// Returns a repository and its file.
macro_rules! recipe {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../recipes/", $name, ".toml")),
        )
    };
}

/// All files of `sandboxes/recipes`, by repository.
const FILES: [(&str, &str); 12] = [
    recipe!("astropy/astropy"),
    recipe!("django/django"),
    recipe!("matplotlib/matplotlib"),
    recipe!("mwaskom/seaborn"),
    recipe!("pallets/flask"),
    recipe!("psf/requests"),
    recipe!("pydata/xarray"),
    recipe!("pylint-dev/pylint"),
    recipe!("pytest-dev/pytest"),
    recipe!("scikit-learn/scikit-learn"),
    recipe!("sphinx-doc/sphinx"),
    recipe!("sympy/sympy"),
];

/// Returns a digest of all recipes. It changes with any of them, because other recipes may build other environments.
pub fn digest() -> String {
    let mut digest = Sha256::new();
    for (name, text) in FILES {
        for part in [name, text] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
    }
    hex(&digest.finalize()[..8])
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    /// Files that state the code's version (`__version__ = "1.2"`). The first that exists counts.
    #[serde(default)]
    version_files: Vec<String>,
    #[serde(default)]
    common: toml::Table,
    versions: Vec<toml::Table>,
}

/// The versions that a table applies to. All given conditions must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct VersionCondition {
    /// Limits of the version, such as `>=2.0,<2.3`.
    version: Option<String>,
    /// Earliest date of the commit, inclusive.
    since: Option<String>,
    /// Latest date of the commit, exclusive.
    until: Option<String>,
}

/// Returns the recipe for a source and the name of its file, such as `psf/requests`.
pub(super) fn find(source: &Source, tree: &Tree) -> Result<Option<(Recipe, String)>> {
    for (name, text) in FILES {
        let place = format!("recipes/{name}.toml");
        let whole = source.name.eq_ignore_ascii_case(name);
        // A folder without a remote is recognized by its own name, if it contains a file with the version.
        let bare = name.rsplit('/').next() == Some(source.name.as_str());
        if !(whole || bare) {
            continue;
        }
        let file: File = parse::read(text, &place)?;
        // That file must be in a subfolder, because every repository may have a setup.py.
        let telling = |f: &String| f.contains('/') && tree.contains(f);
        if bare && !whole && !file.version_files.iter().any(telling) {
            continue;
        }
        let version = version(&file, tree)?;
        for table in file.versions {
            if let Some(recipe) = match_version(
                &file.common,
                table,
                &version,
                source.date.as_deref(),
                &place,
            )? {
                return Ok(Some((recipe, name.to_owned())));
            }
        }
    }
    Ok(None)
}

fn match_version(
    common: &toml::Table,
    mut table: toml::Table,
    version: &Option<Vec<u64>>,
    date: Option<&str>,
    place: &str,
) -> Result<Option<Recipe>> {
    let when: VersionCondition = match table.remove("when") {
        Some(when) => when
            .try_into()
            .map_err(|e: toml::de::Error| SandboxError::system(format!("{place}: {e}")))?,
        None => VersionCondition::default(),
    };
    let fits = when.version.is_none_or(|bounds| version.as_ref().is_some_and(|v| within(v, &bounds)))
        // Both dates start with the year, so they compare as text.
        && when.since.is_none_or(|since| date.is_some_and(|d| *d >= *since))
        && when.until.is_none_or(|until| date.is_some_and(|d| *d < *until));
    if !fits {
        return Ok(None);
    }
    let mut all = common.clone();
    parse::merge(&mut all, table);
    parse::parse_table(all, place).map(Some)
}

static VERSION: Pattern = Pattern::new(
    r#"(?m)^\s*(?:__version__|version|VERSION|numversion)\s*=\s*["'(]([0-9][^"')]*)["')]"#,
);

/// Returns the numbers of the version that the code states.
fn version(file: &File, tree: &Tree) -> Result<Option<Vec<u64>>> {
    for path in &file.version_files {
        if let Some(text) = tree.text(path)?
            && let Some(captures) = VERSION.captures(&text)
        {
            return Ok(Some(numbers(&captures[1])));
        }
    }
    Ok(None)
}

/// Returns the numbers of a version: `2.10.0.dev1` and `2, 10, 0` give 2, 10, 0.
fn numbers(version: &str) -> Vec<u64> {
    version
        .split(['.', ','])
        .map(str::trim)
        .map_while(|part| {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        })
        .collect()
}

/// Returns whether a version is within limits such as `>=2.0,<2.3`. Versions compare number by number, and missing
/// numbers count as 0.
fn within(version: &[u64], bounds: &str) -> bool {
    bounds.split(',').map(str::trim).all(|bound| {
        let operator: String = bound.chars().take_while(|c| "<>=".contains(*c)).collect();
        let bound_version = numbers(&bound[operator.len()..]);
        let length = bound_version.len().max(version.len());
        let at = |v: &[u64]| {
            (0..length)
                .map(|i| v.get(i).copied().unwrap_or(0))
                .collect::<Vec<_>>()
        };
        let (this, bound_version) = (at(version), at(&bound_version));
        match operator.as_str() {
            ">=" => this >= bound_version,
            ">" => this > bound_version,
            "<=" => this <= bound_version,
            "<" => this < bound_version,
            _ => this == bound_version,
        }
    })
}

#[cfg(test)]
mod tests;
