//! The names under which layers are saved: digests of all their inputs.

use serde_json::json;
use sha2::{Digest, Sha256};

use super::{editable, requirements, scm_version};
use crate::hex::hex;
use crate::recipe::{ProjectMetadata, Recipe, resolution_date};
use crate::repository::{Source, Tree};
use crate::sandbox::{Backend, Result};

/// Format version. Raise it whenever the way environments are built changes.
const FORMAT: u32 = 3;

/// The layers to build and their inputs.
pub(super) struct Plan {
    pub dependencies: String,
    pub environment: String,
    /// Date as of which packages are resolved.
    pub date: Option<String>,
    pub requirements: requirements::Requirements,
    pub version: scm_version::ScmVersion,
    pub editable: editable::Editable,
    /// Whether the recipe was detected from the repository, so parts of it may be wrong.
    pub guessed: bool,
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
    let environment = name("env", &environment);
    Ok(Plan {
        dependencies,
        environment,
        date,
        requirements,
        version,
        editable,
        guessed: origin.starts_with("detected"),
    })
}

fn name(kind: &str, content: &serde_json::Value) -> String {
    let digest = Sha256::digest(content.to_string().as_bytes());
    format!("{kind}-{}", hex(&digest[..10]))
}
