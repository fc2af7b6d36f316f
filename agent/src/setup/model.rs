//! The model of a run, selected by name, with the retries and prices of the settings.

use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::Progress;
use crate::rule_based::Snippet;
use testwright_config::error::Result;
use testwright_config::settings::Settings;
use testwright_models::provider::{ModelOptions, Provider};
use testwright_models::quota::Quota;
use testwright_models::{Model, ModelName};

/// Checks that the model's service can be reached and accepts the key, so that nothing is built for a run that
/// cannot call it.
///
/// # Errors
///
/// Fails if the model cannot be used with these settings, its address has no server or serves a web page, or the
/// key is refused.
pub async fn check_service(settings: &Settings, name: &ModelName) -> Result<()> {
    let provider = Provider::new(name, settings, &|variable| std::env::var(variable).ok())?;
    provider.probe().await
}

/// Opens the model with this name. All traffic is recorded in the file `record`, and calls count against the quota.
///
/// # Errors
///
/// Fails if the model cannot be used with these settings, or the recording cannot be opened.
pub fn model(
    settings: &Settings,
    name: &ModelName,
    record: Option<PathBuf>,
    quota: Option<Arc<dyn Quota>>,
    progress: Arc<dyn Progress>,
) -> Result<Arc<dyn Model>> {
    let provider = Provider::new(name, settings, &|variable| std::env::var(variable).ok())?;
    let options = ModelOptions {
        on_wait: Some(Box::new(move |wait| {
            progress.waiting(&format!(
                "the model's service failed ({}); retrying in {:.0} s",
                wait.message, wait.seconds
            ));
        })),
        record,
        quota,
    };
    provider
        .open(name, settings, options, || Box::new(Snippet))
        .map(Arc::from)
}
