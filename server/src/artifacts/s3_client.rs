//! The HTTP client for an object store, built like the other HTTP clients of testwright.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use http::StatusCode;
use http_body_util::BodyExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use testwright_sandboxes::http_client;
use testwright_sandboxes::plain_file::{self, Links, MAX_DOCUMENT};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time without data.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct S3Connector {
    ca_bundle: Option<PathBuf>,
    is_loopback: bool,
}

impl S3Connector {
    pub(super) fn new(ca_bundle: Option<PathBuf>, endpoint: &str) -> Self {
        let place = endpoint.split_once("://").map_or("", |(_, place)| place);
        let loopback = ["127.0.0.1", "localhost", "[::1]"];
        S3Connector {
            ca_bundle,
            is_loopback: loopback.iter().any(|name| place.starts_with(name)),
        }
    }

    fn client(&self) -> Result<reqwest::Client, Box<dyn std::error::Error + Send + Sync>> {
        let mut builder = http_client::builder()
            .user_agent(concat!("testwright/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            // A signature is valid for one address only.
            .redirect(reqwest::redirect::Policy::none());
        if self.is_loopback {
            builder = builder.no_proxy();
        }
        if let Some(path) = &self.ca_bundle {
            let pem = plain_file::read(path, Links::Follow, MAX_DOCUMENT)?;
            builder = builder.tls_certs_merge(reqwest::Certificate::from_pem_bundle(&pem)?);
        }
        Ok(builder.build()?)
    }
}

impl HttpConnector for S3Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = self
            .client()
            .map_err(|source| object_store::Error::Generic {
                store: "S3",
                source,
            })?;
        Ok(HttpClient::new(S3Client(client)))
    }
}

#[derive(Debug)]
struct S3Client(reqwest::Client);

#[async_trait]
impl HttpService for S3Client {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let body = match body.as_bytes() {
            Some(bytes) => reqwest::Body::from(bytes.clone()),
            None => reqwest::Body::wrap(body),
        };
        let sent = self
            .0
            .request(parts.method, parts.uri.to_string())
            .headers(parts.headers)
            .body(body)
            .send();
        let response = sent.await.map_err(failure)?;
        let status = response.status();
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            // The library's own error for a status has a private type. It retries this one as well.
            let body = response.text().await.unwrap_or_default();
            return Err(HttpError::new(
                HttpErrorKind::Request,
                ServiceFailure { status, body },
            ));
        }
        let response: http::Response<reqwest::Body> = response.into();
        let (parts, body) = response.into_parts();
        let body = HttpResponseBody::new(body.map_err(failure));
        Ok(HttpResponse::from_parts(parts, body))
    }
}

/// A service that cannot respond now.
#[derive(Debug, thiserror::Error)]
#[error("the service responded with {status}: {body}")]
struct ServiceFailure {
    status: StatusCode,
    body: String,
}

/// Converts an error. Its kind decides whether the request is retried.
fn failure(error: reqwest::Error) -> HttpError {
    let kind = if error.is_timeout() {
        HttpErrorKind::Timeout
    } else if error.is_connect() {
        HttpErrorKind::Connect
    } else if error.is_decode() {
        HttpErrorKind::Decode
    } else {
        HttpErrorKind::Interrupted
    };
    // The address may contain a signature.
    HttpError::new(kind, error.without_url())
}
