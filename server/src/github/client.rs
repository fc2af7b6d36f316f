//! A client for GitHub's API. It never waits: a rate-limited request fails with the time at which the caller can retry.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode, Url, redirect};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use testwright_sandboxes::http_client;

use super::settings::Login;
use crate::store::now;
use testwright_agent::issues;
use testwright_config::error::{Error, Result};
use testwright_config::lock::lock;
use testwright_config::settings::Settings;

const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum bytes of a response.
const MAX_RESPONSE_LEN: usize = 8 << 20;
/// Default wait in milliseconds if GitHub sets a rate limit without a time, and maximum wait.
const DEFAULT_RETRY_AFTER: i64 = 60_000;
const MAX_WAIT: i64 = 2 * 60 * 60_000;
/// Milliseconds before its expiry at which an installation's token is replaced.
const TOKEN_RENEWAL_MARGIN: i64 = 60_000;

/// The reason why a request failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum RequestError {
    /// GitHub's rate limit is exhausted until this time (milliseconds since 1970).
    #[error("rate-limited by GitHub")]
    Later(i64),
    /// GitHub refused the request.
    #[error("GitHub refused ({status}): {message}")]
    Refused { status: u16, message: String },
    /// GitHub could not be reached, or its response could not be read.
    #[error("{0}")]
    Failed(String),
}

type RequestResult<T> = std::result::Result<T, RequestError>;

pub(super) struct GitHubClient {
    api: Url,
    http: reqwest::Client,
    pause: Mutex<Pause>,
    /// Tokens of installations, with their expiry times.
    tokens: Mutex<HashMap<u64, (SecretString, i64)>>,
}

/// A pause because of a rate limit.
#[derive(Default)]
struct Pause {
    /// Time before which no request is sent.
    end: i64,
    /// Milliseconds of the last pause for which GitHub named no time.
    default_wait: i64,
}

impl Pause {
    /// Starts or extends the pause, and returns its end. A wait of 0 milliseconds means that GitHub named no time.
    fn extend(&mut self, mut wait: i64) -> i64 {
        let now = now();
        if wait == 0 {
            // GitHub asks clients to increase the wait while a limit lasts. Requests of other kinds may succeed meanwhile.
            // Concurrent requests meet the same limit, before the pause ends.
            let factor = match now - self.end {
                since if since >= self.default_wait => 0,
                0.. => 2,
                _ => 1,
            };
            wait = (factor * self.default_wait).clamp(DEFAULT_RETRY_AFTER, MAX_WAIT);
            self.default_wait = wait;
        }
        // Another limit may last longer.
        self.end = self.end.max(now + wait);
        self.end
    }
}

/// A request to the API.
pub(super) struct ApiRequest<'a> {
    pub method: Method,
    /// Segments of the path, which get escaped.
    pub path: &'a [&'a str],
    pub query: &'a [(&'a str, String)],
    pub body: Option<Value>,
}

impl<'a> ApiRequest<'a> {
    pub(super) fn get(path: &'a [&'a str], query: &'a [(&'a str, String)]) -> Self {
        ApiRequest {
            method: Method::GET,
            path,
            query,
            body: None,
        }
    }

    pub(super) fn post(path: &'a [&'a str], body: Value) -> Self {
        ApiRequest {
            method: Method::POST,
            path,
            query: &[],
            body: Some(body),
        }
    }
}

impl GitHubClient {
    pub(super) fn new(settings: &Settings, login: &Login) -> Result<Self> {
        let failed = |cause: &dyn std::fmt::Display| {
            Error::usage("use GitHub's API")
                .cause(cause)
                .hint("set github.base-url to the https address of the server")
        };
        let api: Url = issues::api_base_url(settings.github.base_url.as_ref())
            .parse()
            .map_err(|e| failed(&e))?;
        let is_local = api.host_str().is_some_and(http_client::is_loopback);
        if api.scheme() != "https" && !is_local && !matches!(login, Login::None) {
            return Err(failed(
                &"the address is not HTTPS, so the token would be sent unencrypted",
            ));
        }
        let mut http = http_client::builder()
            .user_agent(concat!("testwright/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .timeout(TIMEOUT);
        if is_local {
            http = http.no_proxy();
        }
        Ok(GitHubClient {
            api,
            http: http.build().map_err(|e| failed(&e))?,
            pause: Mutex::default(),
            tokens: Mutex::default(),
        })
    }

    /// Sends a request as the user of a token, or as the App in an installation.
    pub(super) async fn send(
        &self,
        login: &Login,
        installation: Option<u64>,
        request: ApiRequest<'_>,
    ) -> RequestResult<Value> {
        let token = match login {
            Login::Token(token) => token.clone(),
            Login::App(_) => self.installation_token(login, installation).await?,
            Login::None => return Err(RequestError::Failed("no token is configured".to_owned())),
        };
        let answer = self.exchange(&token, request).await;
        if let (Err(RequestError::Refused { status: 401, .. }), Some(id)) = (&answer, installation)
        {
            // The token was revoked before its expiry.
            lock(&self.tokens).remove(&id);
        }
        answer
    }

    /// Returns the token of an installation, from the cache until shortly before its expiry.
    async fn installation_token(
        &self,
        login: &Login,
        installation: Option<u64>,
    ) -> RequestResult<SecretString> {
        let failed = |why: &str| RequestError::Failed(why.to_owned());
        let installation =
            installation.ok_or_else(|| failed("the delivery does not come from the App"))?;
        if let Some((token, end)) = lock(&self.tokens).get(&installation)
            && *end - TOKEN_RENEWAL_MARGIN > now()
        {
            return Ok(token.clone());
        }
        let Login::App(key) = login else {
            return Err(failed("no App is configured"));
        };
        let own = key
            .token(now() / 1000)
            .map_err(|e| failed(&e.with_cause()))?;
        let id = installation.to_string();
        let path = ["app", "installations", &id, "access_tokens"];
        let request = ApiRequest::post(&path, Value::Object(Default::default()));
        let response = self.exchange(&SecretString::from(own), request).await?;
        let token = response["token"].as_str().map(SecretString::from);
        let end = response["expires_at"]
            .as_str()
            .and_then(|end| end.parse().ok());
        let end = end.map(jiff::Timestamp::as_millisecond);
        let (Some(token), Some(end)) = (token, end) else {
            return Err(failed("GitHub returned no token for the installation"));
        };
        lock(&self.tokens).insert(installation, (token.clone(), end));
        Ok(token)
    }

    async fn exchange(
        &self,
        token: &SecretString,
        request: ApiRequest<'_>,
    ) -> RequestResult<Value> {
        let pause_end = lock(&self.pause).end;
        if pause_end > now() {
            return Err(RequestError::Later(pause_end));
        }
        let mut url = self.api.clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().extend(request.path);
        }
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(request.query);
        }
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()))
            .map_err(|_| {
                RequestError::Failed("the token contains invalid characters".to_owned())
            })?;
        bearer.set_sensitive(true);
        let mut builder = self
            .http
            .request(request.method, url)
            .header("accept", "application/vnd.github+json")
            .header("x-github-api-version", "2022-11-28")
            .header("authorization", bearer);
        if let Some(body) = request.body {
            let kind = "application/json";
            builder = builder.header("content-type", kind).body(body.to_string());
        }
        let failed = |error: reqwest::Error| {
            RequestError::Failed(format!(
                "could not reach GitHub: {}",
                http_client::describe(&error)
            ))
        };
        let mut response = builder.send().await.map_err(failed)?;
        let body = http_client::read_body(&mut response, MAX_RESPONSE_LEN).await;
        let body = body.map_err(|e| RequestError::Failed(http_client::describe(&e)))?;
        if body.len() > MAX_RESPONSE_LEN {
            let why = "GitHub's response is too long";
            return Err(RequestError::Failed(why.to_owned()));
        }
        self.check_response(response.status(), response.headers(), &body)
    }

    fn check_response(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
    ) -> RequestResult<Value> {
        let value: Value = serde_json::from_slice(body).unwrap_or_default();
        let message = value["message"].as_str().unwrap_or_default();
        if let Some(wait) = rate_limit_wait(status, headers, message) {
            let pause_end = lock(&self.pause).extend(wait);
            if !status.is_success() {
                return Err(RequestError::Later(pause_end));
            }
        }
        if status.is_success() {
            return Ok(value);
        }
        let message = refusal(&value).chars().take(200).collect();
        match status.is_server_error() {
            true => Err(RequestError::Failed(format!(
                "GitHub responded with {status}"
            ))),
            false => Err(RequestError::Refused {
                status: status.as_u16(),
                message,
            }),
        }
    }
}

/// Returns the message of a refusal, with the errors that it lists.
fn refusal(value: &Value) -> String {
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let errors = value["errors"].as_array().into_iter().flatten();
    let errors = errors.map(|error| match text(error, "message") {
        message if message.is_empty() => {
            format!("{} {}", text(error, "field"), text(error, "code"))
        }
        message => message,
    });
    let all = std::iter::once(text(value, "message")).chain(errors);
    let all: Vec<String> = all.filter(|text| !text.trim().is_empty()).collect();
    all.join(": ")
}

/// Returns how many milliseconds to wait before the next request, if GitHub limits the rate; 0 if it names no time in the
/// future.
fn rate_limit_wait(status: StatusCode, headers: &HeaderMap, message: &str) -> Option<i64> {
    let number = |name: &str| -> Option<i64> { headers.get(name)?.to_str().ok()?.parse().ok() };
    let is_limit = [StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS].contains(&status);
    let is_used_up = number("x-ratelimit-remaining") == Some(0);
    if !(is_limit || is_used_up && status.is_success()) {
        return None;
    }
    let after = number("retry-after")
        .filter(|_| is_limit)
        .map(|s| s.saturating_mul(1000));
    let reset = number("x-ratelimit-reset").filter(|_| is_used_up);
    let reset = reset.map(|at| at.saturating_mul(1000).saturating_sub(now()));
    // Refusals for other reasons have the same status.
    let is_rate_limit = status == StatusCode::TOO_MANY_REQUESTS
        || is_used_up
        || message.to_ascii_lowercase().contains("rate limit");
    // If this machine's clock is fast, the limit seems to have ended already.
    let wait = after.or(reset).unwrap_or_default().clamp(0, MAX_WAIT);
    (is_rate_limit || wait > 0).then_some(wait)
}

#[cfg(test)]
mod tests;
