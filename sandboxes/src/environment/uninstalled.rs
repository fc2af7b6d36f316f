//! Packages that an issue names and that the environment lacks.

use std::collections::{BTreeMap, BTreeSet};

use super::module_packages::package_of;
use crate::recipe::{self, normalized_name};
use crate::repository::Tree;
use crate::sandbox::Result;

/// Maximum missing packages of a list of versions. With more, the list is an inventory of the reporter's machine.
const MAX_MISSING_LISTED: usize = 3;

/// Modules and packages that a text names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedPackages {
    /// Top-level modules that code imports.
    pub modules: BTreeSet<String>,
    /// Packages that commands install.
    pub packages: BTreeSet<String>,
    /// Packages in lists of versions.
    pub listed: BTreeSet<String>,
}

impl NamedPackages {
    fn is_empty(&self) -> bool {
        self.modules.is_empty() && self.packages.is_empty() && self.listed.is_empty()
    }
}

/// Returns those of the named packages that some file of the repository requires, but that are not installed, by
/// normalized name. `installed` has lines such as `name==version`; if it is empty, nothing is known.
///
/// # Errors
///
/// Fails if the files of the repository cannot be read.
pub fn uninstalled(
    names: &NamedPackages,
    tree: &Tree,
    installed: &[String],
) -> Result<BTreeSet<String>> {
    if names.is_empty() || installed.is_empty() {
        return Ok(BTreeSet::new());
    }
    let required = recipe::named_requirements(tree)?;
    let installed = installed.iter().filter_map(|line| line.split("==").next());
    let mut installed: BTreeSet<String> = installed.map(normalized_name).collect();
    // A published copy of the code under test must not be suggested.
    installed.extend(recipe::distribution_name(tree)?.map(|name| normalized_name(&name)));
    let is_own = |module: &str| is_own_module(tree, module);
    Ok(select(names, &required, &installed, &is_own))
}

/// Returns whether a module belongs to the repository.
pub(super) fn is_own_module(tree: &Tree, module: &str) -> bool {
    ["", "src/", "lib/"].iter().any(|folder| {
        tree.has_folder(&format!("{folder}{module}"))
            || tree.contains(&format!("{folder}{module}.py"))
    })
}

fn select(
    names: &NamedPackages,
    required: &BTreeMap<String, String>,
    installed: &BTreeSet<String>,
    is_own: &dyn Fn(&str) -> bool,
) -> BTreeSet<String> {
    let is_missing =
        |package: &String| required.contains_key(package) && !installed.contains(package);
    let mut missing = BTreeSet::new();
    for module in names.modules.iter().filter(|module| !is_own(module)) {
        let plain = normalized_name(module);
        // Another distribution than the usual one may provide the module.
        if !installed.contains(&plain) {
            missing.insert(package_of(module).map_or(plain, str::to_owned));
        }
    }
    missing.extend(names.packages.iter().map(|name| normalized_name(name)));
    missing.retain(is_missing);
    let listed = names.listed.iter().map(|name| normalized_name(name));
    let listed: BTreeSet<String> = listed.filter(is_missing).collect();
    if listed.len() <= MAX_MISSING_LISTED {
        missing.extend(listed);
    }
    missing
}

#[cfg(test)]
mod tests;
