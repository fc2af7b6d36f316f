//! Sends spans to a collector with testwright's HTTP client: OTLP as JSON over HTTP.

use std::time::Duration;

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use testwright_sandboxes::http_client;
use tokio::runtime::Handle;

use testwright_config::error::{Error, Result};

/// Timeout of an export. It is short, because further spans follow.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum bytes of a response, of which only the status matters.
const MAX_RESPONSE_LEN: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct CollectorClient {
    http: reqwest::Client,
    runtime: Handle,
}

impl CollectorClient {
    /// Creates a client that uses the current runtime.
    pub(super) fn new() -> Result<Self> {
        let http = http_client::builder()
            .timeout(EXPORT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build();
        let http =
            http.map_err(|error| Error::infrastructure("prepare to send spans").cause(error))?;
        Ok(CollectorClient {
            http,
            runtime: Handle::current(),
        })
    }
}

#[async_trait::async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(
        &self,
        request: Request<Bytes>,
    ) -> std::result::Result<Response<Bytes>, HttpError> {
        // The caller's thread has no runtime.
        let sent = self.runtime.spawn(send(self.http.clone(), request)).await?;
        match &sent {
            Ok(response) if response.status().is_success() => {}
            Ok(response) => {
                tracing::warn!(
                    status = response.status().as_u16(),
                    "the collector refused spans"
                );
            }
            Err(error) => tracing::warn!(%error, "could not send spans"),
        }
        Ok(sent?)
    }
}

async fn send(
    http: reqwest::Client,
    request: Request<Bytes>,
) -> std::result::Result<Response<Bytes>, reqwest::Error> {
    let (parts, body) = request.into_parts();
    let sent = http
        .request(parts.method, parts.uri.to_string())
        .headers(parts.headers)
        .body(body)
        .send()
        .await;
    // The address may contain a password.
    let mut response = sent.map_err(reqwest::Error::without_url)?;
    let answer = http_client::read_body(&mut response, MAX_RESPONSE_LEN).await;
    let answer = answer.map_err(reqwest::Error::without_url)?;
    let mut http_response = Response::new(Bytes::from(answer));
    *http_response.status_mut() = response.status();
    *http_response.headers_mut() = response.headers().clone();
    Ok(http_response)
}
