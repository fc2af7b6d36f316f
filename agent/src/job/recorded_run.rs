//! An interrupted run, to be resumed.

use std::path::Path;

use serde::{Deserialize, Serialize};
use testwright_sandboxes::plain_file::{self, Links, MAX_DOCUMENT};
use testwright_sandboxes::sandbox::quote;

use crate::agent::Outcome;
use crate::approaches::extra_inputs::ExtraInputs;
use crate::custom_prompts;
use crate::setup::RepositoryLocation;
use crate::trajectory::{Event, RunFolder, Started};
use testwright_config::error::{Error, Result};
use testwright_config::settings::{RecipeAdditions, Settings};

/// The folder and all recorded events of an interrupted run.
pub struct RecordedRun {
    /// First event of the run.
    pub started: Started,
    /// Settings with which the run started.
    pub settings: RecordedSettings,
    pub(super) folder: RunFolder,
    pub(super) events: Vec<Event>,
}

impl RecordedRun {
    /// Opens the run in this folder.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be used, or if the run had not started or has ended.
    pub fn open(path: &Path) -> Result<Self> {
        let (folder, events) = RunFolder::reopen(path).map_err(|error| {
            Error::usage(error.to_string()).hint("pass --resume the folder of an interrupted run")
        })?;
        let Some(Event::Started(started)) = events.first() else {
            return Err(Error::usage(format!("resume {}", path.display()))
                .cause("its trajectory is empty: the run had not started yet")
                .hint("start it again without --resume"));
        };
        if let Some(Event::Ended { outcome }) = events.last() {
            return Err(Error::usage(format!("resume {}", path.display()))
                .cause(format!("that run has ended: {}", outcome.summary()))
                .hint(format!(
                    "show its result: testwright show {}",
                    quote(&path.to_string_lossy())
                )));
        }
        let settings = serde_json::from_value(started.settings.clone()).map_err(|error| {
            Error::usage(format!("read the settings recorded in {}", path.display()))
                .cause(error.to_string())
        })?;
        Ok(RecordedRun {
            started: started.as_ref().clone(),
            settings,
            folder,
            events,
        })
    }
}

/// Returns the outcome that `run.json` has for a run without an end in its trajectory, because it can be resumed.
pub fn recorded_outcome(folder: &Path) -> Option<Outcome> {
    let file = folder.join("run.json");
    let bytes = plain_file::read(&file, Links::Refuse, MAX_DOCUMENT).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// The settings stored at the start of a trajectory, with which the run can be resumed.
#[derive(Debug, Serialize, Deserialize)]
pub struct RecordedSettings {
    /// Source of the old code: an absolute path or a URL.
    pub repository: String,
    /// Kind of sandbox: `local`, `docker` or `landlock`.
    pub sandbox: String,
    /// Docker image that replaces the environment, if set.
    pub image: Option<String>,
    /// Dockerfile of the repository whose image replaces the environment, if set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dockerfile: Option<String>,
    /// Python version, `X.Y`, if set.
    pub python: Option<String>,
    /// Folder of the one project to use, if set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Additions to the recipe of the repository.
    #[serde(default, skip_serializing_if = "RecipeAdditions::is_empty")]
    pub additions: RecipeAdditions,
    /// Maximum number of steps: model calls without reviews.
    pub max_steps: u64,
    /// Maximum cost in US dollars; `None` for no limit.
    pub max_dollars: Option<f64>,
    /// Maximum number of tokens, prompts and completions together; `None` for no limit.
    pub max_tokens: Option<u64>,
    /// Maximum minutes, not counting the environment build.
    pub max_minutes: f64,
    /// Minimum confidence (0 to 1); `None` if no test is withheld.
    #[serde(default)]
    pub min_confidence: Option<f64>,
    /// Extra inputs, by content, so that the resumed run uses the same.
    #[serde(default, skip_serializing_if = "ExtraInputs::is_empty")]
    pub extra_inputs: ExtraInputs,
    /// Digest of the custom prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<String>,
}

impl RecordedSettings {
    pub(super) fn new(
        settings: &Settings,
        place: &RepositoryLocation,
        extra_inputs: &ExtraInputs,
    ) -> Self {
        let absolute = std::path::absolute(&place.location)
            .ok()
            .filter(|path| path.exists())
            .map(|path| path.to_string_lossy().into_owned());
        RecordedSettings {
            repository: absolute.unwrap_or_else(|| place.location.clone()),
            sandbox: settings.run.sandbox.clone(),
            image: settings.run.image.clone(),
            dockerfile: settings.run.dockerfile.clone(),
            python: settings.run.python.clone(),
            project: settings.run.project.clone(),
            additions: settings.additions.clone(),
            max_steps: settings.run.max_steps,
            max_dollars: settings.run.max_dollars,
            max_tokens: settings.run.max_tokens,
            max_minutes: settings.run.max_minutes,
            min_confidence: settings.run.min_confidence,
            extra_inputs: extra_inputs.clone(),
            prompts: custom_prompts::digest(),
        }
    }
}
