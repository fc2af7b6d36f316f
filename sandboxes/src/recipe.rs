//! Recipes: how to build an environment (Python version, packages, install steps, test runner).
//!
//! [`find`] starts from a built-in recipe, selected by name and version, or else from what the repository's files
//! declare. `[environment]` of the repository's `testwright.toml` overrides it. No code of the repository is executed
//! for that.

mod additions;
mod assignments;
mod builtin;
mod completion;
mod compose;
mod created_folders;
mod detect;
mod extras;
mod generated_sources;
mod ini;
mod migrations;
mod named_requirements;
mod named_variables;
mod parse;
mod python_version;
mod service_catalog;
mod setup_py;
mod stated_commands;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use builtin::digest as built_in_digest;
pub(crate) use detect::project_metadata::{ProjectMetadata, declared_requirements, is_version};
pub(crate) use detect::{
    build_without_extensions, distribution_name, innermost, join as join_path, names_folder,
    older_pythons, package_name as normalized_name, test_extras, test_files,
};
pub(crate) use extras::split_extras;
pub(crate) use named_requirements::named_requirements;
pub(crate) use named_variables::{NamedVariable, named_variables, settings_prefix};
pub use parse::{parse, parse_table};
pub(crate) use python_version::parse as parse_python;
pub use python_version::{
    SUPPORTED_VERSIONS as KNOWN_PYTHONS, available as available_pythons, resolution_date,
};
pub(crate) use service_catalog::{LIBPQ, for_port as service_for_port};
pub use stated_commands::{StatedCommand, stated_commands};

use crate::error::SandboxError;
use crate::repository::{Source, Tree};
use crate::sandbox::Result;

/// A recipe, as written in `sandboxes/recipes/*.toml` or under `[environment]` in a repository's `testwright.toml`, or
/// detected from the repository's files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Recipe {
    /// CPython version, `X.Y`.
    pub python: Option<String>,
    /// Image to use instead of a bare Python (Docker only). `interpreter` is its interpreter.
    pub image: Option<String>,
    /// Path of the interpreter inside `image`. Default: that of SWE-bench's published images if it exists, otherwise
    /// `python` on the PATH.
    pub interpreter: Option<String>,
    /// Debian packages (Docker only; `local` uses the host's packages and reports missing ones).
    pub system_packages: Vec<String>,
    /// PEP 508 requirements, installed before the package.
    pub requirements: Vec<String>,
    /// Requirements files in the repository.
    pub requirements_files: Vec<String>,
    /// Version constraints on packages that build wheels, e.g. `setuptools<58`.
    pub build_constraints: Vec<String>,
    /// Resolve packages as of this date (RFC 3339, or `never`). Default: the base commit's date.
    pub exclude_newer: Option<String>,
    /// Allow pre-releases when resolving packages.
    pub prereleases: bool,
    /// Shell commands to run in the workspace before the package is installed.
    pub before_install: Vec<String>,
    /// Arguments for `uv pip install`, run in the workspace. Default: `["-e", "."]`. If empty, the package is not
    /// installed.
    pub install: Option<Vec<String>>,
    /// Shell commands to run in the workspace after the package is installed. Tracked files that any of these steps
    /// changed are restored afterwards.
    pub after_install: Vec<String>,
    /// Shell commands to run in the workspace of each sandbox after its services are up and before its tests, e.g. the
    /// migrations of a database. They have no network. A copy of a sandbox runs them again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before_tests: Vec<String>,
    /// Environment variables of every process, while building and while tools run.
    pub env: BTreeMap<String, String>,
    /// Create a one-commit git repository in the workspace (for packages that ask git for their version, and for tests
    /// that need a repository).
    pub git: bool,
    /// Test runner and its options. Default: pytest.
    pub runner: Runner,
    /// Services that run beside the tests, on the sandbox's own loopback.
    pub services: Vec<Service>,
    /// Folders of projects below the root. The tests of each run from its folder. A folder that `install` does not
    /// install is put on the import path.
    pub projects: Vec<String>,
    /// Whether the recipe was written from published sources but never built. A note reports its use.
    pub untested: bool,
    /// Parts that the user or the repository's `testwright.toml` states, and detection did not guess.
    #[serde(skip)]
    pub stated: Stated,
}

/// Parts of a recipe that someone states. The other parts of a detected recipe are guesses, which may be wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stated {
    /// `python` or `--python`.
    pub python: bool,
    /// `requirements` or `requirements-files`.
    pub requirements: bool,
    /// `install`.
    pub install: bool,
    /// `services`.
    pub services: bool,
    /// `before-tests`.
    pub before_tests: bool,
    /// Values of `--requirement`, which are never omitted.
    pub added: Vec<String>,
    /// Values of `--extra` and extras in `install`. The package must have them.
    pub extras: Vec<String>,
}

impl Stated {
    /// Adds the parts that the keys of a file state.
    fn add(&mut self, has: impl Fn(&str) -> bool) {
        self.python |= has("python");
        self.requirements |= has("requirements") || has("requirements-files");
        self.install |= has("install");
        self.services |= has("services");
        self.before_tests |= has("before-tests");
    }
}

impl Recipe {
    /// Returns the recipe as `[environment]` of a `testwright.toml`, with the keys that differ from the default.
    pub fn to_toml(&self) -> String {
        let recipe = toml::Value::Table(self.keys());
        let file = toml::Table::from_iter([("environment".to_owned(), recipe)]);
        toml::to_string_pretty(&file).unwrap_or_default()
    }

    /// Returns the keys that differ from the default.
    pub fn keys(&self) -> toml::Table {
        let table = |recipe: &Recipe| toml::Table::try_from(recipe).unwrap_or_default();
        let defaults = table(&Recipe::default());
        table(self)
            .into_iter()
            .filter(|(key, value)| defaults.get(key) != Some(value))
            .collect()
    }
}

/// A program that tests need, e.g. a web server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Service {
    /// Name of the service, a plain word.
    pub name: String,
    /// Program and arguments. `python` is an interpreter with only the service's requirements, and `$SERVICE` the
    /// service's folder.
    pub command: Vec<String>,
    /// PEP 508 requirements, installed separately from the environment. Versions are resolved as of `exclude-newer` if
    /// that is set; otherwise the newest are installed.
    #[serde(default)]
    pub requirements: Vec<String>,
    /// Python version, `X.Y`, for which to install wheels that contain programs. The wheels are unpacked into
    /// `$SERVICE/packages`, and `python` cannot import them. Default: the Python version of the tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// Port on 127.0.0.1; the service is ready once the port accepts connections.
    pub port: u16,
    /// Environment variables of every process in the sandbox, e.g. the service's address.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// Test runner of a recipe, and its options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Runner {
    /// Kind of runner: `pytest`, `unittest`, or a project's own: `django` (`tests/runtests.py`), `sympy` (`bin/test`).
    pub kind: String,
    /// Options before the node ids.
    pub options: Vec<String>,
}

/// Values of [`Runner::kind`].
const RUNNERS: [&str; 4] = ["pytest", "unittest", "django", "sympy"];

impl Default for Runner {
    fn default() -> Self {
        Runner {
            kind: "pytest".to_owned(),
            options: Vec::new(),
        }
    }
}

/// Keys that a repository's own recipe may not set. The engine would request such an image from any server, over the
/// host's network. The repository's code could then read any image that the user has.
pub const IMAGE_KEYS: [&str; 2] = ["image", "interpreter"];

/// Maximum bytes of a repository's file that is read for a recipe.
const MAX_FILE_LEN: u64 = 1 << 20;

/// User settings that override what is found.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// Recipe keys that override everything that is found (e.g. `[environment]` of the user's settings), and their
    /// origin.
    pub keys: Option<(toml::Table, String)>,
    /// Value of `--python X.Y`.
    pub python: Option<String>,
    /// Value of `--image NAME`. Nothing is installed in the image unless a recipe's keys say so.
    pub image: Option<String>,
    /// Ignore built-in recipes.
    pub no_built_in: bool,
    /// Python versions that the backend has (see [`available_pythons`]); empty for any.
    pub pythons: Vec<String>,
    /// Value of `--project FOLDER`: use this project of the repository, and those that it depends on.
    pub project: Option<String>,
    /// Text of the issue. It decides between projects of the repository whose requirements conflict.
    pub subject: Option<String>,
    /// Paths that the task is about, such as those in a given patch. They decide before `subject`, and select a project
    /// that would not be used otherwise.
    pub paths: Vec<String>,
    /// Python version that an issue names, used if nothing else determines one.
    pub preferred_python: Option<PreferredPython>,
    /// Values of `--requirement`, added to those of the recipe.
    pub requirements: Vec<String>,
    /// Values of `--extra`, added to those that the package is installed with.
    pub extras: Vec<String>,
    /// Values of `--env NAME=VALUE`, added to those of the recipe.
    pub env: Vec<String>,
}

/// A preferred Python version for testing a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreferredPython {
    /// Version, `X.Y`.
    pub version: String,
    /// Use it only if it is newer than the default choice.
    pub only_if_newer: bool,
}

/// Finds the recipe for a source and its origin: `built-in NAME`, `testwright.toml`, `detected from …`.
///
/// An image named in the repository's own file is ignored; [`image_left_out`] reports that.
///
/// # Errors
///
/// Kind `Input` for an invalid recipe, or files of the repository that cannot be parsed. Also fails if the archive of
/// the source cannot be read.
pub fn find(source: &Source, overrides: &Overrides) -> Result<(Recipe, String)> {
    let tree = source.tree()?;
    let mut layers = Vec::new();
    if let Some((mut table, file)) = repository_table(&tree)? {
        table.retain(|key, _| !IMAGE_KEYS.contains(&key));
        layers.push((table, file.to_owned()));
    }
    // The file in the user's folder may be the committed one.
    let is_new = |(keys, file): &(toml::Table, String)| {
        let committed = layers.first();
        let committed =
            committed.and_then(|(table, _)| parse::parse_table(table.clone(), file).ok());
        committed.is_none_or(|committed| committed.keys() != *keys)
    };
    let keys = overrides.keys.clone().filter(is_new);
    layers.extend(keys);
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
        None => {
            let is_given = python_given || image_given;
            let (mut recipe, origin) = detect::detect(source, &tree, overrides, is_given)?;
            completion::complete(&tree, &mut recipe)?;
            (recipe, origin)
        }
    };
    if image_given {
        recipe = Recipe {
            install: Some(Vec::new()),
            runner: recipe.runner,
            ..Recipe::default()
        };
        origin = "image".to_owned();
    }
    let states = |key: &str| layers.iter().any(|(table, _)| table.contains_key(key));
    let installs = layers.iter().filter_map(|(table, _)| table.get("install"));
    let words = installs.filter_map(toml::Value::as_array).flatten();
    let words = words.filter_map(toml::Value::as_str);
    let stated_extras = words.flat_map(|word| split_extras(word).1);
    let mut stated = Stated {
        python: python_given || image_given,
        added: overrides.requirements.clone(),
        extras: stated_extras
            .chain(overrides.extras.iter().cloned())
            .collect(),
        ..Stated::default()
    };
    stated.add(states);
    for (table, place) in layers {
        recipe = parse::merge_recipe(&recipe, table, &place)?;
        origin = format!("{place}, over {origin}");
    }
    recipe.stated = stated;
    additions::apply(&mut recipe, &tree, overrides)?;
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

/// Replaces keys of a recipe, which then count as stated. Nested tables (`env`, `runner`) are merged key by key.
///
/// # Errors
///
/// Kind `Input` if a key is unknown or has an invalid value.
pub fn amend(recipe: &Recipe, keys: toml::Table) -> Result<Recipe> {
    let mut stated = recipe.stated.clone();
    stated.add(|key| keys.contains_key(key));
    let amended = parse::merge_recipe(recipe, keys, "[environment]")?;
    Ok(Recipe { stated, ..amended })
}

/// Parses `[environment]` of a settings file, if it has one. All its keys count as stated.
///
/// # Errors
///
/// Fails if the text is not valid TOML, or has an unknown key or an invalid value.
pub fn parse_settings(text: &str, place: &str) -> Result<Option<Recipe>> {
    let Some(table) = parse::environment_table(text, place)? else {
        return Ok(None);
    };
    amend(&Recipe::default(), table).map(Some)
}

/// Returns `[environment]` of the repository's own file, otherwise `[tool.testwright.environment]` of its
/// `pyproject.toml`, with the name of the place.
fn repository_table(tree: &Tree) -> Result<Option<(toml::Table, &'static str)>> {
    let file = "testwright.toml";
    if tree.is_larger(file, MAX_FILE_LEN) {
        let message = "read testwright.toml: it is larger than 1 MiB";
        return Err(SandboxError::input(message));
    }
    if let Some(text) = tree.text(file)?
        && let Some(table) = parse::environment_table(&text, file)?
    {
        return Ok(Some((table, file)));
    }
    let file = "pyproject.toml";
    if tree.is_larger(file, MAX_FILE_LEN) {
        return Ok(None);
    }
    // Other tools report syntax errors in this file.
    let Some(mut project) = tree
        .text(file)?
        .and_then(|text| text.parse::<toml::Table>().ok())
    else {
        return Ok(None);
    };
    let mut table = &mut project;
    for key in ["tool", "testwright"] {
        let Some(toml::Value::Table(inner)) = table.get_mut(key) else {
            return Ok(None);
        };
        table = inner;
    }
    let table = parse::take_environment(table, file)?;
    Ok(table.map(|table| (table, "[tool.testwright] of pyproject.toml")))
}

/// Returns a note if [`find`] ignores an image that the repository names, and the user named no other.
///
/// # Errors
///
/// Fails if the repository's `testwright.toml` is invalid or cannot be read.
pub fn image_left_out(source: &Source, overrides: &Overrides) -> Result<Option<String>> {
    // A caller that gives keys has read the user's files, and reported which of their keys do not count.
    if overrides.image.is_some() || overrides.keys.is_some() {
        return Ok(None);
    }
    let table = repository_table(&source.tree()?)?;
    Ok(table.filter(|(table, _)| table.contains_key("image")).map(|(_, file)| {
        format!(
            "{file}: ignored `environment.image`: a repository may not name an image; pass it with --image"
        )
    }))
}
