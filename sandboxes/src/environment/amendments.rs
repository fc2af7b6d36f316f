//! Amendments of a recipe that cannot be built as it is, each built from the results of earlier builds.
//!
//! The caller chooses the keys, e.g. from a model that reads the errors. An amended recipe is built and verified like any
//! other, with the same network and limits. Two results of a failed build are kept until [`Amendments::finish`]: the
//! layer of requirements, on which the next build adds to it, and the environment in which no test passed, so that tests
//! can be run in it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::build::Build;
use super::cache_keys::{self, Plan};
use super::lease::Lease;
use super::smoke_test::SmokeTestReport;
use super::{
    BuildSettings, Environment, Progress, SampleSettings, TestSample, lock, locked, prepare,
    records, sample_tests,
};
use crate::error::{ErrorKind, SandboxError};
use crate::recipe::{self, IMAGE_KEYS, Recipe};
use crate::repository::Source;
use crate::sandbox::{Backend, Result};

/// Origin of an amended recipe, before that of the original.
const ORIGIN: &str = "amended";

/// Results that outlast failed builds of one repository; see [`BuildSettings::draft`].
#[derive(Debug, Default)]
pub struct Draft {
    layer: Mutex<Option<Layer>>,
    rejected: Mutex<Option<Environment>>,
    sample: Mutex<Option<TestSample>>,
}

/// A saved layer of requirements and its inputs.
#[derive(Debug, Clone)]
struct Layer {
    name: String,
    recipe: Recipe,
    lines: BTreeSet<String>,
    constraints: Vec<String>,
    date: Option<String>,
}

impl Draft {
    /// Returns the saved layer if the planned one only adds to it.
    pub(super) fn layer_below(&self, recipe: &Recipe, plan: &Plan) -> Option<String> {
        let layer = locked(&self.layer).clone()?;
        let fixed = |recipe: &Recipe| {
            (
                recipe.python.clone(),
                recipe.image.clone(),
                recipe.interpreter.clone(),
                recipe.prereleases,
                recipe.services.clone(),
            )
        };
        let has_all = layer
            .lines
            .iter()
            .all(|line| plan.requirements.lines.contains(line));
        let is_below = has_all
            && fixed(recipe) == fixed(&layer.recipe)
            && layer.constraints == plan.requirements.constraints
            && layer.date == plan.date;
        is_below.then_some(layer.name)
    }

    /// Remembers the layer of requirements that was saved last.
    pub(super) fn keep_layer(&self, build: &Build<'_>) {
        let requirements = &build.plan.requirements;
        *locked(&self.layer) = Some(Layer {
            name: build.plan.dependencies.clone(),
            recipe: build.recipe.clone(),
            lines: requirements.lines.iter().cloned().collect(),
            constraints: requirements.constraints.clone(),
            date: build.plan.date.clone(),
        });
    }

    pub(super) fn keep_report(&self, report: &SmokeTestReport) {
        *locked(&self.sample) = Some(TestSample::from(report));
    }

    /// Keeps a saved environment that verification rejected. Returns the one kept before, unless its state was replaced.
    fn keep_rejected(&self, environment: Environment) -> Option<Environment> {
        let name = environment.saved.clone();
        let before = locked(&self.rejected).replace(environment);
        before.filter(|before| before.saved != name)
    }

    /// Returns what the last verification reported, and forgets it.
    pub fn take_sample(&self) -> Option<TestSample> {
        locked(&self.sample).take()
    }

    /// Removes the rejected environment.
    ///
    /// # Errors
    ///
    /// Fails if the backend cannot remove it, or the cache cannot be locked.
    pub async fn finish(&self, backend: &dyn Backend, settings: &BuildSettings) -> Result<()> {
        let rejected = locked(&self.rejected).take();
        let Some(Environment { saved, .. }) = rejected else {
            return Ok(());
        };
        let folder = settings.cache.join("environments");
        let _lock = lock(&folder.join(format!("{saved}.lock")), &|_| {}).await?;
        // Another process may have built an environment of the same name that works.
        let record = records::path(&folder, &saved);
        if records::read::<Environment>(&record).await.is_some() {
            return Ok(());
        }
        backend.remove_saved(&saved).await?;
        match tokio::fs::remove_file(records::removal_path(&folder, &saved)).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

impl Build<'_> {
    /// Returns the layer of an earlier build on which this one can be built.
    pub(super) async fn layer_below(&self) -> Result<Option<String>> {
        let draft = self.settings.draft.as_ref();
        let Some(name) = draft.and_then(|draft| draft.layer_below(self.recipe, self.plan)) else {
            return Ok(None);
        };
        let is_saved = self.backend.has_saved(&name).await?;
        if is_saved {
            self.log.line(&format!("== built on {name}\n"));
        }
        Ok(is_saved.then_some(name))
    }

    /// Keeps an environment that verification rejected, if its recipe may be amended. Returns one to remove: the one kept
    /// before, or this one.
    pub(super) fn keep_rejected(&self, mut environment: Environment) -> Option<Environment> {
        let Some(draft) = &self.settings.draft else {
            return Some(environment);
        };
        let folder = self.settings.cache.join("environments");
        let Ok(lease) = Lease::take(&folder, &environment.saved) else {
            return Some(environment);
        };
        environment.lease = Some(lease);
        draft.keep_rejected(environment)
    }

    pub(super) fn keep_for_amendments(&self) {
        if let Some(draft) = &self.settings.draft {
            draft.keep_layer(self);
        }
    }
}

/// A recipe under repair.
pub struct Amendments<'a> {
    backend: &'a dyn Backend,
    source: &'a Source,
    settings: BuildSettings,
    progress: Progress<'a>,
    original: Recipe,
    original_origin: String,
    recipe: Recipe,
    draft: Arc<Draft>,
}

impl<'a> Amendments<'a> {
    /// Starts from a recipe whose build failed with `settings` and their draft.
    pub fn new(
        backend: &'a dyn Backend,
        source: &'a Source,
        recipe: &Recipe,
        origin: &str,
        settings: BuildSettings,
        progress: Progress<'a>,
    ) -> Self {
        let draft = settings.draft.clone().unwrap_or_default();
        Amendments {
            backend,
            source,
            settings: BuildSettings {
                draft: Some(draft.clone()),
                // A layer built in steps can differ from one built at once, so other machines do not get it.
                shared: None,
                ..settings
            },
            progress,
            original: recipe.clone(),
            original_origin: origin.to_owned(),
            recipe: recipe.clone(),
            draft,
        }
    }

    /// Returns the recipe with all amendments so far.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Replaces keys of the recipe, then builds and verifies the environment.
    ///
    /// # Errors
    ///
    /// Kind `Input` or `NotFound` if a key is unknown, may not be amended or has a value that cannot be used here; the
    /// recipe then stays as it was. Otherwise as [`prepare`].
    pub async fn amend(&mut self, keys: toml::Table) -> Result<Environment> {
        if let Some(key) = IMAGE_KEYS.iter().find(|key| keys.contains_key(**key)) {
            return Err(SandboxError::input(format!("`{key}` cannot be amended")));
        }
        let amended = recipe::amend(&self.recipe, keys)?;
        let before = std::mem::replace(&mut self.recipe, amended);
        locked(&self.draft.sample).take();
        let origin = format!("{ORIGIN}, over {}", self.original_origin);
        let prepared = prepare(
            self.backend,
            self.source,
            &self.recipe,
            &origin,
            &self.settings,
            self.progress,
        )
        .await;
        let environment = match prepared {
            Err(error) if matches!(error.kind, ErrorKind::Input | ErrorKind::NotFound) => {
                self.recipe = before;
                return Err(error);
            }
            prepared => prepared?,
        };
        {
            let mut rejected = locked(&self.draft.rejected);
            // A change that is not part of the key, such as another runner, replaced the rejected environment.
            rejected.take_if(|rejected| rejected.saved == environment.saved);
        }
        // All commits with the original requirements start from the recipe that worked.
        let path = path(self.source, &self.original, &self.settings)?;
        crate::private::write(&path, environment.recipe.to_toml().as_bytes())?;
        Ok(environment)
    }

    /// Returns what verification reported about the last environment.
    pub fn take_sample(&self) -> Option<TestSample> {
        self.draft.take_sample()
    }

    /// Runs some tests of these files in the environment that verification rejected. Returns `None` without
    /// such an environment.
    ///
    /// # Errors
    ///
    /// As [`sample_tests`].
    pub async fn try_tests(&self, settings: &SampleSettings) -> Result<Option<TestSample>> {
        let rejected = locked(&self.draft.rejected).clone();
        let Some(environment) = rejected else {
            return Ok(None);
        };
        let sample = sample_tests(
            self.backend,
            &environment,
            self.source,
            &self.settings,
            settings,
            self.progress,
        );
        sample.await
    }

    /// Removes what only the repair needed.
    ///
    /// # Errors
    ///
    /// Fails if the backend cannot remove it.
    pub async fn finish(&self) -> Result<()> {
        self.draft.finish(self.backend, &self.settings).await
    }
}

/// Returns the amended recipe that worked earlier for this one, and its origin.
///
/// # Errors
///
/// Fails if the source cannot be read.
pub fn amended_recipe(
    source: &Source,
    recipe: &Recipe,
    origin: &str,
    settings: &BuildSettings,
) -> Result<Option<(Recipe, String)>> {
    let path = path(source, recipe, settings)?;
    let Ok(text) = std::fs::read_to_string(path) else {
        return Ok(None);
    };
    // A file in another format counts as missing.
    let amended = recipe::parse_settings(&text, ORIGIN).ok().flatten();
    Ok(amended.map(|amended| (amended, format!("{ORIGIN} earlier, over {origin}"))))
}

fn path(source: &Source, recipe: &Recipe, settings: &BuildSettings) -> Result<PathBuf> {
    let key = cache_keys::amendments(source, recipe)?;
    Ok(settings
        .cache
        .join("environments")
        .join(format!("{key}.toml")))
}
