//! How an environment is built: Python version, packages, install steps, test runner.
//!
//! [`find`] takes, in this order: `[environment]` of the repository's `testwright.toml`, laid over a recipe that
//! comes with the program (by name and version), or else over what the repository's files tell. Nothing of the
//! repository is executed for that.

mod builtin;
mod detect;
mod ini;
mod named_requirements;
mod parse;
mod python_version;
mod setup_py;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use builtin::digest as built_in_digest;
pub(crate) use detect::{
    build_without_extensions, distribution_name, package_name as normalized_name, test_extras,
    test_files,
};
pub(crate) use named_requirements::named_requirements;
pub use parse::{parse, parse_table};
pub(crate) use python_version::parse as parse_python;
pub use python_version::{KNOWN as KNOWN_PYTHONS, available as available_pythons, resolution_date};

use crate::error::{ErrorKind, SandboxError};
use crate::repository::{Source, Tree};
use crate::sandbox::Result;

/// One recipe, as written in `sandboxes/recipes/*.toml`, under `[environment]` in a repository's
/// `testwright.toml`, or found out by looking at the repository.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Recipe {
    /// CPython version, `X.Y`.
    pub python: Option<String>,
    /// A ready image instead of a bare Python (Docker only). Its interpreter is `interpreter`.
    pub image: Option<String>,
    /// Path of the interpreter inside `image`; default: that of SWE-bench's published images if it is there, or else
    /// `python` of the PATH.
    pub interpreter: Option<String>,
    /// Debian packages (Docker only; `local` uses what the host has, and says what is missing).
    pub system_packages: Vec<String>,
    /// PEP 508 requirements, installed before the package.
    pub requirements: Vec<String>,
    /// Requirements files of the repository.
    pub requirements_files: Vec<String>,
    /// Bounds on the packages that build wheels, e.g. `setuptools<58`.
    pub build_constraints: Vec<String>,
    /// Packages are resolved as of this date (RFC 3339, or `never`). Default: the base commit's date.
    pub exclude_newer: Option<String>,
    /// Pre-releases are allowed when packages are resolved.
    pub prereleases: bool,
    /// Shell commands run in the workspace before the package is installed.
    pub before_install: Vec<String>,
    /// Arguments for `uv pip install`, run in the workspace. Default: `["-e", "."]`; empty: not installed.
    pub install: Option<Vec<String>>,
    /// Shell commands run in the workspace after it. Tracked files that any of these steps changed are put back
    /// as they were when all is installed.
    pub after_install: Vec<String>,
    /// Environment of every process: while building and while tools run.
    pub env: BTreeMap<String, String>,
    /// Put a one-commit git repository into the workspace (for packages that ask git for their version).
    pub git: bool,
    pub runner: Runner,
    /// What runs beside the tests, on the sandbox's own loopback.
    pub services: Vec<Service>,
    /// Written from what others have published, and never built: it is said so where it is used.
    pub untested: bool,
}

impl Recipe {
    /// Those that say something.
    pub fn keys(&self) -> toml::Table {
        let table = |recipe: &Recipe| toml::Table::try_from(recipe).unwrap_or_default();
        let defaults = table(&Recipe::default());
        table(self)
            .into_iter()
            .filter(|(key, value)| defaults.get(key) != Some(value))
            .collect()
    }
}

/// A program that tests expect to be there, e.g. a web server; see [`crate::environment::Environment::start_services`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Service {
    /// A plain word.
    pub name: String,
    /// Program and arguments; `python` is an interpreter that has the service's requirements and no others.
    pub command: Vec<String>,
    /// PEP 508 requirements, installed in a place of their own. As of `exclude-newer`, if that is set, else the newest.
    #[serde(default)]
    pub requirements: Vec<String>,
    /// It is ready when something answers at this port of 127.0.0.1.
    pub port: u16,
    /// Environment of every process in the sandbox, e.g. the service's address.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Runner {
    /// `pytest`, `unittest`, or a project's own: `django` (`tests/runtests.py`), `sympy` (`bin/test`).
    pub kind: String,
    /// Options put before the node ids.
    pub options: Vec<String>,
}

/// See [`Runner::kind`].
const RUNNERS: [&str; 4] = ["pytest", "unittest", "django", "sympy"];

impl Default for Runner {
    fn default() -> Self {
        Runner {
            kind: "pytest".to_owned(),
            options: Vec::new(),
        }
    }
}

/// What the recipe that a repository brings may not say: the engine would ask any server for such an image, from the
/// host's network, and give the repository's code a look at whatever is in the images that the user has.
pub const IMAGE_KEYS: [&str; 2] = ["image", "interpreter"];

/// Bytes of a repository's file that is read for a recipe.
const MAX_FILE_LEN: u64 = 1 << 20;

/// What the user wants other than found.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// Keys of a recipe that win over everything that is found (e.g. `[environment]` of the user's settings), and
    /// where they come from.
    pub keys: Option<(toml::Table, String)>,
    /// `--python X.Y`.
    pub python: Option<String>,
    /// `--image NAME`: nothing is installed in it unless a recipe's keys say so.
    pub image: Option<String>,
    /// Recipes that come with the program are not used.
    pub no_built_in: bool,
    /// The Python versions that the backend has (see [`available_pythons`]); empty: any.
    pub pythons: Vec<String>,
    /// The version that an issue names, where nothing else decides on one.
    pub preferred_python: Option<PreferredPython>,
}

/// A Python that a repository is to be tested on, where it can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreferredPython {
    /// `X.Y`
    pub version: String,
    /// Only where it is newer than the one that would be taken otherwise.
    pub only_if_newer: bool,
}

/// The recipe for a source, and where it comes from: `built-in NAME`, `testwright.toml`, `detected from …`.
///
/// An image that the repository's own file names counts for nothing; [`image_left_out`] says so.
pub fn find(source: &Source, overrides: &Overrides) -> Result<(Recipe, String)> {
    let tree = source.tree()?;
    let mut layers = Vec::new();
    if let Some(mut table) = brought(&tree)? {
        table.retain(|key, _| !IMAGE_KEYS.contains(&key));
        layers.push((table, "testwright.toml".to_owned()));
    }
    layers.extend(overrides.keys.clone());
    for (table, place) in &layers {
        parse::parse_table(table.clone(), place)?;
    }

    let python_given =
        overrides.python.is_some() || layers.iter().any(|(t, _)| t.contains_key("python"));
    let image_given =
        overrides.image.is_some() || layers.iter().any(|(t, _)| t.contains_key("image"));
    let built_in = if overrides.no_built_in {
        None
    } else {
        builtin::find(source, &tree)?
    };
    let (mut recipe, mut origin) = match built_in {
        Some((recipe, name)) => (recipe, format!("built-in {name}")),
        None => detect::detect(source, &tree, overrides)?,
    };
    if image_given {
        recipe = Recipe {
            install: Some(Vec::new()),
            runner: recipe.runner,
            ..Recipe::default()
        };
        origin = "image".to_owned();
    }
    for (table, place) in layers {
        recipe = parse::lay_over(&recipe, table, &place)?;
        origin = format!("{place}, over {origin}");
    }
    if let Some(python) = &overrides.python {
        recipe.python = Some(python.clone());
    }
    if let Some(image) = &overrides.image {
        recipe.image = Some(image.clone());
        if !python_given {
            recipe.python = None;
        }
    }
    parse::check(&recipe, &origin)?;
    Ok((recipe, origin))
}

/// `[environment]` of the repository's own file.
fn brought(tree: &Tree) -> Result<Option<toml::Table>> {
    if tree.is_larger("testwright.toml", MAX_FILE_LEN) {
        let message = "testwright.toml: it has more than 1 MiB";
        return Err(SandboxError::new(ErrorKind::Input, message));
    }
    let Some(text) = tree.text("testwright.toml")? else {
        return Ok(None);
    };
    parse::environment_table(&text, "testwright.toml")
}

/// A note where [`find`] leaves out the image that the repository names and nobody named another.
pub fn image_left_out(source: &Source, overrides: &Overrides) -> Result<Option<String>> {
    // Who gave keys has read the files of the user, and said what of them does not count.
    if overrides.image.is_some() || overrides.keys.is_some() {
        return Ok(None);
    }
    let named = brought(&source.tree()?)?.is_some_and(|table| table.contains_key("image"));
    Ok(named.then(|| {
        "testwright.toml: left out `environment.image`: a repository may not name an image; name it with --image"
            .to_owned()
    }))
}
