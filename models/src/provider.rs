//! Opens a model from its name and the settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use super::cassette::{Recorder, Replayer};
use super::name::Deployment;
use super::openai::{Azure, OPENAI_BASE_URL, OpenAi, OpenAiSettings};
use super::price::{PricedModel, price_of};
use super::quota::{DEFAULT_MAX_COMPLETION_TOKENS, MeteredModel, Quota};
use super::retry::{OnWait, Retry};
use super::{Model, ModelName, ModelSource, known_models};
use testwright_config::error::{Error, Result};
use testwright_config::settings::{AZURE_KEY, Settings};

/// A provider of a model, with its settings.
#[derive(Debug, Clone)]
pub enum Provider {
    /// The rule-based model.
    Snippet,
    /// A recording of an earlier conversation.
    Replay {
        /// Path of the recording.
        file: PathBuf,
        /// Whether answers come in order, without a check of the requests.
        lenient: bool,
    },
    /// An OpenAI-compatible server, including Azure.
    OpenAi(Box<OpenAiSettings>),
}

/// Looks up the value of an environment variable.
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Options for progress reports, recordings and quotas of a model's calls.
pub struct ModelOptions {
    /// Callback before each retry delay.
    pub on_wait: Option<OnWait>,
    /// File in which to record all exchanges.
    pub record: Option<PathBuf>,
    /// Quota of the calls.
    pub quota: Option<Arc<dyn Quota>>,
}

/// Default version of Azure's API: the latest one that is not a preview.
const AZURE_VERSION: &str = "2024-10-21";

impl Provider {
    /// Finds the model that `name` refers to.
    ///
    /// # Errors
    ///
    /// Fails with a usage error if a key, an address or a file is missing; its hint says what to set.
    pub fn new(name: &ModelName, settings: &Settings, variable: Variable<'_>) -> Result<Provider> {
        let model = match name.source() {
            ModelSource::Rules => return Ok(Provider::Snippet),
            ModelSource::Recording { file, lenient } => {
                let file = file.to_owned();
                return Ok(Provider::Replay { file, lenient });
            }
            ModelSource::Azure(model) | ModelSource::Service(model) => model,
        };
        let set = |name: &str| set_variable(variable, name);
        let base_url = settings
            .model
            .base_url
            .as_ref()
            .map(|a| a.reveal().to_owned());
        let key = settings.model_key().map(|k| k.reveal().to_owned());
        let deployment = azure_deployment(name, settings, variable);
        let is_azure = deployment.is_some();
        let mut openai = OpenAiSettings {
            temperature: settings.model.temperature,
            max_tokens: settings.model.max_tokens,
            stream: settings.model.stream,
            timeout: Duration::from_secs(settings.model.timeout_seconds),
            tools_in_text: settings.model.text_calls,
            key_variable: settings.model.api_key_env.clone(),
            ca_bundle: settings.build.ca_bundle.clone(),
            extra: settings.model.extra_body.clone(),
            ..OpenAiSettings::new(model)
        };
        if let Some(seed) = settings.model.seed {
            openai.extra.insert("seed".to_owned(), seed.into());
        }
        let key = if let Some(deployment) = deployment {
            if settings.model_key().is_none() || set(AZURE_KEY).is_some() {
                AZURE_KEY.clone_into(&mut openai.key_variable);
            }
            openai.base_url = base_url
                .or_else(|| set("AZURE_OPENAI_ENDPOINT"))
                .ok_or_else(|| {
                    Error::usage("reach Azure")
                        .cause("the resource's address is not set")
                        .hint("set AZURE_OPENAI_ENDPOINT or model.base-url, like https://NAME.openai.azure.com")
                })?;
            let api_version = settings
                .model
                .azure_api_version
                .clone()
                .or_else(|| set("AZURE_OPENAI_API_VERSION"))
                .or_else(|| set("OPENAI_API_VERSION"))
                .unwrap_or_else(|| AZURE_VERSION.to_owned());
            openai.azure = Some(Azure {
                deployment: Deployment::parse(&deployment)?,
                api_version,
            });
            set(AZURE_KEY).or(key)
        } else {
            check_provider(name, settings)?;
            openai.base_url = base_url.unwrap_or_else(|| OPENAI_BASE_URL.to_owned());
            key
        };
        // Local servers often need no API key; these two always do.
        let needs_key = is_azure || openai.base_url.trim_end_matches('/') == OPENAI_BASE_URL;
        if key.is_none() && needs_key {
            return Err(Error::usage(format!("reach the model `{name}`"))
                .cause(format!("{} is not set", openai.key_variable))
                .hint(format!(
                    "set {}, or another server (OPENAI_BASE_URL or model.base-url)",
                    openai.key_variable
                )));
        }
        openai.api_key = key.map(SecretString::from);
        Ok(Provider::OpenAi(Box::new(openai)))
    }

    /// Checks that the model's service can be reached and accepts the key, without a model call.
    ///
    /// # Errors
    ///
    /// Fails if the address has no server or serves a web page, or if the key is refused.
    pub async fn probe(&self) -> Result<()> {
        match self {
            Provider::OpenAi(settings) => Ok(OpenAi::new((**settings).clone())?.probe().await?),
            Provider::Snippet | Provider::Replay { .. } => Ok(()),
        }
    }

    /// Opens the model and wraps it with retries, prices and the recording. `snippet` creates the rule-based
    /// model.
    ///
    /// # Errors
    ///
    /// Fails if the client cannot be created or the recording cannot be opened.
    pub fn open(
        self,
        name: &ModelName,
        settings: &Settings,
        options: ModelOptions,
        snippet: impl FnOnce() -> Box<dyn Model>,
    ) -> Result<Box<dyn Model>> {
        let model: Box<dyn Model> = match self {
            Provider::Snippet => snippet(),
            Provider::Replay { file, lenient } => Box::new(replayer(&file, lenient)?),
            Provider::OpenAi(of_model) => {
                let completion_tokens = of_model.max_tokens;
                let completion_tokens = completion_tokens.unwrap_or(DEFAULT_MAX_COMPLETION_TOKENS);
                let client = OpenAi::new(*of_model).map_err(|e| Error {
                    kind: testwright_config::error::Kind::Usage,
                    ..Error::from(e)
                })?;
                let price = price_of(settings, name).cloned();
                // Metering is inside of retries, because a failed try may be billed too.
                let client: Box<dyn Model> = match options.quota {
                    Some(quota) => Box::new(MeteredModel {
                        inner: Box::new(client),
                        model: name.clone(),
                        price: price.clone(),
                        quota,
                        completion_tokens,
                    }),
                    None => Box::new(client),
                };
                let inner = Box::new(Retry::new(client, options.on_wait));
                Box::new(PricedModel { inner, price })
            }
        };
        match options.record {
            None => Ok(model),
            Some(path) => {
                let what = format!("record model traffic in {}", path.display());
                let recorder = Recorder::new(model, &path).map_err(|e| Error::io(what, &e))?;
                Ok(Box::new(recorder))
            }
        }
    }
}

/// Checks that no model of another provider is requested from OpenAI, which cannot serve it.
///
/// # Errors
///
/// Fails with a usage error that names the provider's address, if the settings name no address.
pub fn check_provider(name: &ModelName, settings: &Settings) -> Result<()> {
    let model = &settings.model;
    let is_elsewhere = model.base_url.is_some()
        || model.azure_deployment.is_some()
        || model.azure_api_version.is_some();
    let provider = known_models::other_provider(name).filter(|_| !is_elsewhere);
    let Some((provider, address)) = provider.and_then(|it| Some((it, it.base_url.as_ref()?)))
    else {
        return Ok(());
    };
    Err(Error::usage(format!("reach the model `{name}`"))
        .cause(format!(
            "it is a model of {}, but requests go to OpenAI, because no base URL is set",
            provider.name
        ))
        .hint(format!(
            "set OPENAI_BASE_URL to {address} (the OpenAI-compatible endpoint of {}), and {} to your key for it",
            provider.name, model.api_key_env
        )))
}

/// Returns the Azure deployment that serves a model; its name can differ from the model's. `None` if the
/// model is not on Azure.
pub fn azure_deployment(
    name: &ModelName,
    settings: &Settings,
    variable: Variable<'_>,
) -> Option<String> {
    let (model, has_azure_name) = match name.source() {
        ModelSource::Azure(model) => (model, true),
        ModelSource::Service(model) => (model, false),
        ModelSource::Rules | ModelSource::Recording { .. } => return None,
    };
    let set = |name: &str| set_variable(variable, name);
    if let Some(deployment) = &settings.model.azure_deployment {
        return Some(deployment.clone());
    }
    if has_azure_name {
        return Some(model.to_owned());
    }
    let is_azure_by_variables = settings.model.base_url.is_none()
        && settings.model_key().is_none()
        && set("AZURE_OPENAI_ENDPOINT").is_some();
    let is_azure = settings.model.azure_api_version.is_some() || is_azure_by_variables;
    is_azure.then(|| set("AZURE_OPENAI_DEPLOYMENT").unwrap_or_else(|| model.to_owned()))
}

/// Returns the value of a variable; an empty value counts as unset.
fn set_variable(variable: Variable<'_>, name: &str) -> Option<String> {
    variable(name).filter(|value| !value.trim().is_empty())
}

fn replayer(file: &Path, lenient: bool) -> Result<Replayer> {
    Replayer::open(file, lenient).map_err(|e| match e.kind() {
        std::io::ErrorKind::InvalidData => {
            Error::usage(format!("replay the recording {}", file.display())).cause(e)
        }
        _ => Error::io(format!("read the recording {}", file.display()), &e),
    })
}

#[cfg(test)]
mod tests;
