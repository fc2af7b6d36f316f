//! What a client needs to know of its server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use crate::name::Deployment;
use testwright_config::settings::{RedactedUrl, Redactor};

pub const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

#[derive(Debug, Clone)]
pub struct OpenAiSettings {
    /// As the server names it; also the name in records and in the price table.
    pub model: String,
    /// Up to but without `/chat/completions`; for Azure the resource's address.
    pub base_url: String,
    pub api_key: Option<SecretString>,
    /// The environment variable that the key came from or should come from, for hints.
    pub key_variable: String,
    pub azure: Option<Azure>,
    pub stream: bool,
    /// Used where a request has none.
    pub temperature: Option<f64>,
    /// Used where a request has none.
    pub max_tokens: Option<u64>,
    /// More headers for each request.
    pub headers: BTreeMap<String, String>,
    /// More fields for each request's body; they win over ours.
    pub extra: Map<String, Value>,
    /// The longest silence: until the reply begins, and between two pieces of it.
    pub timeout: Duration,
    /// Certificates (PEM) trusted beside the system's.
    pub ca_bundle: Option<PathBuf>,
    /// Describe tools in the system message and read calls from the reply's text, from the beginning
    /// (without it, that is done once a server has refused the `tools` field).
    pub tools_in_text: bool,
}

/// Azure's own way of addressing: a deployment, a version, the key in an `api-key` header. (Its newer
/// `/openai/v1` address needs none of this.)
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Azure {
    pub deployment: Deployment,
    pub api_version: String,
}

impl OpenAiSettings {
    /// Knows the key, and what else of the address and the headers is not to be shown.
    pub fn redactor(&self) -> Redactor {
        let address = RedactedUrl::new(self.base_url.clone());
        let key = self.api_key.as_ref().map(ExposeSecret::expose_secret);
        let headers = self.headers.values().map(String::as_str);
        Redactor::new(key.into_iter().chain(address.secrets()).chain(headers))
    }

    /// `model` at OpenAI's own address, without a key.
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
            headers: BTreeMap::new(),
            extra: Map::new(),
            timeout: Duration::from_secs(600),
            ca_bundle: None,
            tools_in_text: false,
        }
    }
}
