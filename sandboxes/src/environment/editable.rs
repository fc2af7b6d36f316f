//! Editable installs with setuptools, requested as a path that Python searches.
//!
//! By default, setuptools adds an import hook unless the layout is the simplest one. Tools that walk `sys.path` then
//! find nothing (for example `python -m pylint`). The path is requested in two ways, because neither covers all cases:
//!
//! - A setting for this one package, if its name can be read. It is never set for all packages, because meson-python
//!   and scikit-build-core reject settings that they do not know.
//! - A configuration file that only setuptools reads, from version 66 on.

use crate::recipe::distribution_name;
use crate::repository::Tree;
use crate::sandbox::Result;

/// Script that prints which modules of an editable install cannot be imported.
pub(super) const FIND_MISSING_SCRIPT: &str = include_str!("editable.py");

pub(super) const CONFIGURATION: &str = "[editable_wheel]\nmode = compat\n";

#[derive(Debug, Default)]
pub(super) struct Editable {
    /// Whether setuptools installs the code in editable mode, or an in-tree build backend that may wrap setuptools.
    pub by_setuptools: bool,
    /// The distribution's name, if it can be read.
    pub name: Option<String>,
}

pub(super) fn detect_editable(
    install: Option<&[String]>,
    image: bool,
    tree: &Tree,
) -> Result<Editable> {
    let editable = match install {
        Some(install) => position(install).is_some(),
        None => !image,
    };
    let pyproject = tree.text("pyproject.toml")?.unwrap_or_default();
    // The build itself reports a broken file.
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

/// Returns the position of the argument that requests an editable install.
pub(super) fn position(install: &[String]) -> Option<usize> {
    install.iter().position(|a| a == "-e" || a == "--editable")
}
