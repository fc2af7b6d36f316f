//! The model that a run talks to: by name, with the retries and prices of the settings.

use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::Progress;
use crate::rule_based::Snippet;
use testwright_config::error::Result;
use testwright_config::settings::Settings;
use testwright_models::price::Prices;
use testwright_models::provider::{ModelOptions, Provider};
use testwright_models::quota::Quota;
use testwright_models::{Model, ModelName};

/// What is done with the calls of a model.
#[derive(Default)]
pub struct ModelArgs {
    /// A file that takes all traffic.
    pub record: Option<PathBuf>,
    /// What they count against.
    pub quota: Option<Arc<dyn Quota>>,
}

/// The model of this name.
pub fn model(
    settings: &Settings,
    name: &ModelName,
    args: ModelArgs,
    progress: Arc<dyn Progress>,
) -> Result<Arc<dyn Model>> {
    let provider = Provider::new(name, settings, &|variable| std::env::var(variable).ok())?;
    let options = ModelOptions {
        on_wait: Some(Box::new(move |wait| {
            progress.note(&format!(
                "the model's service failed ({}): trying again in {:.0} s",
                wait.message, wait.seconds
            ));
        })),
        record: args.record,
        quota: args.quota,
        ..ModelOptions::default()
    };
    let prices = Prices::from(&settings.prices);
    provider
        .open(name, &prices, options, || Box::new(Snippet))
        .map(Arc::from)
}
