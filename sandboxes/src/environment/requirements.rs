//! Everything to install before the package, as one list.
//!
//! It consists of the recipe's requirements, the lines of its requirements files (and of files that they include), and
//! the build tools that old code takes for granted.

use std::collections::BTreeSet;

use crate::error::SandboxError;
pub(super) use crate::recipe::normalized_name as name;
use crate::recipe::{self, Recipe};
use crate::repository::Tree;
use crate::sandbox::Result;

#[derive(Debug, Default)]
pub(super) struct Requirements {
    pub lines: Vec<String>,
    pub constraints: Vec<String>,
    pub build_constraints: Vec<String>,
    /// Options that exempt packages from the date of the resolution.
    pub exempt: Vec<String>,
}

/// Packages that may be newer than the date of the resolution, each up to its own date.
///
/// Otherwise old code could not be installed at all: `setuptools` has editable installs that uv supports since 64, and
/// others are similar. `atomicwrites` was removed from PyPI and published again in 2022; all releases of pytest from
/// 3.6 to 7.0 need it.
const EXEMPT: [(&str, &str); 5] = [
    ("atomicwrites", "2022-08-01T00:00:00Z"),
    ("flit-core", "2024-08-01T00:00:00Z"),
    ("poetry-core", "2024-08-01T00:00:00Z"),
    ("setuptools", "2024-08-01T00:00:00Z"),
    ("wheel", "2024-08-01T00:00:00Z"),
];

/// Limit for old code: later releases drop what old setup.py files use.
const SETUPTOOLS: &str = "setuptools<70";
/// Limit for the environment of code that is older than the first warnings about `pkg_resources`, which its tests may treat
/// as errors.
const SETUPTOOLS_QUIET: &str = "setuptools<67.3";
const PKG_RESOURCES_DEPRECATED: &str = "2023-02-13T00:00:00Z";
/// Limit for Python 3.6, where packages without wheels use even older features. No other Python has packages from that
/// time.
const SETUPTOOLS_36: &str = "setuptools<46";
const SETUPTOOLS_36_CHANGED: &str = "2020-03-01T00:00:00Z";
const SETUPTOOLS_CHANGED: &str = "2024-05-01T00:00:00Z";

pub(super) fn gather(recipe: &Recipe, tree: &Tree, date: Option<&str>) -> Result<Requirements> {
    let mut all = Requirements {
        lines: recipe.requirements.clone(),
        build_constraints: recipe.build_constraints.clone(),
        ..Requirements::default()
    };
    let mut seen = BTreeSet::new();
    for path in &recipe.requirements_files {
        if !tree.contains(path) {
            return Err(SandboxError::input(format!(
                "the requirements file {path} is missing in the repository"
            )));
        }
        include(tree, path, false, &mut all, &mut seen)?;
    }
    // Dates start with the year and share one time zone, so they compare as text. A date in a recipe means old code.
    let set = recipe
        .exclude_newer
        .as_deref()
        .is_some_and(|d| d != "never");
    let old = set || date.is_some_and(|d| d < SETUPTOOLS_CHANGED);
    let names = |lines: &[String]| lines.iter().map(|l| name(l)).collect::<BTreeSet<_>>();
    if !names(&recipe.build_constraints).contains("setuptools") && old {
        let oldest = recipe.python.as_deref() == Some("3.6")
            && date.is_some_and(|d| d < SETUPTOOLS_36_CHANGED);
        all.build_constraints
            .push(if oldest { SETUPTOOLS_36 } else { SETUPTOOLS }.to_owned());
    }
    // Virtual environments included both packages up to Python 3.11.
    let minor = recipe
        .python
        .as_deref()
        .and_then(|p| p.strip_prefix("3.")?.parse::<u32>().ok());
    if recipe.image.is_none() && minor.is_some_and(|m| m < 12) {
        let present = names(&all.lines);
        if !present.contains("setuptools") {
            let is_quiet = date.is_some_and(|d| d < PKG_RESOURCES_DEPRECATED);
            let line = match old {
                true if is_quiet => SETUPTOOLS_QUIET,
                true => SETUPTOOLS,
                false => "setuptools",
            };
            all.lines.push(line.to_owned());
        }
        if !present.contains("wheel") {
            all.lines.push("wheel".to_owned());
        }
    }
    if let Some(date) = date {
        for (package, until) in EXEMPT {
            if date < until {
                all.exempt
                    .push(format!("--exclude-newer-package={package}={until}"));
            }
        }
    }
    Ok(all)
}

fn include(
    tree: &Tree,
    path: &str,
    constraint: bool,
    all: &mut Requirements,
    seen: &mut BTreeSet<String>,
) -> Result<()> {
    let Some(text) = tree.text(path)? else {
        return Ok(());
    };
    if !seen.insert(path.to_owned()) {
        return Ok(());
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    for line in text.replace("\\\r\n", "").replace("\\\n", "").lines() {
        // A `#` starts a comment only after a blank, because URLs contain fragments.
        let line = line.split(" #").next().unwrap_or(line).trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let option = ["-r", "--requirement", "-c", "--constraint"]
            .into_iter()
            .find_map(|o| Some((o, line.strip_prefix(o)?.trim_start_matches('=').trim())));
        match option {
            Some((option, file)) if !file.is_empty() => {
                let constraint = constraint || option.contains("-c");
                let file = recipe::join_path(folder, file).unwrap_or_default();
                include(tree, &file, constraint, all, seen)?;
            }
            // Skips hashes and the project's own indexes. Folders are installed later, with their tests.
            _ if line.starts_with('-') || recipe::names_folder(line) => {}
            _ => {
                let line = line
                    .split(" --hash")
                    .next()
                    .unwrap_or(line)
                    .trim()
                    .to_owned();
                let list = if constraint {
                    &mut all.constraints
                } else {
                    &mut all.lines
                };
                if !list.contains(&line) {
                    list.push(line);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::repository::{OpenOptions, open};

    #[test]
    fn old_code_gets_setuptools_of_its_time() {
        let recipe = Recipe {
            python: Some("3.9".to_owned()),
            ..Recipe::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let code = folder.path().join("code");
        std::fs::create_dir(&code).unwrap();
        std::fs::write(code.join("a.py"), "").unwrap();
        let cache = folder.path().join("cache");
        let repository = open(
            code.to_str().unwrap(),
            None,
            &cache,
            &OpenOptions::default(),
        );
        let tree = repository.unwrap().source().unwrap().tree().unwrap();
        for (date, line) in [
            ("2022-08-22T00:00:00Z", "setuptools<67.3"),
            ("2023-06-01T00:00:00Z", "setuptools<70"),
            ("2025-01-01T00:00:00Z", "setuptools"),
        ] {
            let all = gather(&recipe, &tree, Some(date)).unwrap();
            assert_eq!(all.lines, [line, "wheel"], "{date}");
        }
    }
}
