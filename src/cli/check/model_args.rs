//! Options of `check` for the model that tries fixes and reviews.

use std::path::PathBuf;
use std::sync::Arc;

use crate::cli::headings::{LIMITS, MODEL};
use testwright_agent::agent::Progress;
use testwright_agent::job::CheckModel;
use testwright_config::error::Result;
use testwright_config::settings::{Flags, Settings};
use testwright_models::ModelName;

#[derive(Debug, clap::Args)]
pub(super) struct ModelArgs {
    /// Model that tries fixes of the issue on each accepted test and reviews it [default: none]
    #[arg(short, long, help_heading = MODEL, value_name = "NAME")]
    model: Option<String>,
    /// Maximum number of steps for each test: model calls without reviews [default: 60]
    #[arg(long, help_heading = LIMITS, value_name = "N", requires = "model")]
    max_steps: Option<u64>,
    /// Maximum cost in US dollars for each test; needs a price for the model (see `testwright
    /// models`) [default: no limit]
    #[arg(long, help_heading = LIMITS, value_name = "X", requires = "model")]
    max_dollars: Option<f64>,
    /// Maximum number of tokens for each test, prompts and completions together [default: no
    /// limit]
    #[arg(long, help_heading = LIMITS, value_name = "N", requires = "model")]
    max_tokens: Option<u64>,
    /// Folder with custom prompts: NAME.md replaces the prompt of that name
    #[arg(long, value_name = "DIR", requires = "model")]
    prompts: Option<PathBuf>,
}

impl ModelArgs {
    /// Adds these options to the flags, which override the settings.
    pub(super) fn add_to_flags(&self, flags: &mut Flags) {
        flags.set("run.max-steps", self.max_steps);
        flags.set("run.max-dollars", self.max_dollars);
        flags.set("run.max-tokens", self.max_tokens);
        flags.set("run.prompts", self.prompts.clone());
    }

    /// Opens the model, if `--model` is given. A model of the settings costs money, so it is not used.
    pub(super) async fn open(
        &self,
        settings: &Settings,
        progress: Arc<dyn Progress>,
    ) -> Result<Option<CheckModel>> {
        let Some(name) = self.model.as_deref() else {
            return Ok(None);
        };
        let model = CheckModel::open(settings, ModelName::parse(name)?, None, progress).await?;
        Ok(Some(model))
    }
}
