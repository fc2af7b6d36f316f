//! Completes the evidence on a test with a model: candidate fixes and a reviewer.

use std::path::PathBuf;
use std::sync::Arc;

use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;
use testwright_models::quota::Quota;
use testwright_models::{Model, ModelName};
use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::repository::Source;

use super::{PreparedRun, RunJob};
use crate::agent::{CpuPermit, Outcome, Progress};
use crate::approaches::extra_inputs::ExtraInputs;
use crate::approaches::{CHECK, Variant, model_selection};
use crate::check::CheckEvidence;
use crate::custom_prompts;
use crate::issues::Issue;
use crate::session::Session;
use crate::setup::{self, RepositoryLocation};

/// A model that checks tests.
pub struct CheckModel {
    settings: Settings,
    name: ModelName,
    model: Arc<dyn Model>,
    progress: Arc<dyn Progress>,
}

/// The place in which a test is checked with a model.
pub struct CheckPlace {
    /// Location of the old code.
    pub location: RepositoryLocation,
    /// Old code.
    pub source: Source,
    /// Environment of the old code.
    pub environment: Environment,
    /// Session without changes, which the check ends.
    pub session: Session,
    /// Folder for the trajectory.
    pub out: PathBuf,
}

impl CheckModel {
    /// Opens the model of this name, and checks its service. The budget of the settings is for each test.
    ///
    /// # Errors
    ///
    /// Fails if the model cannot be used with these settings, or its service does not respond.
    pub async fn open(
        settings: &Settings,
        name: ModelName,
        quota: Option<Arc<dyn Quota>>,
        progress: Arc<dyn Progress>,
    ) -> Result<Self> {
        let mut settings = settings.clone();
        settings.set_approach(CHECK.name);
        settings.run.model = Some(name.to_string());
        model_selection::select(&settings)?;
        // The evidence of a doubtful test is wanted too.
        settings.run.min_confidence = None;
        let model = setup::model(&settings, &name, None, quota, progress.clone())?;
        setup::check_service(&settings, &name).await?;
        Ok(CheckModel {
            model,
            settings,
            name,
            progress,
        })
    }

    /// Returns the name of the model with its limits and the digest of custom prompts. A check with others must be
    /// repeated.
    pub fn key(&self) -> String {
        let run = &self.settings.run;
        let limits = (run.max_steps, run.max_dollars, run.max_tokens);
        let prompts = custom_prompts::digest().unwrap_or_default();
        format!("{} {limits:?} {prompts}", self.name)
    }

    /// Tries candidate fixes on an accepted test and asks a reviewer, and adds both to its evidence. A test that is not
    /// accepted costs no model call.
    ///
    /// # Errors
    ///
    /// Fails if the model or the sandbox fails, the trajectory cannot be written, or an interrupt arrives.
    pub async fn complete(
        &self,
        evidence: &mut CheckEvidence,
        issue: &Issue,
        place: CheckPlace,
    ) -> Result<()> {
        let job = RunJob {
            extra_inputs: ExtraInputs {
                test_patch: Some(evidence.patch.clone()),
                ..ExtraInputs::default()
            },
            ..RunJob::new(
                self.settings.clone(),
                issue.clone(),
                place.location,
                Variant::plain(CHECK),
                self.name.clone(),
                place.out,
            )
        };
        let prepared = PreparedRun {
            source: place.source,
            environment: place.environment,
            session: place.session,
            model: self.model.clone(),
            processor: CpuPermit::default(),
            environment_repair: None,
        };
        let (record, _) = job.execute_in(prepared, self.progress.clone()).await?;
        let note = match record.outcome {
            Outcome::Accepted { patch, .. } if patch != evidence.patch => {
                "the model changed the test, so its fixes and its review do not count".to_owned()
            }
            Outcome::Accepted { evidence: card, .. } => {
                evidence.fixes = card.fixes;
                evidence.review = card.review;
                evidence.estimate_probability();
                return Ok(());
            }
            Outcome::Interrupted => return Err(Error::interrupted()),
            Outcome::ModelFailed { message, hint }
            | Outcome::Infrastructure { message, hint, .. } => {
                return Err(Error {
                    hint,
                    ..Error::infrastructure("check the test with the model").cause(message)
                });
            }
            other => format!("the model did not finish the check: {}", other.summary()),
        };
        evidence.notes.push(note);
        Ok(())
    }
}
