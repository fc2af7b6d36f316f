//! A check of the service before a run, without a model call.

use std::time::Duration;

use async_openai::config::Config as _;
use async_openai::error::OpenAIError;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, Url};
use serde_json::{Value, json};

use super::endpoint::{self, WEB_PAGE};
use super::response_limits::ResponseEnd;
use super::{OpenAi, failure};
use crate::ModelError;
use crate::retry::UNREACHABLE_TRIES;

/// Maximum duration of one request.
const TIMEOUT: Duration = Duration::from_secs(10);

impl OpenAi {
    /// Checks that the service can be reached and accepts the key, by a request for its models. Services may lack
    /// that route or answer it in any way, so only certain failures count.
    ///
    /// # Errors
    ///
    /// Fails if the address has no server or serves a web page, or if the key is refused.
    pub async fn probe(&self) -> Result<(), ModelError> {
        // Azure has no such route below a deployment.
        if self.settings.azure.is_some() {
            return Ok(());
        }
        let mut tries = 1;
        loop {
            let Err(error) = self.request_models().await else {
                return Ok(());
            };
            let is_certain = endpoint::refusal(&error).is_some_and(|refusal| {
                matches!(refusal.status, 401 | 403) || refusal.fault == Some(WEB_PAGE)
            });
            match failure::classify_error(&error, &self.settings) {
                ModelError::Unreachable { .. } if tries < UNREACHABLE_TRIES => {
                    tokio::time::sleep(Duration::from_secs(tries.into())).await;
                    tries += 1;
                }
                error @ ModelError::Unreachable { .. } => return Err(error),
                error if is_certain => return Err(error),
                _ => return Ok(()),
            }
        }
    }

    async fn request_models(&self) -> Result<(), OpenAIError> {
        let Err(error) = self.send_probe(Method::GET, "/models", None).await else {
            return Ok(());
        };
        let refusal = endpoint::refusal(&error);
        if !refusal.is_some_and(|refusal| matches!(refusal.status, 401 | 403)) {
            return Err(error);
        }
        // Anthropic, and keys with few permissions, are refused the list but not the calls. A call without
        // messages is refused before any work, with 401 or 403 only if the key is.
        let body = json!({ "model": self.settings.model, "messages": [] });
        self.send_probe(Method::POST, "/chat/completions", Some(&body))
            .await
    }

    async fn send_probe(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(), OpenAIError> {
        let mut url = Url::parse(&self.endpoint.url(path))
            .map_err(|error| OpenAIError::InvalidArgument(error.to_string()))?;
        let query = self.endpoint.query();
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self.service.http().request(method, url).timeout(TIMEOUT);
        request = request.headers(self.endpoint.headers());
        if let Some(body) = body {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string());
        }
        let response = request.send().await?;
        endpoint::received(response, false, ResponseEnd::default()).await?;
        Ok(())
    }
}
