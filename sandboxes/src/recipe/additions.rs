//! Additions that the user makes on the command line: requirements, extras, variables.

use super::extras::{split_extras, with_extras};
use super::{Overrides, ProjectMetadata, Recipe, normalized_name};
use crate::error::SandboxError;
use crate::repository::Tree;
use crate::sandbox::Result;

/// Adds the user's requirements, extras and variables to a recipe.
pub(super) fn apply(recipe: &mut Recipe, tree: &Tree, overrides: &Overrides) -> Result<()> {
    for requirement in &overrides.requirements {
        let package = normalized_name(requirement);
        if package.is_empty() || requirement.starts_with('-') {
            return Err(invalid("requirement", requirement)
                .hint("write it as pip does, e.g. --requirement 'pytest-mock>=3'"));
        }
        // The user's limits replace detected ones.
        recipe
            .requirements
            .retain(|line| normalized_name(line) != package);
    }
    // Of requirements that contradict each other, the first ones are installed.
    let added = overrides.requirements.iter().cloned();
    recipe.requirements.splice(0..0, added);
    for variable in &overrides.env {
        let (name, value) = variable
            .split_once('=')
            .filter(|(name, _)| is_variable(name))
            .ok_or_else(|| invalid("variable", variable).hint("write it as --env NAME=VALUE"))?;
        recipe.env.insert(name.to_owned(), value.to_owned());
    }
    if !overrides.extras.is_empty() {
        let installed = recipe.install.take().unwrap_or_default();
        recipe.install = Some(install_with_extras(tree, installed, &overrides.extras)?);
    }
    Ok(())
}

fn invalid(what: &str, text: &str) -> SandboxError {
    SandboxError::input(format!("invalid {what} `{text}`"))
}

fn is_variable(name: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_start) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Adds each extra to the first installed folder that declares it, otherwise to the first one, such as `.[test]`.
fn install_with_extras(
    tree: &Tree,
    mut install: Vec<String>,
    extras: &[String],
) -> Result<Vec<String>> {
    let is_local = |word: &String| word.starts_with('.') || word.contains('/');
    if !install.iter().any(is_local) {
        install.extend(["-e".to_owned(), ".".to_owned()]);
    }
    let mut targets: Vec<&mut String> = install.iter_mut().filter(|word| is_local(word)).collect();
    for extra in extras {
        let mut declaring = 0;
        for (at, target) in targets.iter().enumerate() {
            if declares(tree, target, extra)? {
                declaring = at;
                break;
            }
        }
        let target = &mut targets[declaring];
        **target = with_extras(target, &[extra]);
    }
    Ok(install)
}

/// Returns whether the files of an installed folder declare an extra. Some extras are known only after the build.
fn declares(tree: &Tree, target: &str, extra: &str) -> Result<bool> {
    let folder = split_extras(target).0.trim_start_matches("./");
    let metadata = ProjectMetadata::read(&tree.subtree(folder.trim_matches(['/', '.'])))?;
    let mut names = metadata.extras.keys();
    Ok(names.any(|name| normalized_name(name) == normalized_name(extra)))
}
