//! The Python of a build whose pinned requirements do not suit the detected version.

use std::path::PathBuf;

use super::BuildSettings;
use super::cache_keys::{self, Plan};
use crate::recipe::{self, Recipe};
use crate::repository::Source;
use crate::sandbox::{Backend, Result};

/// Maximum versions to try besides the recipe's.
const MAX_TRIED: usize = 5;

/// A choice of Python among a recipe's and older versions.
pub(super) struct Choice {
    original: Recipe,
    /// Version instead of the recipe's.
    version: Option<String>,
    tried: Vec<String>,
    /// Whether no other version is looked for.
    is_final: bool,
    /// File that remembers the choice for the next time. `None` if the version was not guessed.
    record: Option<PathBuf>,
    /// Plan of the original recipe, if it is known.
    plan: Option<Plan>,
}

impl Choice {
    /// Starts with the remembered version, or with the recipe's.
    pub(super) fn read(
        backend: &dyn Backend,
        source: &Source,
        recipe: &Recipe,
        origin: &str,
        settings: &BuildSettings,
    ) -> Result<Choice> {
        let mut choice = Choice {
            original: recipe.clone(),
            version: None,
            tried: Vec::new(),
            is_final: false,
            record: None,
            plan: None,
        };
        if recipe.image.is_some() || recipe.python.is_none() {
            return Ok(choice);
        }
        let plan = cache_keys::plan(backend, source, recipe, origin, None)?;
        let plan = choice.plan.insert(plan);
        if !plan.guess.python {
            return Ok(choice);
        }
        let folder = settings.cache.join("environments");
        let record = folder.join(format!("{}.python", plan.environment));
        let remembered = std::fs::read_to_string(&record).ok();
        let version = remembered.map(|text| text.trim().to_owned());
        choice.version =
            version.filter(|version| !settings.rebuild && recipe::parse_python(version).is_some());
        choice.record = Some(record);
        Ok(choice)
    }

    /// Returns the plan of the recipe to build, if it is known. Later calls return none.
    pub(super) fn take_plan(&mut self) -> Option<Plan> {
        self.plan.take().filter(|_| self.version.is_none())
    }

    /// Returns the recipe to build.
    pub(super) fn recipe(&self) -> Recipe {
        let mut recipe = self.original.clone();
        if let Some(version) = &self.version {
            recipe.python = Some(version.clone());
        }
        recipe.stated.python |= self.is_final;
        recipe
    }

    /// Chooses an older version, unless enough were tried. Returns whether to build again.
    pub(super) fn try_version(&mut self, version: &str) -> bool {
        if self.is_final
            || self.tried.len() >= MAX_TRIED
            || self.tried.iter().any(|tried| tried == version)
        {
            return false;
        }
        self.tried.push(version.to_owned());
        self.version = Some(version.to_owned());
        true
    }

    /// Returns to the recipe's version, without the requirements that it cannot install. Returns whether to build again.
    pub(super) fn leave_out(&mut self) -> bool {
        let again = self.version.is_some() && !self.is_final && !self.tried.is_empty();
        if again {
            self.version = None;
            self.is_final = true;
        }
        again
    }

    /// Remembers the version that worked.
    pub(super) fn record(&self) -> Result<()> {
        if let (Some(record), Some(version)) = (&self.record, &self.version) {
            crate::private::write(record, version.as_bytes())?;
        }
        Ok(())
    }

    /// Returns a note about a version other than the recipe's.
    pub(super) fn note(&self) -> Option<String> {
        let version = self.version.as_ref()?;
        let original = self.original.python.as_deref().unwrap_or_default();
        Some(format!(
            "used Python {version} instead of {original}, which cannot install the pinned requirements"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn original_version_is_the_last_resort() {
        let mut choice = Choice {
            original: Recipe {
                python: Some("3.13".to_owned()),
                ..Recipe::default()
            },
            version: None,
            tried: Vec::new(),
            is_final: false,
            record: None,
            plan: None,
        };
        assert!(!choice.leave_out());
        assert!(choice.try_version("3.12") && !choice.try_version("3.12"));
        assert_eq!(choice.recipe().python.as_deref(), Some("3.12"));
        assert!(choice.note().is_some());
        assert!(choice.leave_out() && !choice.leave_out());
        assert_eq!(choice.recipe().python.as_deref(), Some("3.13"));
        assert!(choice.recipe().stated.python && choice.note().is_none());
        assert!(!choice.try_version("3.11"));
    }
}
