//! Repaired environments: the recipe that a repair found earlier, and repairs now.

use std::sync::Arc;

use testwright_sandboxes::SandboxError;
use testwright_sandboxes::environment::{self, Amendments, Draft, Environment};
use testwright_sandboxes::recipe::{self, Overrides, Recipe};
use testwright_sandboxes::repository::Source;

use super::Setup;
use crate::environment_repair::{self, FailedBuild, Repair};
use crate::trajectory::EnvironmentRepair;
use testwright_config::error::Result;

impl Setup<'_> {
    /// Sets the repair of a recorded run, whose recipe is used again.
    ///
    /// # Errors
    ///
    /// Fails if the recorded recipe is invalid.
    pub fn with_recorded_repair(mut self, repair: Option<&EnvironmentRepair>) -> Result<Self> {
        if let Some(repair) = repair {
            self.repaired_recipe = recipe::parse_settings(&repair.recipe, "the recorded recipe")?;
        }
        Ok(self)
    }

    /// Returns the repair of the environment, if there was one.
    pub fn environment_repair(&self) -> Option<&EnvironmentRepair> {
        self.repair.get()
    }

    /// Returns the recipe and its origin: the recorded one, the one that a repair found earlier, or what the repository
    /// says.
    pub(super) fn recipe(
        &self,
        source: &Source,
        overrides: &Overrides,
    ) -> std::result::Result<(Recipe, String), SandboxError> {
        if let Some(recipe) = &self.repaired_recipe {
            return Ok((recipe.clone(), "recorded after a repair".to_owned()));
        }
        let (recipe, origin) = recipe::find(source, overrides)?;
        if self.rebuild {
            return Ok((recipe, origin));
        }
        let settings = super::build_settings(self.settings);
        let amended = environment::amended_recipe(source, &recipe, &origin, &settings)?;
        Ok(amended.unwrap_or((recipe, origin)))
    }

    /// Lets the model repair the environment. Without one, adds advice to the error.
    pub(super) async fn repair(
        &self,
        source: &Source,
        recipe: &Recipe,
        origin: &str,
        mut error: SandboxError,
        overrides: &Overrides,
        draft: Arc<Draft>,
    ) -> std::result::Result<Environment, SandboxError> {
        let Some(assistant) = &self.repair_model else {
            let advice = environment_repair::advice(source, recipe, &error)?;
            error.message.push_str(&advice);
            return Err(error);
        };
        self.progress.note(&format!(
            "the environment could not be built: the model {} amends its recipe",
            assistant.model.name()
        ));
        let settings = self.build_settings(&draft);
        let logs = settings.cache.join("logs");
        std::fs::create_dir_all(&logs)?;
        let report = self.build_progress();
        let failed = FailedBuild {
            source,
            origin,
            pythons: overrides.pythons.clone(),
            error,
            conversation: logs.join(format!("repair-{}.jsonl", self.run)),
        };
        let backend = self.backend.as_ref();
        let amendments = Amendments::new(backend, source, recipe, origin, settings, &report);
        let progress = self.progress.as_ref();
        let repair = Repair::new(assistant, failed, amendments, progress);
        let (mut environment, record) = repair.run().await?;
        let tokens = record.usage.prompt_tokens + record.usage.completion_tokens;
        environment.notes.push(format!(
            "a model repaired the environment with {}, {} calls and {tokens} tokens: {}",
            environment_repair::amendments(record.amendments),
            record.calls,
            changes(recipe, &environment.recipe)
        ));
        // A setup prepares one environment.
        let _ = self.repair.set(record);
        Ok(environment)
    }
}

/// Returns the keys that differ from the original recipe, in one line.
fn changes(original: &Recipe, amended: &Recipe) -> String {
    let before = original.keys();
    let keys = amended.keys();
    let changed = keys
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(value));
    let changed = changed.map(|(key, value)| {
        // TOML would put long texts on several lines.
        let value = serde_json::to_string(value).unwrap_or_default();
        format!("{key} = {value}")
    });
    let removed = before.keys().filter(|key| !keys.contains_key(*key));
    let removed = removed.map(|key| format!("{key} removed"));
    changed.chain(removed).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_name_keys_in_one_line() {
        let original = Recipe {
            python: Some("3.13".to_owned()),
            requirements: vec!["pytest".to_owned()],
            git: true,
            ..Recipe::default()
        };
        let amended = Recipe {
            python: Some("3.8".to_owned()),
            env: [("A".to_owned(), "x\ny".to_owned())].into(),
            git: false,
            ..original.clone()
        };
        let changes = changes(&original, &amended);
        assert!(!changes.contains('\n'), "{changes}");
        for part in ["python = \"3.8\"", "env = {", "git removed"] {
            assert!(changes.contains(part), "{changes}");
        }
    }
}
