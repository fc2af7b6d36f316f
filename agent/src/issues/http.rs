//! Requests to the APIs of forges.
//!
//! A few plain requests use reqwest, which the models need anyway; a client library for all of a forge would cost more
//! build time than this file. The token is sent only to the API's host: redirects are followed by hand, and only within
//! it.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::HeaderMap;
use reqwest::{Client, Response, StatusCode, Url, redirect};
use serde::de::DeserializeOwned;
use serde_json::Value;

use testwright_sandboxes::http_client;

use super::address::{Address, Forge};
use super::{Comment, Options};
use testwright_config::error::{Error, Kind, Result};
use testwright_config::settings::{Redactor, Secret};

/// Maximum bytes of one answer. A page of comments may have a hundred of the longest.
const MAX_RESPONSE_LEN: usize = 32 << 20;
const PER_PAGE: usize = 100;
const MAX_PAGES: usize = 20;
/// Maximum tries of a request, if the server or the network fails.
const TRIES: u32 = 3;
/// Advice for an issue that cannot be read from its server.
const SAVE: &str = "save the issue's text to a file and pass that";

/// The API of the server that has an issue.
pub(super) struct Api {
    pub(super) client: Client,
    /// Token of this server.
    pub(super) token: Option<Secret>,
    forge: Forge,
    token_setting: &'static str,
    page: String,
}

/// An answer of the API.
pub(super) enum ApiResponse {
    Found {
        body: Vec<u8>,
        url: Url,
        headers: HeaderMap,
        moved: bool,
    },
    Refused(StatusCode, Box<Refusal>),
}

pub(super) struct Refusal {
    headers: HeaderMap,
    message: String,
}

impl Api {
    pub(super) fn new(address: &Address, options: &Options) -> Result<Self> {
        let mut client = http_client::builder()
            .user_agent(concat!("testwright/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .connect_timeout(Duration::from_secs(15))
            .timeout(Duration::from_secs(60));
        let local = |api: &String| Url::parse(api).is_ok_and(|url| is_loopback(&url));
        if address.apis.iter().all(local) {
            client = client.no_proxy();
        }
        let page = address.page();
        let client = client.build().map_err(|e| {
            Error::infrastructure(format!("read the issue at {page}"))
                .cause(http_client::describe(&e))
        })?;
        Ok(Api {
            client,
            token: options.token_for(address),
            forge: address.forge,
            token_setting: address.token_setting(),
            page,
        })
    }

    /// Returns the value at a path below the likeliest address of the API, with its URL.
    pub(super) async fn fetch<T: DeserializeOwned>(
        &self,
        address: &Address,
        path: &[&str],
    ) -> Result<(T, Url)> {
        let answer = self.get(self.url(address.api(), path)?).await?;
        let (value, url, _) = self.read(answer)?;
        Ok((value, url))
    }

    /// Returns the URL of a path below an address of the API.
    pub(super) fn url(&self, base: &str, path: &[&str]) -> Result<Url> {
        let base = Url::parse(base).map_err(|e| self.failed(format!("{base}: {e}")))?;
        Ok(below(&base, path))
    }

    /// Makes a request. Redirects on the same host are followed, and failures of the server or the network
    /// are retried.
    pub(super) async fn get(&self, mut url: Url) -> Result<ApiResponse> {
        let mut tries = 0;
        let mut hops = 0;
        loop {
            tries += 1;
            let mut request = self.client.get(url.clone());
            request = match self.forge {
                Forge::GitHub => request
                    .header("Accept", "application/vnd.github+json")
                    .header("X-GitHub-Api-Version", "2022-11-28"),
                _ => request.header("Accept", "application/json"),
            };
            // Never send the token over an unencrypted connection.
            let private = url.scheme() == "https" || is_loopback(&url);
            if let Some(token) = self.token.as_ref().filter(|_| private) {
                request = request.header("Authorization", format!("Bearer {}", token.reveal()));
            }
            let answer = request.send().await;
            let is_broken = |answer: &Response| answer.status().is_server_error();
            if tries < TRIES && answer.as_ref().map_or(true, is_broken) {
                tokio::time::sleep(Duration::from_millis(250 << tries)).await;
                continue;
            }
            let answer = answer.map_err(|error| {
                let host = url.host_str().unwrap_or_default();
                let cause = http_client::describe(&error);
                self.failed(format!("{host} cannot be reached: {cause}"))
                    .hint(format!("check the network and proxy, or {SAVE}"))
            })?;
            let status = answer.status();
            let headers = answer.headers().clone();
            if status.is_redirection() {
                hops += 1;
                url = self.follow_redirect(&url, &headers, hops)?;
                continue;
            }
            let body = self.body(answer).await?;
            if status == StatusCode::OK {
                let moved = hops > 0;
                return Ok(ApiResponse::Found {
                    body,
                    url,
                    headers,
                    moved,
                });
            }
            let message = message(&body, &self.redactor());
            return Ok(ApiResponse::Refused(
                status,
                Box::new(Refusal { headers, message }),
            ));
        }
    }

    fn follow_redirect(&self, from: &Url, headers: &HeaderMap, hops: u32) -> Result<Url> {
        let to = header(headers, "location").and_then(|to| from.join(to).ok());
        let hint = match self.forge {
            Forge::GitHub => {
                "use the issue's current address, and set github.base-url to its server"
            }
            _ => "use the issue's current address",
        };
        match to {
            Some(to) if to.origin() == from.origin() && hops <= 5 => Ok(to),
            Some(to) => Err(self
                .failed(format!(
                    "{} redirects to {}",
                    from.host_str().unwrap_or_default(),
                    to.host_str().unwrap_or_default()
                ))
                .hint(hint)),
            None => Err(self.failed("it has moved, but the server does not say where")),
        }
    }

    pub(super) async fn body(&self, mut answer: Response) -> Result<Vec<u8>> {
        let body = http_client::read_body(&mut answer, MAX_RESPONSE_LEN).await;
        let body = body.map_err(|e| self.failed(http_client::describe(&e)))?;
        match body.len() > MAX_RESPONSE_LEN {
            true => Err(self.failed("the server's answer is too large")),
            false => Ok(body),
        }
    }

    /// Removes the token from the server's answers, because the server knows it.
    fn redactor(&self) -> Redactor {
        Redactor::new(self.token.iter().map(|token| token.reveal()))
    }

    pub(super) fn parse<T: DeserializeOwned>(&self, body: &[u8]) -> serde_json::Result<T> {
        let mut value = serde_json::from_slice(body)?;
        self.redactor().json(&mut value);
        serde_json::from_value(value)
    }

    /// Returns the value in an answer, with its URL and headers.
    pub(super) fn read<T: DeserializeOwned>(
        &self,
        answer: ApiResponse,
    ) -> Result<(T, Url, HeaderMap)> {
        match answer {
            ApiResponse::Found {
                body, url, headers, ..
            } => match self.parse(&body) {
                Ok(value) => Ok((value, url, headers)),
                Err(e) => {
                    let host = url.host_str().unwrap_or_default();
                    let name = self.forge.name();
                    let hint = match self.forge {
                        Forge::GitHub => {
                            "set github.base-url to the API of the server, e.g. https://github.example.org/api/v3"
                        }
                        _ => SAVE,
                    };
                    Err(self
                        .failed(format!("{host} does not speak {name}'s API: {e}"))
                        .hint(hint))
                }
            },
            ApiResponse::Refused(status, refusal) => Err(self.refused(status, &refusal)),
        }
    }

    /// Creates the error for an address that belongs to a pull request.
    pub(super) fn is_pull_request(&self) -> Error {
        Error::usage(format!("read the issue at {}", self.page))
            .cause("it is a pull request, not an issue")
            .hint("give the issue that the pull request is about")
    }

    fn refused(&self, status: StatusCode, refusal: &Refusal) -> Error {
        let error =
            |cause: &str| Error::usage(format!("read the issue at {}", self.page)).cause(cause);
        let setting = self.token_setting;
        let variable = setting.split(' ').next().unwrap_or(setting);
        let message = match refusal.message.as_str() {
            "" => format!("the server says {status}"),
            message => format!("the server says {status}: {message}"),
        };
        let limited = header(&refusal.headers, "x-ratelimit-remaining") == Some("0")
            || refusal.headers.contains_key("retry-after")
            || refusal.message.to_lowercase().contains("rate limit");
        let unauthorized = || Error {
            kind: Kind::Unauthorized,
            ..error(&message)
        };
        match (status.as_u16(), self.token.is_some()) {
            (429, _) => self.rate_limited(refusal),
            (403, _) if limited => self.rate_limited(refusal),
            (401, true) => unauthorized().hint(format!(
                "renew the token in {variable}, or unset it for public issues"
            )),
            (401, false) => unauthorized().hint(format!("set {setting}")),
            (404, true) => error("it does not exist, or the token has no access to it").hint(
                format!("check the number, and the access of the token in {variable}"),
            ),
            (404, false) => {
                let other = match self.forge {
                    Forge::Gitea => {
                        "; for GitHub Enterprise set TESTWRIGHT_GITHUB_BASE_URL to the server"
                    }
                    _ => "",
                };
                error("it does not exist, or it is private").hint(format!(
                    "check the number; for a private repository set {setting}{other}"
                ))
            }
            (410, _) => error("it was deleted, or the repository no longer has issues").hint(SAVE),
            (400..=499, true) => error(&message).hint(format!(
                "check the access of the token in {variable}, or {SAVE}"
            )),
            (400..=499, false) => error(&message).hint(SAVE),
            _ => self
                .failed(message)
                .hint(format!("try again later, or {SAVE}")),
        }
    }

    fn rate_limited(&self, refusal: &Refusal) -> Error {
        let reset = header(&refusal.headers, "x-ratelimit-reset")
            .and_then(|at| Timestamp::from_second(at.parse().ok()?).ok())
            .map(|at| format!(" until {}", at.strftime("%Y-%m-%d %H:%M:%S UTC")));
        let after = header(&refusal.headers, "retry-after");
        let after = after.map(|seconds| format!(" for {seconds} s"));
        let when = reset.or(after).unwrap_or_default();
        let error = self.failed(format!("the server's rate limit is used up{when}"));
        let setting = self.token_setting;
        error.hint(match self.token {
            Some(_) => format!("wait, or {SAVE}"),
            None => format!("wait, or set {setting}, which allows many more requests"),
        })
    }

    /// Returns the entries of one of the issue's lists as comments, oldest first. A note tells if some are missing.
    pub(super) async fn comments<T: DeserializeOwned>(
        &self,
        issue: &Url,
        list: &str,
        notes: &mut Vec<String>,
        comment: impl Fn(T) -> Option<Comment>,
    ) -> Result<Vec<Comment>> {
        let (answers, is_complete) = self.pages::<T>(issue, list).await?;
        let mut comments: Vec<Comment> = answers.into_iter().filter_map(comment).collect();
        comments.sort_by_key(|comment| comment.created_at);
        if !is_complete {
            notes.push(incomplete_note(comments.len()));
        }
        Ok(comments)
    }

    /// Returns all entries of one of the issue's lists, and whether the list is complete.
    pub(super) async fn pages<T: DeserializeOwned>(
        &self,
        issue: &Url,
        list: &str,
    ) -> Result<(Vec<T>, bool)> {
        let mut all = Vec::new();
        for number in 1..=MAX_PAGES {
            let mut url = page(issue, list, number);
            if self.forge == Forge::GitLab {
                // GitLab begins with the newest.
                url.query_pairs_mut().append_pair("sort", "asc");
            }
            let answer = self.get(url).await?;
            let (answers, _, headers): (Vec<T>, _, _) = self.read(answer)?;
            let count = answers.len();
            all.extend(answers);
            let more = match header(&headers, "link") {
                Some(link) => link.contains("rel=\"next\""),
                // Gitea answers with the whole list.
                None => count >= PER_PAGE && self.forge != Forge::Gitea,
            };
            if !more || count == 0 {
                return Ok((all, true));
            }
        }
        Ok((all, false))
    }

    pub(super) fn failed(&self, cause: impl std::fmt::Display) -> Error {
        Error::infrastructure(format!("read the issue at {}", self.page)).cause(cause)
    }
}

/// Returns a note that only these many comments were read.
pub(super) fn incomplete_note(count: usize) -> String {
    format!("only the first {count} comments are included")
}

/// Returns a URL with further path segments, each escaped.
pub(super) fn below(url: &Url, path: &[&str]) -> Url {
    let mut url = url.clone();
    if let Ok(mut parts) = url.path_segments_mut() {
        parts.pop_if_empty().extend(path);
    }
    url
}

/// Returns the URL of a page of one of the issue's lists.
pub(super) fn page(issue: &Url, list: &str, number: usize) -> Url {
    let mut url = below(issue, &[list]);
    url.query_pairs_mut()
        .clear()
        .append_pair("per_page", &PER_PAGE.to_string())
        .append_pair("page", &number.to_string());
    url
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Returns the server's message in an error's body, on one line.
fn message(body: &[u8], redactor: &Redactor) -> String {
    let parsed: Value = serde_json::from_slice(body).unwrap_or_default();
    let message = parsed["message"].as_str();
    let message = message.or(parsed["error"]["message"].as_str());
    let message = redactor.text(message.unwrap_or_default());
    message.chars().take(300).collect()
}

/// Returns whether the server at this address is on this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(http_client::is_loopback)
}
