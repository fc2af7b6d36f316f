//! Settings of a client for one server.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use crate::name::Deployment;
use testwright_config::settings::{RedactedUrl, Redactor};

/// Address of OpenAI's own server.
pub const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

/// Settings of a client.
#[derive(Debug, Clone)]
pub struct OpenAiSettings {
    /// Name of the model on the server; also its name in records and in the price table.
    pub model: String,
    /// Address without `/chat/completions`; for Azure, the resource's address.
    pub base_url: String,
    /// API key; `None` for a server that needs none.
    pub api_key: Option<SecretString>,
    /// Environment variable that holds or should hold the API key, for hints.
    pub key_variable: String,
    /// Addressing of Azure; `None` for any other server.
    pub azure: Option<Azure>,
    /// Whether replies are streamed.
    pub stream: bool,
    /// Temperature if a request has none.
    pub temperature: Option<f64>,
    /// Maximum completion tokens if a request has no limit.
    pub max_tokens: Option<u64>,
    /// Additional fields in each request's body; the client's own fields take precedence.
    pub extra: Map<String, Value>,
    /// Maximum time without data: until the reply starts, and between two pieces of it.
    pub timeout: Duration,
    /// File with trusted certificates (PEM), in addition to the system's.
    pub ca_bundle: Option<PathBuf>,
    /// Whether to describe tools in the system message and read calls from the text from the start. Otherwise
    /// this happens once a server has refused the `tools` field.
    pub tools_in_text: bool,
}

/// Addressing of Azure: a deployment, a version, and the key in an `api-key` header. Azure's newer
/// `/openai/v1` address needs none of this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Azure {
    /// Deployment that serves the model.
    pub deployment: Deployment,
    /// Version of the API, such as `2024-10-21`.
    pub api_version: String,
}

impl OpenAiSettings {
    /// Returns a redactor for the key, and for secrets in the address.
    pub fn redactor(&self) -> Redactor {
        let address = RedactedUrl::new(self.base_url.clone());
        let key = self.api_key.as_ref().map(ExposeSecret::expose_secret);
        Redactor::new(key.into_iter().chain(address.secrets()))
    }

    /// Creates settings for `model` at OpenAI's own address, without a key.
    pub fn new(model: impl Into<String>) -> Self {
        OpenAiSettings {
            model: model.into(),
            base_url: OPENAI_BASE_URL.to_owned(),
            api_key: None,
            key_variable: "OPENAI_API_KEY".to_owned(),
            azure: None,
            stream: true,
            temperature: None,
            max_tokens: None,
            extra: Map::new(),
            timeout: Duration::from_secs(600),
            ca_bundle: None,
            tools_in_text: false,
        }
    }
}
