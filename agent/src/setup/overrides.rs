//! The user's settings that override the recipe of a repository, with the image of its Dockerfile.

use std::sync::Arc;

use testwright_sandboxes::SandboxError;
use testwright_sandboxes::environment::{self, BaseImage};
use testwright_sandboxes::recipe::{self, Overrides, Recipe};
use testwright_sandboxes::repository::Source;

use super::Setup;

impl Setup<'_> {
    /// Returns what overrides the recipe. The image stays in the cache while the second value exists.
    pub(super) async fn overrides(
        &self,
        source: &Source,
        location: &str,
    ) -> std::result::Result<(Overrides, Option<BaseImage>), SandboxError> {
        let (run, additions) = (&self.settings.run, &self.settings.additions);
        let keys = self.settings.environment_of(location);
        if keys.is_none() && self.settings.environment.is_some() {
            self.progress.note("[environment] of the testwright.toml in the current folder is ignored: it is for the code in that folder, not for this repository");
        }
        let pythons = recipe::available_pythons(self.backend.as_ref()).await?;
        let base = match &run.dockerfile {
            Some(file) => Some(self.base_image(source, file, &pythons).await?),
            None => None,
        };
        let image = base.as_ref().map(|base| base.name.clone());
        let overrides = Overrides {
            keys: keys.map(|recipe| (recipe.keys(), self.settings.environment_file())),
            python: run.python.clone(),
            image: image.or_else(|| run.image.clone()),
            no_built_in: self.no_built_in,
            pythons,
            project: run.project.clone(),
            subject: self.subject.clone(),
            paths: self.paths.clone(),
            preferred_python: self.preferred_python.clone(),
            requirements: additions.requirements.clone(),
            extras: additions.extras.clone(),
            env: additions.env.clone(),
        };
        Ok((overrides, base))
    }

    /// Describes a recipe in one line, with the flag, variable or file that states its Python.
    pub(super) fn describe(&self, recipe: &Recipe, origin: &str) -> String {
        let python = self.settings.run.python.as_ref();
        let is_stated = python.is_some() && recipe.python.as_ref() == python;
        let stated_by = is_stated.then(|| self.settings.origin("run.python").to_string());
        describe(recipe, origin, stated_by.as_deref())
    }

    async fn base_image(
        &self,
        source: &Source,
        file: &str,
        pythons: &[String],
    ) -> std::result::Result<BaseImage, SandboxError> {
        let settings = self.build_settings(&Arc::default());
        let (backend, report) = (self.backend.as_ref(), self.build_progress());
        environment::build_base_image(backend, source, file, pythons, &settings, &report).await
    }
}

fn describe(recipe: &Recipe, origin: &str, stated_by: Option<&str>) -> String {
    match (&recipe.image, &recipe.python, stated_by) {
        (Some(image), _, _) if origin == "image" => format!("image {image}"),
        (Some(image), _, _) => format!("image {image} ({origin})"),
        (None, Some(python), Some(flag)) => format!("Python {python} ({flag}, over {origin})"),
        (None, Some(python), None) => format!("Python {python} ({origin})"),
        (None, None, _) => origin.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stated_python_names_its_flag() {
        let recipe = Recipe {
            python: Some("3.10".to_owned()),
            ..Recipe::default()
        };
        let describe = |stated_by| describe(&recipe, "detected from setup.cfg", stated_by);
        assert_eq!(describe(None), "Python 3.10 (detected from setup.cfg)");
        let expected = "Python 3.10 (--python, over detected from setup.cfg)";
        assert_eq!(describe(Some("--python")), expected);
        let recipe = Recipe {
            image: Some("mine:1".to_owned()),
            ..Recipe::default()
        };
        assert_eq!(super::describe(&recipe, "image", None), "image mine:1");
    }
}
