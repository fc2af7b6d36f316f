//! Issues from GitHub's REST API.
//!
//! Three plain requests (issue, events, comments) by reqwest, which is in the tree for the models anyway; a client
//! library for all of GitHub would cost more build time than this file. The token goes to the API's host and to
//! no other: redirects are followed by hand, within it.

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

/// Bytes of one answer. A page of comments may hold a hundred of the longest.
const MAX_RESPONSE_LEN: usize = 32 << 20;
const PER_PAGE: usize = 100;
const MAX_PAGES: usize = 20;
/// Tries of a request, where the server or the network fails.
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
    };
    if moved {
        follow(&mut issue, address, &answer.html_url, options)?;
    }
    if options.comments && answer.comments > 0 {
        let fixed = api.fixed_at(&url, answer.closed_at, &mut issue.notes).await;
        issue.comments = api.comments(&url, &mut issue.notes).await?;
        if let Some(before) = options.before {
            issue.drop_comments_from(before, "as was asked for");
        }
        if let Some(fixed) = fixed {
            issue.drop_comments_from(fixed, "when the fix was known");
        }
    }
    Ok(issue)
}

/// The issue has gone to another repository: its own page tells which. What an answer says is foreign: it may name an
/// issue of the server that the user named, and nothing else.
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
                .hint("give the address where the issue is now"),
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

enum Answer {
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
            Error::infrastructure(format!("read the issue at {page}")).cause(chain(&e))
        })?;
        Ok(Api {
            client,
            options,
            page,
        })
    }

    /// The issue, where the server has it, and whether that is another place.
    async fn issue(&self, address: &Address) -> Result<(IssueAnswer, Url, bool)> {
        let number = address.number.to_string();
        let path = ["repos", &address.owner, &address.name, "issues", &number];
        let mut found = None;
        for (i, base) in address.apis.iter().enumerate() {
            let api = Url::parse(base).map_err(|e| self.failed(format!("{base}: {e}")))?;
            let url = below(&api, &path);
            match self.get(url).await? {
                Answer::Refused(status, _)
                    if status == StatusCode::NOT_FOUND && i + 1 < address.apis.len() => {}
                answer => {
                    found = Some(answer);
                    break;
                }
            }
        }
        let found = found.ok_or_else(|| self.failed("no server to ask"))?;
        let moved = matches!(&found, Answer::Found { moved: true, .. });
        let (answer, url, _): (IssueAnswer, _, _) = self.read(found)?;
        if answer.pull_request.is_some() {
            return Err(
                Error::usage(format!("read the issue at {}", address.page()))
                    .cause("it is a pull request, not an issue")
                    .hint("give the issue that the pull request is about"),
            );
        }
        Ok((answer, url, moved))
    }

    /// One request, followed through redirects on the same host, tried again where server or network fail.
    async fn get(&self, mut url: Url) -> Result<Answer> {
        let mut tries = 0;
        let mut hops = 0;
        loop {
            tries += 1;
            let mut request = self
                .client
                .get(url.clone())
                .header("Accept", "application/vnd.github+json")
                .header("X-GitHub-Api-Version", "2022-11-28");
            // Never over a line that anybody can read.
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
                        .failed(format!("{host} cannot be reached: {}", chain(&e)))
                        .hint("look at the network and its proxy, or save the issue's text into a file and give that"));
                }
            };
            let status = answer.status();
            let headers = answer.headers().clone();
            if status.is_redirection() {
                hops += 1;
                url = self.hop(&url, &headers, hops)?;
                continue;
            }
            if status.is_server_error() && tries < TRIES {
                pause(tries).await;
                continue;
            }
            let body = self.body(answer).await?;
            if status == StatusCode::OK {
                let moved = hops > 0;
                return Ok(Answer::Found {
                    body,
                    url,
                    headers,
                    moved,
                });
            }
            let message = message(&body, &self.redactor());
            return Ok(Answer::Refused(
                status,
                Box::new(Refusal { headers, message }),
            ));
        }
    }

    fn hop(&self, from: &Url, headers: &HeaderMap, hops: u32) -> Result<Url> {
        let to = header(headers, "location").and_then(|to| from.join(to).ok());
        match to {
            Some(to) if to.origin() == from.origin() && hops <= 5 => Ok(to),
            Some(to) => Err(self
                .failed(format!(
                    "{} sends on to {}",
                    from.host_str().unwrap_or_default(),
                    to.host_str().unwrap_or_default()
                ))
                .hint("give the address where the issue is now, and set github.base-url to its server")),
            None => Err(self.failed("it has moved, and the server does not say where")),
        }
    }

    async fn body(&self, mut answer: reqwest::Response) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(|e| self.failed(chain(&e)))? {
            body.extend_from_slice(&part);
            if body.len() > MAX_RESPONSE_LEN {
                return Err(self.failed("the server's answer has no end"));
            }
        }
        Ok(body)
    }

    /// A server knows our token: what it sends is read without it.
    fn redactor(&self) -> Redactor {
        Redactor::new(self.options.token.iter().map(|token| token.reveal()))
    }

    fn parse<T: DeserializeOwned>(&self, body: &[u8]) -> serde_json::Result<T> {
        let mut value = serde_json::from_slice(body)?;
        self.redactor().json(&mut value);
        serde_json::from_value(value)
    }

    fn read<T: DeserializeOwned>(&self, answer: Answer) -> Result<(T, Url, HeaderMap)> {
        match answer {
            Answer::Found { body, url, headers, .. } => match self.parse(&body) {
                Ok(value) => Ok((value, url, headers)),
                Err(e) => Err(self
                    .failed(format!("{} does not speak GitHub's API: {e}", url.host_str().unwrap_or_default()))
                    .hint("set github.base-url to the API of the server, e.g. https://github.example.org/api/v3")),
            },
            Answer::Refused(status, refusal) => Err(self.refused(status, &refusal)),
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
            .hint("the token in GITHUB_TOKEN is not accepted: renew it, or unset it for public issues"),
            404 if token => error("it is not there, or the token may not see it")
                .hint("look at the number, and at what the token in GITHUB_TOKEN may read"),
            404 => error("it is not there, or it is private")
                .hint("look at the number; for a private repository set GITHUB_TOKEN"),
            410 => error("it was deleted, or the repository has no issues any more")
                .hint("save the issue's text into a file and give that"),
            400..=499 => error(&message),
            _ => self
                .failed(message)
                .hint("try again later, or save the issue's text into a file and give that"),
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
            error.hint("wait, or save the issue's text into a file and give that")
        } else {
            error.hint("wait, or set GITHUB_TOKEN, which allows many more requests")
        }
    }

    /// When the fix was first seen: the first commit that names or closes the issue, at the latest its closing.
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
                "when commits named the issue is not known: comments up to its closing are taken"
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
        let (answers, whole) = self.pages::<CommentAnswer>(issue, "comments").await?;
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
        if !whole {
            notes.push(format!(
                "only the first {} comments are taken",
                comments.len()
            ));
        }
        Ok(comments)
    }

    /// All that a list of the issue holds, and whether it was read to its end.
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

/// An address below another, each part escaped.
fn below(url: &Url, path: &[&str]) -> Url {
    let mut url = url.clone();
    if let Ok(mut parts) = url.path_segments_mut() {
        parts.pop_if_empty().extend(path);
    }
    url
}

/// A page of a list of an issue.
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

/// What GitHub says in an error's body, in a line.
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

/// An error with its causes; reqwest's own text names only the request.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}
