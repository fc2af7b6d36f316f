//! The names under which layers are saved: digests of all their inputs.

use serde_json::json;
use sha2::{Digest, Sha256};

use super::{editable, requirements, scm_version};
use crate::hex::hex;
use crate::recipe::{ProjectMetadata, Recipe, resolution_date};
use crate::repository::{Source, Tree};
use crate::sandbox::{Backend, Result};

/// Format version. Raise it whenever the way environments are built changes.
const FORMAT: u32 = 4;

/// The layers to build and their inputs.
pub(super) struct Plan {
    pub dependencies: String,
    pub environment: String,
    /// Date as of which packages are resolved.
    pub date: Option<String>,
    pub requirements: requirements::Requirements,
    pub version: scm_version::ScmVersion,
    pub editable: editable::Editable,
    /// The parts that were detected.
    pub guess: Guess,
}

/// Parts of a recipe that were detected from the repository and that no file or option states, so they may be wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Guess {
    /// Any part: what tests turn out to lack is added.
    pub any: bool,
    pub python: bool,
    pub requirements: bool,
    pub install: bool,
    pub services: bool,
    pub before_tests: bool,
    /// Whether the tests decide that the environment works. The recipes that come with the program are tested.
    pub untried: bool,
}

impl Guess {
    fn new(recipe: &Recipe, origin: &str) -> Guess {
        let any = origin.starts_with("detected") || origin.contains(", over detected");
        let stated = &recipe.stated;
        Guess {
            any,
            python: any && !stated.python,
            requirements: any && !stated.requirements,
            install: any && !stated.install,
            services: any && !stated.services,
            before_tests: any && !stated.before_tests,
            untried: !origin.starts_with("built-in"),
        }
    }
}

pub(super) fn plan(
    backend: &dyn Backend,
    source: &Source,
    recipe: &Recipe,
    origin: &str,
    image: Option<&str>,
) -> Result<Plan> {
    let tree: Tree = source.tree()?;
    let date = resolution_date(recipe, source);
    let requirements = requirements::gather(recipe, &tree, date.as_deref())?;
    let version = scm_version::from_git(source, &tree, &recipe.projects)?;
    let mut dependencies = json!({
            "format": FORMAT,
            "layout": backend.layout(),
            "python": recipe.python,
            "image": image,
            "interpreter": recipe.interpreter,
            "system": recipe.system_packages,
            "requirements": requirements.lines,
            "constraints": requirements.constraints,
            "build": requirements.build_constraints,
            "prereleases": recipe.prereleases,
            "date": date,
            "env": recipe.env,
    });
    // Optional parts are added only if present, here and below, so that all other keys stay the same.
    if !recipe.services.is_empty() {
        dependencies["services"] = json!(recipe.services);
    }
    let dependencies = name("deps", &dependencies);
    let editable =
        editable::detect_editable(recipe.install.as_deref(), recipe.image.is_some(), &tree)?;
    let mut environment = json!({
            "dependencies": dependencies,
            "source": source.digest,
            "before": recipe.before_install,
            "install": recipe.install,
            "after": recipe.after_install,
            "git": recipe.git,
            "version": version.version,
            "options": recipe.runner.options,
    });
    if editable.by_setuptools {
        environment["editable"] = json!("path");
    }
    if ProjectMetadata::read(&tree)?.is_built_by_meson() {
        environment["isolation"] = json!(false);
    }
    if !recipe.projects.is_empty() {
        environment["projects"] = json!(recipe.projects);
    }
    let guess = Guess::new(recipe, origin);
    if !recipe.before_tests.is_empty() {
        // A guessed command that fails is omitted from the environment, but the same stated one is not.
        let key = match guess.before_tests {
            true => "guessed-before-tests",
            false => "before-tests",
        };
        environment[key] = json!(recipe.before_tests);
    }
    let environment = name("env", &environment);
    Ok(Plan {
        dependencies,
        environment,
        date,
        requirements,
        version,
        editable,
        guess,
    })
}

/// Returns the name under which amendments of a recipe are remembered. Commits with the same requirements share them.
pub(super) fn amendments(source: &Source, recipe: &Recipe) -> Result<String> {
    let date = resolution_date(recipe, source);
    let requirements = requirements::gather(recipe, &source.tree()?, date.as_deref())?;
    let key = json!({
            "format": FORMAT,
            "repository": source.name,
            "recipe": recipe,
            "requirements": requirements.lines,
            "constraints": requirements.constraints,
    });
    Ok(name("amended", &key))
}

fn name(kind: &str, content: &serde_json::Value) -> String {
    let digest = Sha256::digest(content.to_string().as_bytes());
    format!("{kind}-{}", hex(&digest[..10]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Stated;

    #[test]
    fn stated_parts_are_not_guessed() {
        let plain = Guess::new(&Recipe::default(), "detected from setup.py");
        assert!(plain.any && plain.requirements && plain.install && plain.python);
        let recipe = Recipe {
            stated: Stated {
                requirements: true,
                ..Stated::default()
            },
            ..Recipe::default()
        };
        let one_key = Guess::new(&recipe, "own.toml, over detected from setup.py");
        assert!(one_key.any && one_key.install && !one_key.requirements);
        let given = Guess::new(&Recipe::default(), "testwright.toml");
        assert!(!given.any && !given.install && given.untried);
        assert!(!Guess::new(&Recipe::default(), "built-in x").untried);
    }
}
