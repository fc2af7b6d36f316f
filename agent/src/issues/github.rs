//! Issues from GitHub's REST API.
//!
//! Three plain requests (issue, events, comments) use reqwest, which the models need anyway; a client library
//! for all of GitHub would cost more build time than this file. The token is sent only to the API's host:
//! redirects are followed by hand, and only within it.

mod edits;

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::HeaderMap;
use reqwest::{Client, StatusCode, Url, redirect};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use testwright_sandboxes::http_client;

use super::address::Address;
use super::{Comment, Issue, Options};
use testwright_config::error::{Error, Kind, Result};
use testwright_config::settings::Redactor;

pub(super) use edits::as_of;

/// Maximum bytes of one answer. A page of comments may have a hundred of the longest.
const MAX_RESPONSE_LEN: usize = 32 << 20;
const PER_PAGE: usize = 100;
const MAX_PAGES: usize = 20;
/// Maximum tries of a request, if the server or the network fails.
const TRIES: u32 = 3;

#[derive(Deserialize)]
struct IssueAnswer {
    title: String,
    body: Option<String>,
    #[serde(default)]
    html_url: String,
    created_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    closed_at: Option<Timestamp>,
    #[serde(default)]
    comments: u64,
    pull_request: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct CommentAnswer {
    body: Option<String>,
    created_at: Timestamp,
    user: Option<User>,
}

#[derive(Deserialize)]
struct User {
    login: String,
}

#[derive(Deserialize)]
struct EventAnswer {
    event: Option<String>,
    commit_id: Option<String>,
    created_at: Option<Timestamp>,
}

pub(super) async fn load(address: &Address, options: &Options) -> Result<Issue> {
    let api = Api::new(address, options)?;
    let (answer, url, moved) = api.issue(address).await?;
    let mut issue = Issue {
        title: answer.title.trim().to_owned(),
        body: answer.body.unwrap_or_default().replace("\r\n", "\n"),
        comments: Vec::new(),
        origin: address.page(),
        repository: Some(address.repository()),
        number: Some(address.number),
        created_at: answer.created_at,
        notes: address.notes.clone(),
        ..Issue::default()
    };
    if moved {
        follow(&mut issue, address, &answer.html_url, options)?;
    }
    if options.comments && answer.comments > 0 {
        let fixed = api.fixed_at(&url, answer.closed_at, &mut issue.notes).await;
        issue.comments = api.comments(&url, &mut issue.notes).await?;
        if let Some(before) = options.before {
            issue.drop_comments_from(before, "as requested");
        }
        if let Some(fixed) = fixed {
            issue.drop_comments_from(fixed, "when the fix was known");
        }
    }
    Ok(issue)
}

/// Follows an issue to another repository, given by its own page. The server's answer is untrusted: it may
/// only name an issue on the server that the user named.
fn follow(issue: &mut Issue, address: &Address, page: &str, options: &Options) -> Result<()> {
    if page.is_empty() || page == issue.origin {
        return Ok(());
    }
    let Some(moved) = address.moved(page, options.base_url.as_ref()) else {
        let page: String = page.chars().take(200).collect();
        return Err(
            Error::infrastructure(format!("read the issue at {}", issue.origin))
                .cause(format!(
                    "it has moved to `{page}`, which is not an issue of {}",
                    address.web
                ))
                .hint("use the issue's current address"),
        );
    };
    issue.origin = moved.page();
    issue
        .notes
        .push(format!("the issue has moved to {}", issue.origin));
    issue.number = Some(moved.number);
    issue.repository = Some(moved.repository());
    Ok(())
}

struct Api<'a> {
    client: Client,
    options: &'a Options,
    page: String,
}

enum IssueResponse {
    Found {
        body: Vec<u8>,
        url: Url,
        headers: HeaderMap,
        moved: bool,
    },
    Refused(StatusCode, Box<Refusal>),
}

struct Refusal {
    headers: HeaderMap,
    message: String,
}

impl<'a> Api<'a> {
    fn new(address: &Address, options: &'a Options) -> Result<Self> {
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
            options,
            page,
        })
    }

    /// Returns the issue from the server that has it, and whether it has moved.
    async fn issue(&self, address: &Address) -> Result<(IssueAnswer, Url, bool)> {
        let number = address.number.to_string();
        let path = ["repos", &address.owner, &address.name, "issues", &number];
        let mut response = None;
        for (i, base) in address.apis.iter().enumerate() {
            let api = Url::parse(base).map_err(|e| self.failed(format!("{base}: {e}")))?;
            let url = below(&api, &path);
            match self.get(url).await? {
                IssueResponse::Refused(status, _)
                    if status == StatusCode::NOT_FOUND && i + 1 < address.apis.len() => {}
                answer => {
                    response = Some(answer);
                    break;
                }
            }
        }
        let response = response.ok_or_else(|| self.failed("no server to ask"))?;
        let moved = matches!(&response, IssueResponse::Found { moved: true, .. });
        let (answer, url, _): (IssueAnswer, _, _) = self.read(response)?;
        if answer.pull_request.is_some() {
            return Err(
                Error::usage(format!("read the issue at {}", address.page()))
                    .cause("it is a pull request, not an issue")
                    .hint("give the issue that the pull request is about"),
            );
        }
        Ok((answer, url, moved))
    }

    /// Makes a request. Redirects on the same host are followed, and failures of the server or the network
    /// are retried.
    async fn get(&self, mut url: Url) -> Result<IssueResponse> {
        let mut tries = 0;
        let mut hops = 0;
        loop {
            tries += 1;
            let mut request = self
                .client
                .get(url.clone())
                .header("Accept", "application/vnd.github+json")
                .header("X-GitHub-Api-Version", "2022-11-28");
            // Never send the token over an unencrypted connection.
            let private = url.scheme() == "https" || is_loopback(&url);
            if let Some(token) = self.options.token.as_ref().filter(|_| private) {
                request = request.header("Authorization", format!("Bearer {}", token.reveal()));
            }
            let answer = match request.send().await {
                Ok(answer) => answer,
                Err(_) if tries < TRIES => {
                    pause(tries).await;
                    continue;
                }
                Err(e) => {
                    let host = url.host_str().unwrap_or_default();
                    return Err(self
                        .failed(format!("{host} cannot be reached: {}", http_client::describe(&e)))
                        .hint("check the network and proxy, or save the issue's text to a file and pass that"));
                }
            };
            let status = answer.status();
            let headers = answer.headers().clone();
            if status.is_redirection() {
                hops += 1;
                url = self.follow_redirect(&url, &headers, hops)?;
                continue;
            }
            if status.is_server_error() && tries < TRIES {
                pause(tries).await;
                continue;
            }
            let body = self.body(answer).await?;
            if status == StatusCode::OK {
                let moved = hops > 0;
                return Ok(IssueResponse::Found {
                    body,
                    url,
                    headers,
                    moved,
                });
            }
            let message = message(&body, &self.redactor());
            return Ok(IssueResponse::Refused(
                status,
                Box::new(Refusal { headers, message }),
            ));
        }
    }

    fn follow_redirect(&self, from: &Url, headers: &HeaderMap, hops: u32) -> Result<Url> {
        let to = header(headers, "location").and_then(|to| from.join(to).ok());
        match to {
            Some(to) if to.origin() == from.origin() && hops <= 5 => Ok(to),
            Some(to) => Err(self
                .failed(format!(
                    "{} redirects to {}",
                    from.host_str().unwrap_or_default(),
                    to.host_str().unwrap_or_default()
                ))
                .hint("use the issue's current address, and set github.base-url to its server")),
            None => Err(self.failed("it has moved, but the server does not say where")),
        }
    }

    async fn body(&self, mut answer: reqwest::Response) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(part) = answer
            .chunk()
            .await
            .map_err(|e| self.failed(http_client::describe(&e)))?
        {
            body.extend_from_slice(&part);
            if body.len() > MAX_RESPONSE_LEN {
                return Err(self.failed("the server's answer is too large"));
            }
        }
        Ok(body)
    }

    /// Removes the token from the server's answers, because the server knows it.
    fn redactor(&self) -> Redactor {
        Redactor::new(self.options.token.iter().map(|token| token.reveal()))
    }

    fn parse<T: DeserializeOwned>(&self, body: &[u8]) -> serde_json::Result<T> {
        let mut value = serde_json::from_slice(body)?;
        self.redactor().json(&mut value);
        serde_json::from_value(value)
    }

    fn read<T: DeserializeOwned>(&self, answer: IssueResponse) -> Result<(T, Url, HeaderMap)> {
        match answer {
            IssueResponse::Found { body, url, headers, .. } => match self.parse(&body) {
                Ok(value) => Ok((value, url, headers)),
                Err(e) => Err(self
                    .failed(format!("{} does not speak GitHub's API: {e}", url.host_str().unwrap_or_default()))
                    .hint("set github.base-url to the API of the server, e.g. https://github.example.org/api/v3")),
            },
            IssueResponse::Refused(status, refusal) => Err(self.refused(status, &refusal)),
        }
    }

    fn refused(&self, status: StatusCode, refusal: &Refusal) -> Error {
        let error =
            |cause: &str| Error::usage(format!("read the issue at {}", self.page)).cause(cause);
        let token = self.options.token.is_some();
        let message = match refusal.message.as_str() {
            "" => format!("the server says {status}"),
            message => format!("the server says {status}: {message}"),
        };
        let limited = header(&refusal.headers, "x-ratelimit-remaining") == Some("0")
            || refusal.headers.contains_key("retry-after")
            || refusal.message.to_lowercase().contains("rate limit");
        match status.as_u16() {
            429 => self.rate_limited(refusal),
            403 if limited => self.rate_limited(refusal),
            401 => Error {
                kind: Kind::Unauthorized,
                ..error(&message)
            }
            .hint("renew the token in GITHUB_TOKEN, or unset it for public issues"),
            404 if token => error("it does not exist, or the token has no access to it")
                .hint("check the number, and the access of the token in GITHUB_TOKEN"),
            404 => error("it does not exist, or it is private")
                .hint("check the number; for a private repository set GITHUB_TOKEN"),
            410 => error("it was deleted, or the repository no longer has issues")
                .hint("save the issue's text to a file and pass that"),
            400..=499 => error(&message),
            _ => self
                .failed(message)
                .hint("try again later, or save the issue's text to a file and pass that"),
        }
    }

    fn rate_limited(&self, refusal: &Refusal) -> Error {
        let reset = header(&refusal.headers, "x-ratelimit-reset")
            .and_then(|at| Timestamp::from_second(at.parse().ok()?).ok())
            .map(|at| format!(" until {}", at.strftime("%Y-%m-%d %H:%M:%S UTC")));
        let after =
            header(&refusal.headers, "retry-after").map(|seconds| format!(" for {seconds} s"));
        let when = reset.or(after).unwrap_or_default();
        let error = self.failed(format!("the server's rate limit is used up{when}"));
        if self.options.token.is_some() {
            error.hint("wait, or save the issue's text to a file and pass that")
        } else {
            error.hint("wait, or set GITHUB_TOKEN, which allows many more requests")
        }
    }

    /// Returns when the fix was first seen: the first commit that names or closes the issue, or at the latest
    /// the closing.
    async fn fixed_at(
        &self,
        issue: &Url,
        closed: Option<Timestamp>,
        notes: &mut Vec<String>,
    ) -> Option<Timestamp> {
        let events = match self.get(page(issue, "events", 1)).await {
            Ok(answer) => self
                .read::<Vec<EventAnswer>>(answer)
                .map(|(events, ..)| events),
            Err(error) => Err(error),
        };
        let events = events.unwrap_or_else(|_| {
            notes.push(
                "the time of the fix is unknown, so comments up to the closing of the issue are included"
                    .to_owned(),
            );
            Vec::new()
        });
        events
            .iter()
            .filter(|e| {
                e.commit_id.is_some() && matches!(e.event.as_deref(), Some("closed" | "referenced"))
            })
            .filter_map(|e| e.created_at)
            .chain(closed)
            .min()
    }

    async fn comments(&self, issue: &Url, notes: &mut Vec<String>) -> Result<Vec<Comment>> {
        let (answers, is_complete) = self.pages::<CommentAnswer>(issue, "comments").await?;
        let comments: Vec<Comment> = answers
            .into_iter()
            .map(|answer| Comment {
                author: answer
                    .user
                    .map_or_else(|| "ghost".to_owned(), |user| user.login),
                created_at: answer.created_at,
                body: answer.body.unwrap_or_default().replace("\r\n", "\n"),
            })
            .collect();
        if !is_complete {
            notes.push(format!(
                "only the first {} comments are included",
                comments.len()
            ));
        }
        Ok(comments)
    }

    /// Returns all entries of one of the issue's lists, and whether the list is complete.
    async fn pages<T: DeserializeOwned>(&self, issue: &Url, list: &str) -> Result<(Vec<T>, bool)> {
        let mut all = Vec::new();
        for page in 1..=MAX_PAGES {
            let answer = self.get(self::page(issue, list, page)).await?;
            let (answers, _, headers): (Vec<T>, _, _) = self.read(answer)?;
            let number = answers.len();
            all.extend(answers);
            let more = match header(&headers, "link") {
                Some(link) => link.contains("rel=\"next\""),
                None => number >= PER_PAGE,
            };
            if !more || number == 0 {
                return Ok((all, true));
            }
        }
        Ok((all, false))
    }

    fn failed(&self, cause: impl std::fmt::Display) -> Error {
        Error::infrastructure(format!("read the issue at {}", self.page)).cause(cause)
    }
}

/// Returns a URL with further path segments, each escaped.
fn below(url: &Url, path: &[&str]) -> Url {
    let mut url = url.clone();
    if let Ok(mut parts) = url.path_segments_mut() {
        parts.pop_if_empty().extend(path);
    }
    url
}

/// Returns the URL of a page of one of the issue's lists.
fn page(issue: &Url, list: &str, number: usize) -> Url {
    let mut url = below(issue, &[list]);
    url.query_pairs_mut()
        .clear()
        .append_pair("per_page", &PER_PAGE.to_string())
        .append_pair("page", &number.to_string());
    url
}

async fn pause(tries: u32) {
    tokio::time::sleep(Duration::from_millis(250 << tries)).await;
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Returns GitHub's message in an error's body, on one line.
fn message(body: &[u8], redactor: &Redactor) -> String {
    let parsed: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let message = parsed
        .as_ref()
        .and_then(|v| v.get("message"))
        .and_then(|m| m.as_str());
    let message = redactor.text(message.unwrap_or_default());
    message.chars().take(300).collect()
}

fn is_loopback(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "[::1]"))
        || url.host_str().is_some_and(|h| h.starts_with("127."))
}
