//! Completion of a detected recipe by what the repository's CI does before it runs the tests.

use super::{
    Recipe, created_folders, generated_sources, migrations, named_requirements, normalized_name,
    service_catalog,
};
use crate::repository::Tree;
use crate::sandbox::Result;

/// Adds services that the tests' workflows start, and commands that create folders, sources that are not committed and
/// the tables of databases.
pub(super) fn complete(tree: &Tree, recipe: &mut Recipe) -> Result<()> {
    recipe
        .before_install
        .extend(created_folders::command(tree)?);
    let commands = generated_sources::commands(tree)?;
    if !commands.is_empty() {
        let requirements = named_requirements(tree)?;
        let is_present = |line: &String| normalized_name(line) == "cython";
        if !recipe.requirements.iter().any(is_present) {
            let cython = requirements.get("cython").cloned();
            recipe
                .requirements
                .push(cython.unwrap_or_else(|| "cython".to_owned()));
        }
        recipe.before_install.extend(commands);
    }
    let services = service_catalog::in_workflows(tree)?;
    if !services.is_empty() {
        let requirements = named_requirements(tree)?;
        let is_named = |package: &str| requirements.contains_key(package);
        let used = services
            .into_iter()
            .filter(|service| service_catalog::has_client(recipe, service, &is_named));
        recipe.services = used.collect();
        for service in &mut recipe.services {
            service_catalog::retain_named(tree, service)?;
        }
    }
    recipe.before_tests = migrations::commands(tree, recipe)?;
    Ok(())
}
