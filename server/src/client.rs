//! A client for the HTTP API, used by the command line.

use std::time::Duration;

use futures::StreamExt as _;
use reqwest::{Method, Response, StatusCode, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use testwright_sandboxes::http_client;

use crate::problem::LIST_HINT;
use testwright_config::error::{Error, Kind, Result};

/// Timeout for connecting and for each read.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Delay before reconnecting to an event stream.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// Maximum consecutive attempts that return no event.
const MAX_RECONNECTS: u32 = 30;
/// Maximum bytes of an event.
const MAX_EVENT_LEN: usize = 256 << 20;

/// A client of a server's API.
pub struct ApiClient {
    server: Url,
    http: reqwest::Client,
    token: Option<SecretString>,
}

impl ApiClient {
    /// Creates a client for the server at a URL.
    ///
    /// # Errors
    ///
    /// Fails if the URL is not an HTTP address or the HTTP client cannot be set up.
    pub fn new(server: &str, token: Option<SecretString>) -> Result<Self> {
        let failed = |cause: &dyn std::fmt::Display| {
            Error::usage(format!("use the server {server}"))
                .cause(cause)
                .hint(
                    "use the address that `testwright serve` prints, such as http://127.0.0.1:8420",
                )
        };
        let server: Url = server.parse().map_err(|e| failed(&e))?;
        if !matches!(server.scheme(), "http" | "https") || server.cannot_be_a_base() {
            return Err(failed(&"it is not the address of a server"));
        }
        let http = http_client::builder()
            .connect_timeout(TIMEOUT)
            .read_timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy();
        let http = http.build().map_err(|e| failed(&e))?;
        Ok(ApiClient {
            server,
            http,
            token,
        })
    }

    /// Sends a GET request to the API and returns the JSON of the response.
    ///
    /// # Errors
    ///
    /// Fails if the server cannot be reached, responds with an error, or sends invalid JSON.
    pub async fn get(&self, path: &[&str], query: &[(&str, String)]) -> Result<Value> {
        let response = self.send(Method::GET, path, query, None).await?;
        let read = response.json().await;
        read.map_err(|e| self.unreadable(&e))
    }

    /// Sends a POST request to the API and returns the JSON of the response.
    ///
    /// # Errors
    ///
    /// Fails if the server cannot be reached, responds with an error, or sends invalid JSON.
    pub async fn post(&self, path: &[&str]) -> Result<Value> {
        let response = self.send(Method::POST, path, &[], None).await?;
        let read = response.json().await;
        read.map_err(|e| self.unreadable(&e))
    }

    /// Sends a GET request to the API and returns the text of the response.
    ///
    /// # Errors
    ///
    /// Fails if the server cannot be reached, responds with an error, or closes the connection early.
    pub async fn text(&self, path: &[&str]) -> Result<String> {
        let response = self.send(Method::GET, path, &[], None).await?;
        response.text().await.map_err(|e| self.unreadable(&e))
    }

    /// Downloads a file.
    ///
    /// # Errors
    ///
    /// Fails if the server cannot be reached, responds with an error, or closes the connection early.
    pub async fn bytes(&self, path: &[&str]) -> Result<Vec<u8>> {
        let response = self.send(Method::GET, path, &[], None).await?;
        let read = response.bytes().await;
        read.map(Vec::from).map_err(|e| self.unreadable(&e))
    }

    /// Calls `each` with the number and text of each trajectory line as it arrives, and returns the run once it has
    /// ended. Reconnects if the connection is cut.
    ///
    /// # Errors
    ///
    /// Fails if the server rejects the request, or if too many attempts in a row return no event.
    pub async fn follow(&self, run: &str, mut each: impl FnMut(i64, &str)) -> Result<Value> {
        let (mut last, mut tries) = (0, 0);
        loop {
            match self.follow_once(run, &mut last, &mut each).await {
                Ok(Some(run)) => return Ok(run),
                Err(error)
                    if tries >= MAX_RECONNECTS
                        || matches!(error.kind, Kind::Usage | Kind::Unauthorized) =>
                {
                    return Err(error);
                }
                // The server closes streams after some time.
                Ok(None) => tries = 0,
                Err(_) => tries += 1,
            }
            tokio::time::sleep(RECONNECT_DELAY).await;
        }
    }

    /// Returns the run if the stream reached its end.
    async fn follow_once(
        &self,
        run: &str,
        last: &mut i64,
        each: &mut impl FnMut(i64, &str),
    ) -> Result<Option<Value>> {
        let response = self
            .send(Method::GET, &["runs", run, "events"], &[], Some(*last))
            .await?;
        let mut stream = response.bytes_stream();
        let mut buffer: Vec<u8> = Vec::new();
        while let Some(piece) = stream.next().await {
            // The caller reconnects.
            let Ok(piece) = piece else { break };
            buffer.extend_from_slice(&piece);
            if buffer.len() > MAX_EVENT_LEN {
                let error = Error::infrastructure("follow the run");
                return Err(error.cause("the server sent an event that is too long"));
            }
            while let Some(end) = buffer.windows(2).position(|two| two == b"\n\n") {
                let event: Vec<u8> = buffer.drain(..end + 2).collect();
                let event = StreamEvent::parse(&String::from_utf8_lossy(&event));
                match (event.kind.as_str(), event.id) {
                    ("event", Some(number)) => {
                        *last = number;
                        each(number, &event.data);
                    }
                    ("end", _) => {
                        let run = serde_json::from_str(&event.data);
                        return run.map(Some).map_err(|e| {
                            Error::infrastructure("read the server's response").cause(e)
                        });
                    }
                    _ => {}
                }
            }
        }
        Ok(None)
    }

    async fn send(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
        last: Option<i64>,
    ) -> Result<Response> {
        let mut url = self.server.clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().push("v1").extend(path);
        }
        url.query_pairs_mut().extend_pairs(query);
        if query.is_empty() {
            url.set_query(None);
        }
        let mut request = self.http.request(method, url);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.expose_secret());
        }
        let response = request.send().await.map_err(|error| {
            Error::infrastructure(format!("reach the server {}", self.server))
                .cause(http_client::describe(&error))
                .hint("start it with `testwright serve`, or choose another server with --server")
        })?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let problem: Value = response.json().await.unwrap_or_default();
        let detail = problem["detail"]
            .as_str()
            .map_or_else(|| status.to_string(), str::to_owned);
        let kind = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Kind::Unauthorized,
            StatusCode::TOO_MANY_REQUESTS => Kind::Unavailable,
            _ if status.is_client_error() => Kind::Usage,
            _ => Kind::Infrastructure,
        };
        let error = Error::new(kind, "complete the request").cause(detail);
        Err(match (status, problem["hint"].as_str()) {
            // The server's hint names the Authorization header, which users of the command line cannot set.
            (StatusCode::UNAUTHORIZED, _) => {
                error.hint("set TESTWRIGHT_TOKEN; `testwright tokens create` creates one")
            }
            (_, Some(hint)) => error.hint(hint_for_command_line(hint)),
            // A proxy before the server may send these.
            (StatusCode::FORBIDDEN, None) => {
                error.hint("set TESTWRIGHT_TOKEN to a token that may do this")
            }
            (StatusCode::TOO_MANY_REQUESTS, None) => {
                error.hint("wait a minute, then run the command again")
            }
            (_, None) => error,
        })
    }

    fn unreadable(&self, error: &dyn std::fmt::Display) -> Error {
        Error::infrastructure(format!("read the response of {}", self.server)).cause(error)
    }
}

/// Replaces the request in a hint of the server by the command that sends it.
fn hint_for_command_line(hint: &str) -> &str {
    match hint == LIST_HINT {
        true => "`testwright runs list` lists all runs",
        false => hint,
    }
}

/// An event of a stream (HTML Living Standard, Server-sent events).
#[derive(Debug, Default)]
struct StreamEvent {
    id: Option<i64>,
    kind: String,
    data: String,
}

impl StreamEvent {
    fn parse(text: &str) -> Self {
        let mut event = StreamEvent::default();
        for line in text.lines() {
            match line
                .split_once(':')
                .map(|(name, value)| (name, value.trim_start()))
            {
                Some(("id", id)) => event.id = id.parse().ok(),
                Some(("event", kind)) => event.kind = kind.to_owned(),
                Some(("data", data)) => event.data.push_str(data),
                _ => {}
            }
        }
        event
    }
}
