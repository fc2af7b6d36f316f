//! Address, headers and transport. Refusals keep their status, Retry-After and body, which async-openai's own
//! errors lose.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use async_openai::config::Config;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Response, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use testwright_sandboxes::http_client;
use testwright_sandboxes::plain_file::{self, Links, MAX_DOCUMENT};

use super::OpenAiSettings;
use super::response_limits::{ResponseEnd, bounded};
use super::retry_hint;
use crate::ModelError;

/// Maximum bytes to read of a refusal's body.
const MAX_REFUSAL_LEN: usize = 64 * 1024;

#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    base: String,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    key: SecretString,
    pub(super) host: String,
}

impl Endpoint {
    pub(super) fn new(settings: &OpenAiSettings) -> Result<Self, ModelError> {
        let mut url = Url::parse(settings.base_url.trim())
            .ok()
            .filter(|u| matches!(u.scheme(), "http" | "https") && u.has_host())
            .ok_or_else(|| {
                ModelError::fatal(
                    format!("\"{}\" is not an http(s) address", settings.base_url),
                    "a base URL looks like https://api.openai.com/v1 or http://127.0.0.1:8080/v1"
                        .to_owned(),
                )
            })?;
        let mut query: Vec<(String, String)> = url
            .query_pairs()
            .map(|(k, v)| (k.into_owned(), v.into_owned()))
            .collect();
        url.set_query(None);
        url.set_fragment(None);
        let path = url.path().trim_end_matches('/');
        let path = path.strip_suffix("/chat/completions").unwrap_or(path);
        let path = path.trim_end_matches('/').to_owned();
        if let Some(azure) = &settings.azure {
            url.set_path(path.strip_suffix("/openai").unwrap_or(&path));
            if let Ok(mut parts) = url.path_segments_mut() {
                let deployment = ["openai", "deployments", azure.deployment.as_str()];
                parts.pop_if_empty().extend(deployment);
            }
            query.retain(|(k, _)| k != "api-version");
            query.push(("api-version".to_owned(), azure.api_version.clone()));
        } else {
            url.set_path(&path);
        }
        let base = url.as_str().trim_end_matches('/').to_owned();
        let key = settings
            .api_key
            .as_ref()
            .map_or("", |k| k.expose_secret().trim());
        Ok(Endpoint {
            base,
            query,
            headers: headers(settings, key)?,
            key: SecretString::from(key),
            host: url.host_str().unwrap_or_default().to_owned(),
        })
    }
}

fn headers(settings: &OpenAiSettings, key: &str) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    if !key.is_empty() {
        let (name, text) = match settings.azure {
            Some(_) => (HeaderName::from_static("api-key"), key.to_owned()),
            None => (AUTHORIZATION, format!("Bearer {key}")),
        };
        let mut value = HeaderValue::from_str(&text).map_err(|_| {
            ModelError::fatal(
                "the API key has characters that cannot be sent",
                format!("check {}", settings.key_variable),
            )
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

impl Config for Endpoint {
    fn headers(&self) -> HeaderMap {
        self.headers.clone()
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn query(&self) -> Vec<(&str, &str)> {
        self.query
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect()
    }

    fn api_base(&self) -> &str {
        &self.base
    }

    fn api_key(&self) -> &SecretString {
        &self.key
    }
}

/// A refusal of the server.
#[derive(Debug, Clone, thiserror::Error)]
#[error("HTTP {status}")]
pub(super) struct Refusal {
    pub(super) status: u16,
    /// Seconds to wait, from the headers.
    pub(super) after: Option<f64>,
    /// Address that a redirect points to.
    pub(super) points_to: Option<String>,
    /// Fault that this client found in the reply.
    pub(super) fault: Option<&'static str>,
    /// Body as received. It may contain anything, and clients of the API read messages, so only its error
    /// message is passed on.
    pub(super) body: String,
}

impl Refusal {
    pub(super) fn new(status: u16, body: String) -> Self {
        Refusal {
            status,
            after: None,
            points_to: None,
            fault: None,
            body,
        }
    }
}

/// Fault of an address where no model is.
pub(super) const WEB_PAGE: &str = "with a web page instead of a reply";

/// Fault of an address with another API.
pub(super) const OTHER_API: &str = "with JSON that is not a reply";

/// A complete reply instead of the requested stream.
#[derive(Debug, thiserror::Error)]
#[error("the server does not stream")]
struct Unstreamed(Value);

pub(super) fn refusal(error: &OpenAIError) -> Option<&Refusal> {
    own_error(error)
}

/// Returns the error of a type of this client that async-openai passes on.
pub(super) fn own_error<E: std::error::Error + 'static>(error: &OpenAIError) -> Option<&E> {
    match error {
        OpenAIError::Boxed(inner) => inner.downcast_ref(),
        _ => None,
    }
}

pub(super) fn unstreamed(error: &OpenAIError) -> Option<Value> {
    own_error::<Unstreamed>(error).map(|unstreamed| unstreamed.0.clone())
}

/// The reqwest client, without async-openai's retries around it.
#[derive(Clone)]
pub(super) struct Service {
    transport: Transport,
    stream: bool,
    watch: ResponseEnd,
}

#[derive(Clone)]
enum Transport {
    Http(reqwest::Client),
    /// One fixed response to any request, for the fuzz targets.
    #[cfg(fuzzing)]
    Canned(std::sync::Arc<std::sync::Mutex<Option<Response>>>),
}

impl Service {
    pub(super) fn new(settings: &OpenAiSettings, endpoint: &Endpoint) -> Result<Self, ModelError> {
        let mut builder = http_client::builder()
            .user_agent(concat!("testwright/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(settings.timeout.min(Duration::from_secs(30)))
            .read_timeout(settings.timeout)
            .tcp_keepalive(Duration::from_secs(30))
            // An API key is only for the address it was given for.
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never());
        if http_client::is_loopback(&endpoint.host) {
            builder = builder.no_proxy();
        }
        if let Some(path) = &settings.ca_bundle {
            let unusable = |e: &dyn std::fmt::Display| {
                ModelError::fatal(
                    format!("the CA bundle {} cannot be used: {e}", path.display()),
                    "use a file with certificates in PEM format".to_owned(),
                )
            };
            let pem =
                plain_file::read(path, Links::Follow, MAX_DOCUMENT).map_err(|e| unusable(&e))?;
            let certificates = Certificate::from_pem_bundle(&pem).map_err(|e| unusable(&e))?;
            if certificates.is_empty() {
                return Err(unusable(&"it contains no certificate"));
            }
            builder = builder.tls_certs_merge(certificates);
        }
        let http = builder.build().map_err(|e| {
            ModelError::fatal(format!("the HTTP client cannot be built: {e}"), None)
        })?;
        Ok(Service {
            transport: Transport::Http(http),
            stream: settings.stream,
            watch: ResponseEnd::default(),
        })
    }

    /// Creates a service that returns this response, for the fuzz targets.
    #[cfg(fuzzing)]
    pub(super) fn canned(response: Response, stream: bool) -> Self {
        Service {
            transport: Transport::Canned(std::sync::Arc::new(Some(response).into())),
            stream,
            watch: ResponseEnd::default(),
        }
    }

    pub(super) fn http(&self) -> reqwest::Client {
        match &self.transport {
            Transport::Http(http) => http.clone(),
            #[cfg(fuzzing)]
            Transport::Canned(_) => {
                // Never sends a request; creating a client for each input would take longer than the test.
                static UNUSED: std::sync::LazyLock<reqwest::Client> =
                    std::sync::LazyLock::new(|| http_client::builder().build().unwrap_or_default());
                UNUSED.clone()
            }
        }
    }

    /// Returns a service for one call, which records in `watch` how the response ended.
    pub(super) fn watched(&self, stream: bool, watch: &ResponseEnd) -> Self {
        Service {
            stream,
            watch: watch.clone(),
            ..self.clone()
        }
    }

    async fn send(self, request: HttpRequestFactory) -> Result<Response, OpenAIError> {
        let mut request = request.build().await?;
        let accept = if self.stream {
            "text/event-stream, application/json"
        } else {
            "application/json"
        };
        request
            .headers_mut()
            .entry(ACCEPT)
            .or_insert(HeaderValue::from_static(accept));
        let response = match self.transport {
            Transport::Http(http) => http.execute(request).await?,
            #[cfg(fuzzing)]
            Transport::Canned(response) => response
                .lock()
                .ok()
                .and_then(|mut one| one.take())
                .ok_or_else(|| OpenAIError::InvalidArgument("asked again".to_owned()))?,
        };
        received(response, self.stream, self.watch).await
    }
}

/// Returns the response of a successful request. Otherwise the error holds the refusal, or the complete reply
/// if a stream was requested.
pub(super) async fn received(
    response: Response,
    stream: bool,
    watch: ResponseEnd,
) -> Result<Response, OpenAIError> {
    if !response.status().is_success() {
        return Err(OpenAIError::Boxed(Box::new(read_refusal(response).await)));
    }
    let is_type = |kind: &str| {
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        content_type.is_some_and(|value| value.to_lowercase().starts_with(kind))
    };
    if is_type("text/html") {
        let page = Refusal {
            fault: Some(WEB_PAGE),
            ..read_refusal(response).await
        };
        return Err(OpenAIError::Boxed(Box::new(page)));
    }
    let json = is_type("application/json");
    let response = bounded(response, stream && !json, watch);
    if stream && json {
        let bytes = response.bytes().await?;
        let value = serde_json::from_slice(&bytes).map_err(|e| {
            OpenAIError::JSONDeserialize(e, String::from_utf8_lossy(&bytes).into_owned())
        })?;
        return Err(OpenAIError::Boxed(Box::new(Unstreamed(value))));
    }
    Ok(response)
}

impl tower_service::Service<HttpRequestFactory> for Service {
    type Response = Response;
    type Error = OpenAIError;
    type Future = Pin<Box<dyn Future<Output = Result<Response, OpenAIError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), OpenAIError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequestFactory) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}

async fn read_refusal(mut response: Response) -> Refusal {
    let status = response.status().as_u16();
    let after = retry_hint::in_headers(response.headers(), SystemTime::now());
    let mut body = Vec::new();
    while body.len() < MAX_REFUSAL_LEN {
        match response.chunk().await {
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) | Err(_) => break,
        }
    }
    body.truncate(MAX_REFUSAL_LEN);
    let location = response.headers().get("location");
    let location = location.and_then(|to| response.url().join(to.to_str().ok()?).ok());
    Refusal {
        after,
        points_to: location.map(|to| to.origin().ascii_serialization()),
        ..Refusal::new(status, String::from_utf8_lossy(&body).into_owned())
    }
}
