//! Editable installs by setuptools: asked for as a path that Python searches.
//!
//! Left to itself, setuptools puts an import hook where the layout is not the simplest. Tools that walk `sys.path`
//! find nothing then (`python -m pylint` is one). Asked in two ways, as neither reaches everything: a setting for this
//! one package, where its name can be read (never for all packages: meson-python and scikit-build-core refuse
//! settings that they do not know), and a configuration file that nothing but setuptools reads, from 66 on.

use crate::recipe::distribution_name;
use crate::repository::Tree;
use crate::sandbox::Result;

/// Prints what cannot be imported of an editable install.
pub(super) const LOST: &str = include_str!("editable.py");

pub(super) const CONFIGURATION: &str = "[editable_wheel]\nmode = compat\n";

#[derive(Debug, Default)]
pub(super) struct Editable {
    /// The code is installed in editable mode by setuptools, or by a build backend of its own that may wrap it.
    pub by_setuptools: bool,
    /// Where it can be read.
    pub name: Option<String>,
}

pub(super) fn look(install: Option<&[String]>, image: bool, tree: &Tree) -> Result<Editable> {
    let editable = match install {
        Some(install) => position(install).is_some(),
        None => !image,
    };
    let pyproject = tree.text("pyproject.toml")?.unwrap_or_default();
    // A broken file is the build's to report.
    let pyproject: toml::Table = pyproject.parse().unwrap_or_default();
    let system = pyproject.get("build-system");
    let backend = system
        .and_then(|s| s.get("build-backend")?.as_str())
        .unwrap_or("setuptools");
    let own = system.is_some_and(|s| s.get("backend-path").is_some());
    if !editable || !(own || backend.starts_with("setuptools")) {
        return Ok(Editable::default());
    }
    Ok(Editable {
        by_setuptools: true,
        name: distribution_name(tree)?,
    })
}

/// Where the arguments ask for an editable install.
pub(super) fn position(install: &[String]) -> Option<usize> {
    install.iter().position(|a| a == "-e" || a == "--editable")
}
