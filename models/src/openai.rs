//! A client for chat completions as defined by OpenAI and offered by many servers: OpenAI, Azure, vLLM,
//! llama.cpp, Ollama, LiteLLM and others. It uses the open-typed calls of async-openai.
//!
//! A server may refuse a field, a role, a schema or a limit of tokens. The client then repeats the request in
//! the form that the server takes, and keeps to it. Nothing else is retried here, and async-openai's own
//! retries are off; [`super::retry`] does that.

mod endpoint;
mod error_text;
mod extra_fields;
mod failure;
mod messages;
mod overflow;
mod probe;
mod refused_field;
mod reply_errors;
mod request;
mod response;
mod response_limits;
mod retry_hint;
mod server_capabilities;
mod settings;
mod stream;
#[cfg(test)]
mod tests;
mod text_messages;
mod tool_schema;

use std::sync::{Mutex, PoisonError};

use async_openai::Client;
use async_openai::error::OpenAIError;
use async_trait::async_trait;
use serde_json::Value;

use super::{Model, ModelError, Reply, Request};
use endpoint::{Endpoint, Refusal, Service};
use overflow::TooLarge;
use refused_field::without_refused_field;
use request::Body;
use response::Raw;
use response_limits::ResponseEnd;
use server_capabilities::ServerCapabilities;
pub use settings::{Azure, OPENAI_BASE_URL, OpenAiSettings};
use testwright_config::settings::Redactor;

/// Maximum number of requests of one call that adapts to refusals.
const MAX_FALLBACKS: usize = 8;

/// Minimum limit of completion tokens to try if a service refuses a larger one without a number.
const MIN_HALVED: u64 = 1024;

/// A client of an OpenAI-compatible server.
pub struct OpenAi {
    settings: OpenAiSettings,
    endpoint: Endpoint,
    service: Service,
    /// Known capabilities of the server.
    server: Mutex<ServerCapabilities>,
}

impl OpenAi {
    /// Creates a client. It checks the settings, but opens no connection yet.
    ///
    /// # Errors
    ///
    /// Fails with [`ModelError::Fatal`] if an address, key, header or CA bundle is unusable.
    pub fn new(settings: OpenAiSettings) -> Result<Self, ModelError> {
        let endpoint = Endpoint::new(&settings)?;
        let service = Service::new(&settings, &endpoint)?;
        Ok(OpenAi {
            server: ServerCapabilities::at_first(&settings, &endpoint).into(),
            endpoint,
            service,
            settings,
        })
    }

    fn capabilities(&self) -> ServerCapabilities {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learn(&self, capabilities: ServerCapabilities) {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = capabilities;
    }

    async fn ask(
        &self,
        body: &Body<'_>,
        request: &Request,
        capabilities: ServerCapabilities,
    ) -> Result<Reply, OpenAIError> {
        let watch = ResponseEnd::default();
        let mut raw = match self.exchange(body, &watch, capabilities).await {
            Ok(raw) => raw,
            Err(error) => {
                let refused = endpoint::refusal(&error).and_then(response::refused_reply);
                refused.ok_or_else(|| watch.explain(error))?
            }
        };
        if raw.is_empty() {
            return Err(fault(502, "the reply is empty", String::new()));
        }
        // Redact before parts are cut off, and again afterwards for escaped text in arguments.
        let redactor = self.settings.redactor();
        raw.redact(&redactor);
        let mut reply = response::reply(raw, body, request);
        redact(&mut reply, &redactor);
        Ok(reply)
    }

    async fn exchange(
        &self,
        body: &Body<'_>,
        watch: &ResponseEnd,
        capabilities: ServerCapabilities,
    ) -> Result<Raw, OpenAIError> {
        // Without a given HTTP client, async-openai would create its own and read the system's certificates
        // again.
        let client = Client::build(self.service.http(), self.endpoint.clone())
            .with_http_service(self.service.watched(capabilities.stream, watch));
        let chat = client.chat();
        if !capabilities.stream {
            let whole: Value = chat.create_byot(body).await?;
            return response::raw(&whole);
        }
        match chat.create_stream_byot::<_, Value>(body).await {
            Ok(chunks) => {
                let is_done = || watch.is_done();
                stream::collect(chunks, is_done, capabilities.finish_in_stream).await
            }
            // A server that does not stream answers with the complete reply.
            Err(error) => match endpoint::unstreamed(&error) {
                Some(whole) => response::raw(&whole),
                None => Err(error),
            },
        }
    }

    /// Returns what to know before the same request is repeated after a failure, if that may help.
    fn adapt(
        &self,
        error: &OpenAIError,
        body: &Body<'_>,
        capabilities: ServerCapabilities,
    ) -> Option<ServerCapabilities> {
        let refusal = endpoint::refusal(error)?;
        if refusal.fault.is_some() {
            return None;
        }
        let mut better = capabilities;
        let Some(overflow) = failure::overflow_in(refusal, body.sent_tokens()) else {
            return without_refused_field(capabilities, refusal, body);
        };
        match (overflow.part, overflow.prompt) {
            (TooLarge::Prompt, prompt) => {
                better.learn_context(overflow.limit, prompt, body.prompt_length);
                self.learn(better);
                return None;
            }
            (TooLarge::Completion, Some(prompt)) => {
                better.learn_context(overflow.limit, Some(prompt), body.prompt_length);
            }
            (TooLarge::Completion, None) => {
                let sent = body.sent_tokens();
                let half = sent.map(|sent| sent / 2);
                // Without a number, smaller limits are tried as long as they are of use.
                let useful = half.filter(|half| *half >= MIN_HALVED);
                if overflow.limit.is_none() && sent.is_some() && useful.is_none() {
                    return None;
                }
                better.max_completion = overflow.limit.or(useful);
                better.needs_limit |= sent.is_none();
            }
        }
        Some(better)
    }
}

#[async_trait]
impl Model for OpenAi {
    fn name(&self) -> &str {
        &self.settings.model
    }

    async fn complete(&self, request: &Request) -> Result<Reply, ModelError> {
        let mut tried = Vec::with_capacity(MAX_FALLBACKS);
        loop {
            let capabilities = self.capabilities();
            tried.push(capabilities);
            let body = request::body(request, &self.settings, capabilities);
            if let Some((tokens, limit)) = capabilities.excess_tokens(body.prompt_length) {
                return Err(failure::known_overflow(tokens, limit, &self.settings));
            }
            let error = match self.ask(&body, request, capabilities).await {
                Ok(reply) => {
                    // The number of tokens serves to estimate the next prompt.
                    if !reply.usage.estimated {
                        let mut capabilities = self.capabilities();
                        capabilities.learn_prompt(reply.usage.prompt_tokens, body.prompt_length);
                        self.learn(capabilities);
                    }
                    return Ok(reply);
                }
                Err(error) => error,
            };
            if let Some(better) = self.adapt(&error, &body, capabilities)
                && tried.len() < MAX_FALLBACKS
                && !tried.contains(&better)
            {
                tracing::info!(
                    ?better,
                    "the server refused a request; repeating it in another form"
                );
                self.learn(better);
                continue;
            }
            let fault = endpoint::refusal(&error).and_then(|refusal| refusal.fault);
            if matches!(fault, Some(stream::UNFINISHED | stream::EMPTY)) {
                self.learn(ServerCapabilities {
                    // The next try takes a stream that ends like this one.
                    finish_in_stream: false,
                    // A second empty stream may be a reply in another form.
                    stream: capabilities.stream
                        && (fault != Some(stream::EMPTY) || capabilities.finish_in_stream),
                    ..self.capabilities()
                });
            }
            return Err(failure::classify_error(&error, &self.settings));
        }
    }
}

/// Removes the API key from a reply, because the server knows it and replies are stored and shown.
fn redact(reply: &mut Reply, redactor: &Redactor) {
    redactor.clean(&mut reply.content);
    for call in &mut reply.calls {
        redactor.clean(&mut call.id);
        redactor.clean(&mut call.name);
        let mut arguments = call.arguments.value();
        redactor.json(&mut arguments);
        call.arguments = arguments.into();
    }
    for malformed in &mut reply.malformed {
        let optional = malformed.id.iter_mut().chain(&mut malformed.name);
        let texts = optional.chain([&mut malformed.text, &mut malformed.problem]);
        texts.for_each(|text| redactor.clean(text));
    }
}

/// Returns the URL of a request, for tests and the fuzz targets.
///
/// # Errors
///
/// Fails if the settings give no valid URL.
#[cfg(any(test, fuzzing))]
pub fn address(settings: &OpenAiSettings) -> Result<reqwest::Url, ModelError> {
    use async_openai::config::Config as _;
    let endpoint = Endpoint::new(settings)?;
    let parsed = reqwest::Url::parse(&endpoint.url("/chat/completions"));
    let mut url = parsed.map_err(|e| ModelError::NotRecorded(e.to_string()))?;
    url.query_pairs_mut().extend_pairs(endpoint.query());
    Ok(url)
}

/// Parses a response as a model's reply, for the fuzz targets.
///
/// # Errors
///
/// Fails as a call does: on a refusal, a broken connection, or a faulty or overlong reply.
#[cfg(fuzzing)]
pub async fn read_response(
    response: reqwest::Response,
    stream: bool,
    request: &Request,
) -> Result<Reply, ModelError> {
    let settings = OpenAiSettings {
        stream,
        ..OpenAiSettings::new("fuzzed")
    };
    let endpoint = Endpoint::new(&settings)?;
    let model = OpenAi {
        server: ServerCapabilities::at_first(&settings, &endpoint).into(),
        service: Service::canned(response, stream),
        endpoint,
        settings,
    };
    model.complete(request).await
}

/// Creates the error for a faulty reply that was delivered intact.
fn fault(status: u16, fault: &'static str, body: String) -> OpenAIError {
    OpenAIError::Boxed(Box::new(Refusal {
        fault: Some(fault),
        ..Refusal::new(status, body)
    }))
}
