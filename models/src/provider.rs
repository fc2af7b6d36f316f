//! Opens a model from its name and the settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use super::cassette::{Recorder, Replayer};
use super::name::Deployment;
use super::openai::{Azure, OPENAI_BASE_URL, OpenAi, OpenAiSettings};
use super::price::{PricedModel, Prices};
use super::quota::{MeteredModel, Quota};
use super::retry::{Retry, RetrySettings, Wait};
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

/// Callback before each wait.
pub type OnWait = Box<dyn Fn(&Wait) + Send + Sync>;

/// Options for retries, progress reports and recordings of a model's calls.
#[derive(Default)]
pub struct ModelOptions {
    /// Number and length of retries.
    pub retry: RetrySettings,
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
        prices: &Prices,
        options: ModelOptions,
        snippet: impl FnOnce() -> Box<dyn Model>,
    ) -> Result<Box<dyn Model>> {
        let model: Box<dyn Model> = match self {
            Provider::Snippet => snippet(),
            Provider::Replay { file, lenient } => Box::new(replayer(&file, lenient)?),
            Provider::OpenAi(settings) => {
                let completion_tokens = settings.max_tokens;
                let client = OpenAi::new(*settings).map_err(|e| Error {
                    kind: testwright_config::error::Kind::Usage,
                    ..Error::from(e)
                })?;
                let price = prices.price_of(name).cloned();
                // Metering is inside of retries, because a failed try may be billed too.
                let client: Box<dyn Model> = match options.quota {
                    Some(quota) => Box::new(MeteredModel::new(
                        Box::new(client),
                        name.clone(),
                        price.clone(),
                        quota,
                        completion_tokens,
                    )),
                    None => Box::new(client),
                };
                let mut retry = Retry::new(client, options.retry);
                if let Some(tell) = options.on_wait {
                    retry = retry.on_wait(tell);
                }
                Box::new(PricedModel::new(Box::new(retry), price))
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
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use secrecy::ExposeSecret;

    use super::*;
    use testwright_config::settings::{Settings, Sources};

    fn provider(name: &str, variables: &[(&str, &str)]) -> Result<Provider> {
        let variables: std::collections::BTreeMap<String, String> = variables
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        let sources = Sources {
            variables: variables.clone(),
            ..Sources::default()
        };
        let settings = Settings::load(&sources).unwrap();
        let name = ModelName::parse(name)?;
        Provider::new(&name, &settings, &|name| variables.get(name).cloned())
    }

    fn openai(name: &str, variables: &[(&str, &str)]) -> OpenAiSettings {
        match provider(name, variables) {
            Ok(Provider::OpenAi(settings)) => *settings,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn plain_names_use_openai() {
        for name in ["gpt-5-mini", "openai/gpt-5-mini"] {
            let it = openai(name, &[("OPENAI_API_KEY", "sk-x")]);
            assert_eq!(
                (it.model.as_str(), it.base_url.as_str()),
                ("gpt-5-mini", OPENAI_BASE_URL)
            );
            assert_eq!(it.api_key.unwrap().expose_secret(), "sk-x");
            assert_eq!(it.azure, None);
        }
        let it = openai(
            "Qwen/Qwen2.5",
            &[("OPENAI_BASE_URL", "http://127.0.0.1:8085/v1")],
        );
        assert_eq!(it.model, "Qwen/Qwen2.5", "other slashes belong to the name");
    }

    #[test]
    fn only_openai_needs_key() {
        let it = openai("m", &[("OPENAI_BASE_URL", "http://127.0.0.1:8085/v1")]);
        assert!(it.api_key.is_none());
        let error = provider("gpt-5-mini", &[]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(
            error.render().contains("OPENAI_API_KEY is not set"),
            "{}",
            error.render()
        );
        // A resumed run cannot change its model.
        assert!(!error.render().contains("--model"), "{}", error.render());
    }

    #[test]
    fn models_of_others_are_not_requested_from_openai() {
        let key = ("OPENAI_API_KEY", "k");
        let error = provider("claude-sonnet-4-5", &[key]).unwrap_err().render();
        assert!(error.contains("a model of Anthropic"), "{error}");
        assert!(error.contains("OPENAI_BASE_URL to https://api.anthropic.com/v1 "));
        let base = ("OPENAI_BASE_URL", "https://gateway.example.org/v1");
        let it = openai("claude-sonnet-4-5", &[key, base]);
        assert_eq!(it.base_url, "https://gateway.example.org/v1");
    }

    #[test]
    fn azure_is_selected_by_variables_or_name() {
        let variables = [
            ("AZURE_OPENAI_ENDPOINT", "https://me.openai.azure.com"),
            ("AZURE_OPENAI_API_KEY", "k"),
            ("AZURE_OPENAI_API_VERSION", "2025-01-01-preview"),
        ];
        for name in ["my-gpt", "azure/my-gpt"] {
            let it = openai(name, &variables);
            assert_eq!(it.base_url, "https://me.openai.azure.com");
            assert_eq!(
                it.azure,
                Some(Azure {
                    deployment: Deployment::parse("my-gpt").unwrap(),
                    api_version: "2025-01-01-preview".to_owned()
                })
            );
            assert_eq!(it.key_variable, AZURE_KEY);
        }
        let error = provider("azure/my-gpt", &variables[..1]).unwrap_err();
        assert!(error.render().contains(AZURE_KEY), "{}", error.render());
        let both = [&variables[..], &[("OPENAI_API_KEY", "sk-x")]].concat();
        assert_eq!(
            openai("gpt-5-mini", &both).azure,
            None,
            "OpenAI's own key comes first"
        );
    }

    #[test]
    fn reported_deployment_matches_calls() {
        let endpoint = ("AZURE_OPENAI_ENDPOINT", "https://me.openai.azure.com");
        let (key, variable) = (
            ("AZURE_OPENAI_API_KEY", "k"),
            ("AZURE_OPENAI_DEPLOYMENT", "prod"),
        );
        let setting = ("TESTWRIGHT_MODEL_AZURE_DEPLOYMENT", "set");
        for (name, variables, expected) in [
            ("gpt-5", vec![endpoint, key], "gpt-5"),
            ("gpt-5", vec![endpoint, key, variable], "prod"),
            ("azure/gpt-5", vec![endpoint, key, variable], "gpt-5"),
            ("azure/gpt-5", vec![endpoint, key, variable, setting], "set"),
        ] {
            let azure = openai(name, &variables).azure.unwrap();
            assert_eq!(azure.deployment, Deployment::parse(expected).unwrap());
        }
    }

    /// Names composed of parts with a meaning in names, paths or addresses.
    #[test]
    fn hostile_names_reach_no_other_target() {
        let parts = [
            "replay:",
            "replay-by-order:",
            "azure/",
            "openai/",
            "snippet",
            "gpt-5",
            "m",
            "/",
            "..",
            ".",
            "?",
            "#",
            "%2f",
            "%",
            "@",
            ":",
            "\\",
            " ",
            "\t",
            "\n",
            "\0",
            "\u{a0}",
            "\u{200b}",
            "ä",
            "//",
            "etc",
            ";",
            "&a=b",
            "http://h/",
        ];
        let base = (
            "TESTWRIGHT_MODEL_BASE_URL",
            "https://models.example.org/below/v1",
        );
        let version = ("TESTWRIGHT_MODEL_AZURE_API_VERSION", "1");
        let keys = [
            ("OPENAI_API_KEY", "k"),
            ("AZURE_OPENAI_API_KEY", "k"),
            base,
            version,
        ];
        let mut random = fastrand::Rng::with_seed(1);
        let mut counts = [0; 2];
        for _ in 0..4_000 {
            let number = random.usize(1..6);
            let name: String = (0..number)
                .map(|_| parts[random.usize(..parts.len())])
                .collect();
            for (is_azure, variables) in [&keys[..3], &keys[..]].into_iter().enumerate() {
                match provider(&name, variables) {
                    Ok(Provider::Replay { .. }) => assert!(name.starts_with("replay"), "{name:?}"),
                    Ok(Provider::OpenAi(settings)) => {
                        let url = crate::openai::address(&settings).unwrap();
                        assert_eq!(url.host_str(), Some("models.example.org"), "{name:?}");
                        let parts: Vec<&str> = url.path_segments().unwrap().collect();
                        let is_own = match settings.azure {
                            None => parts == ["below", "v1", "chat", "completions"],
                            Some(_) => {
                                parts[..4] == ["below", "v1", "openai", "deployments"]
                                    && parts[5..] == ["chat", "completions"]
                            }
                        };
                        assert!(is_own && url.fragment().is_none(), "{name:?}: {url}");
                        counts[is_azure] += 1;
                    }
                    Ok(Provider::Snippet) => assert_eq!(name, "snippet"),
                    Err(error) => assert_eq!(error.exit_code(), 2, "{name:?}"),
                }
            }
        }
        assert!(counts.iter().all(|number| *number > 100), "{counts:?}");
    }

    #[test]
    fn other_names_are_parsed() {
        assert!(matches!(provider("snippet", &[]), Ok(Provider::Snippet)));
        assert!(provider("openai/", &[]).is_err());
        let file = tempfile::NamedTempFile::new().unwrap();
        let name = format!("replay:{}", file.path().display());
        assert!(matches!(
            provider(&name, &[]),
            Ok(Provider::Replay { lenient: false, .. })
        ));
    }
}
