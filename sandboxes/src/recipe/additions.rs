//! Additions that the user makes on the command line: requirements, extras, variables.

use super::extras::with_extras;
use super::{Overrides, Recipe};
use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::Result;

/// Adds the user's requirements, extras and variables to a recipe.
pub(super) fn apply(recipe: &mut Recipe, overrides: &Overrides) -> Result<()> {
    for requirement in &overrides.requirements {
        let package = super::normalized_name(requirement);
        if package.is_empty() || requirement.starts_with('-') {
            return Err(invalid("requirement", requirement)
                .hint("write it as pip does, e.g. --requirement 'pytest-mock>=3'"));
        }
        // The user's limits replace detected ones.
        recipe
            .requirements
            .retain(|line| super::normalized_name(line) != package);
        recipe.requirements.push(requirement.clone());
    }
    for variable in &overrides.env {
        let (name, value) = variable
            .split_once('=')
            .filter(|(name, _)| is_variable(name))
            .ok_or_else(|| invalid("variable", variable).hint("write it as --env NAME=VALUE"))?;
        recipe.env.insert(name.to_owned(), value.to_owned());
    }
    if !overrides.extras.is_empty() {
        let installed = recipe.install.take().unwrap_or_default();
        recipe.install = Some(install_with_extras(installed, &overrides.extras));
    }
    Ok(())
}

fn invalid(what: &str, text: &str) -> SandboxError {
    SandboxError::new(ErrorKind::Input, format!("invalid {what} `{text}`"))
}

fn is_variable(name: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_start) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Adds extras to the first local folder that is installed, such as `.[test]`.
fn install_with_extras(mut install: Vec<String>, extras: &[String]) -> Vec<String> {
    let is_local = |word: &String| word.starts_with('.') || word.contains('/');
    if !install.iter().any(is_local) {
        install.extend(["-e".to_owned(), ".".to_owned()]);
    }
    if let Some(target) = install.iter_mut().find(|word| is_local(word)) {
        *target = with_extras(target, extras);
    }
    install
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn additions_extend_the_recipe() {
        let mut recipe = Recipe {
            requirements: vec!["pytest".to_owned(), "Mock<2".to_owned()],
            install: Some(vec!["-e".to_owned(), ".[test]".to_owned()]),
            ..Recipe::default()
        };
        let overrides = Overrides {
            requirements: vec!["mock>=4".to_owned()],
            extras: vec!["socks".to_owned()],
            env: vec!["A_B=1=2".to_owned()],
            ..Overrides::default()
        };
        apply(&mut recipe, &overrides).unwrap();
        assert_eq!(recipe.requirements, ["pytest", "mock>=4"]);
        assert_eq!(recipe.install.unwrap(), ["-e", ".[test,socks]"]);
        assert_eq!(recipe.env["A_B"], "1=2");
        assert_eq!(
            install_with_extras(Vec::new(), &overrides.extras),
            ["-e", ".[socks]"]
        );
    }

    #[test]
    fn invalid_additions_are_refused() {
        for overrides in [
            Overrides {
                env: vec!["1A=x".to_owned()],
                ..Overrides::default()
            },
            Overrides {
                env: vec!["NAME".to_owned()],
                ..Overrides::default()
            },
            Overrides {
                requirements: vec!["--index-url=x".to_owned()],
                ..Overrides::default()
            },
        ] {
            let error = apply(&mut Recipe::default(), &overrides).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Input);
        }
    }
}
