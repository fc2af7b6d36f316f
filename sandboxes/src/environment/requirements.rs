//! Everything that is to be installed before the package, as one list: the recipe's requirements, the lines of its
//! requirements files (files that they include too), and the build tools that old code takes for granted.

use std::collections::BTreeSet;

use crate::error::{ErrorKind, SandboxError};
use crate::recipe::Recipe;
use crate::repository::Tree;
use crate::sandbox::Result;

#[derive(Debug, Default)]
pub(super) struct Requirements {
    pub lines: Vec<String>,
    pub constraints: Vec<String>,
    pub build_constraints: Vec<String>,
    /// Options for the resolution that a date makes necessary.
    pub exempt: Vec<String>,
}

/// Packages that are resolved as of a later date than all others where that date is older. Without them, old code
/// cannot be installed at all: `setuptools` has editable installs that uv knows since 64, others the like.
/// `atomicwrites` was taken from PyPI and put there again in 2022; all of pytest's releases from 3.6 to 7.0 need it.
const EXEMPT: [(&str, &str); 5] = [
    ("atomicwrites", "2022-08-01T00:00:00Z"),
    ("flit-core", "2024-08-01T00:00:00Z"),
    ("poetry-core", "2024-08-01T00:00:00Z"),
    ("setuptools", "2024-08-01T00:00:00Z"),
    ("wheel", "2024-08-01T00:00:00Z"),
];

/// Later releases drop what old setup.py files use.
const SETUPTOOLS: &str = "setuptools<70";
/// What packages use that have no wheels for 3.6; no other Python has packages of that time.
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
            return Err(SandboxError::new(
                ErrorKind::Input,
                format!("the repository has no requirements file {path}"),
            ));
        }
        include(tree, path, false, &mut all, &mut seen)?;
    }
    // Dates are written year first; the same zone. A date that a recipe sets is there for old code.
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
    // Up to 3.11, virtual environments came with them.
    let minor = recipe
        .python
        .as_deref()
        .and_then(|p| p.strip_prefix("3.")?.parse::<u32>().ok());
    if recipe.image.is_none() && minor.is_some_and(|m| m < 12) {
        let present = names(&all.lines);
        if !present.contains("setuptools") {
            all.lines
                .push(if old { SETUPTOOLS } else { "setuptools" }.to_owned());
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
        // A `#` begins a comment only after a blank: addresses have fragments.
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
                include(tree, &join(folder, file), constraint, all, seen)?;
            }
            // The package itself, hashes, indexes of the project's own.
            _ if line.starts_with('-') || line.starts_with('.') => {}
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

fn join(folder: &str, file: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|p| !p.is_empty()).collect();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts.join("/")
}

/// `Py-Test_x[a]>=3; …` → `py-test-x`.
pub(super) fn name(requirement: &str) -> String {
    let name: String = requirement
        .trim()
        .chars()
        .take_while(|c| c.is_alphanumeric() || "-_.".contains(*c))
        .collect();
    name.to_lowercase().replace(['_', '.'], "-")
}
