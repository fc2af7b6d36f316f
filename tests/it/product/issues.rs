//! Issues read through GitHub's API, from a mock server.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use testwright_agent::issues::{Issue, Options, load, of_url_or_text};
use testwright_config::error::{Error, Kind};
use testwright_config::settings::{Flags, RedactedUrl, Settings, Sources};

use crate::support::server::{MockServer, Request, Response};

const URL: &str = "https://github.com/acme/slugs/issues/7";

fn issue(more: Value) -> Value {
    let mut issue = json!({
        "number": 7,
        "title": "slugify drops digits ",
        "body": "It says:\r\n\r\n```\r\n>>> slugify('a1')\r\n'a'\r\n```",
        "html_url": URL,
        "created_at": "2024-03-01T10:00:00Z",
        "closed_at": null,
        "comments": 0,
        "state": "open",
        "user": {"login": "ann"}
    });
    for (key, value) in more.as_object().unwrap() {
        issue[key] = value.clone();
    }
    issue
}

fn comment(day: u32, body: &str) -> Value {
    json!({ "user": {"login": "bob"}, "created_at": format!("2024-03-{day:02}T10:00:00Z"), "body": body })
}

fn options(server: &MockServer) -> Options {
    Options {
        base_url: Some(RedactedUrl::new(server.url.clone())),
        ..Options::default()
    }
}

fn with_token(server: &MockServer) -> Options {
    let sources = Sources {
        variables: BTreeMap::from([
            ("GITHUB_TOKEN".to_owned(), "ghp_secret".to_owned()),
            ("TESTWRIGHT_GITHUB_BASE_URL".to_owned(), server.url.clone()),
        ]),
        flags: Flags::default(),
        ..Sources::default()
    };
    Options::from_settings(&Settings::load(&sources).unwrap(), true)
}

/// Starts a server with the API at its root, without `/api/v3`.
fn api(answer: impl Fn(&Request) -> Response + Send + 'static) -> MockServer {
    MockServer::start(move |request| match request.path.starts_with("/api/v3") {
        true => Response::status(404),
        false => answer(request),
    })
}

fn only(value: Value) -> MockServer {
    api(move |request| match request.path.as_str() {
        "/repos/acme/slugs/issues/7" => Response::json(value.clone()),
        _ => Response::status(404),
    })
}

async fn refused(server: &MockServer, options: &Options) -> (Error, String) {
    let error = load(URL, options).await.unwrap_err();
    let shown = error.render().replace(&server.url, "SERVER");
    assert!(!shown.contains("ghp_secret"));
    (error, shown)
}

#[tokio::test]
async fn issue_contains_its_metadata() {
    let server = only(issue(json!({ "comments": 3 })));
    let issue: Issue = load(&format!("{URL}#issuecomment-1"), &options(&server))
        .await
        .unwrap();
    assert_eq!(issue.title, "slugify drops digits");
    assert_eq!(issue.body, "It says:\n\n```\n>>> slugify('a1')\n'a'\n```");
    assert_eq!((issue.origin.as_str(), issue.number), (URL, Some(7)));
    assert_eq!(
        issue.repository.as_deref(),
        Some("https://github.com/acme/slugs")
    );
    assert_eq!(
        issue.created_at.unwrap().to_string(),
        "2024-03-01T10:00:00Z"
    );
    // Comments are read only on request.
    assert!(issue.comments.is_empty());
    assert_eq!(
        server.requests(|r| r.path.clone()).last().unwrap(),
        "/repos/acme/slugs/issues/7"
    );
    assert!(
        server
            .requests(|r| r.header("user-agent").is_some())
            .iter()
            .all(|&there| there)
    );
}

#[tokio::test]
async fn enterprise_server_uses_own_api() {
    let server = MockServer::start(|request| match request.path.as_str() {
        "/api/v3/repos/acme/slugs/issues/7" => Response::json(issue(json!({}))),
        _ => Response::status(404),
    });
    let url = format!("{}/acme/slugs/issues/7", server.url);
    let issue = load(&url, &options(&server)).await.unwrap();
    assert_eq!(issue.origin, url);
    assert_eq!(issue.repository, Some(format!("{}/acme/slugs", server.url)));
    // Without the setting, a server that merely looks like GitHub does not get GitHub's token.
    let before = server.requests(|_| ()).len();
    let options = Options {
        base_url: None,
        ..with_token(&server)
    };
    let error = load(&url, &options).await.unwrap_err();
    assert_eq!(error.kind, Kind::Usage);
    assert!(error.hint.unwrap().contains("TESTWRIGHT_GITHUB_BASE_URL"));
    let later = server.requests(|r| r.header("authorization").is_some());
    assert!(later[before..].iter().all(|has_token| !has_token));
    // Clients of a server cannot make it ask another one.
    let before = later.len();
    assert!(of_url_or_text(&url, &options).await.is_err());
    assert_eq!(server.requests(|_| ()).len(), before);
}

#[tokio::test]
async fn all_comment_pages_are_read() {
    let server = api(|request| match request.path.as_str() {
        "/repos/acme/slugs/issues/7" => Response::json(issue(json!({ "comments": 103 }))),
        path if path.contains("/events") => Response::json(json!([])),
        path if path.ends_with("&page=1") => {
            Response::json((0..100).map(|i| comment(2, &format!("c{i}"))).collect())
        }
        // A short page is the last one, unless the server links to another.
        path if path.ends_with("&page=2") => {
            Response::json(json!([comment(3, "c100"), comment(3, "c101")])).with(
                "link",
                "<https://elsewhere.example.org/>; rel=\"next\", <x>; rel=\"last\"",
            )
        }
        path if path.ends_with("&page=3") => Response::json(
            json!([{ "user": null, "created_at": "2024-03-04T00:00:00Z", "body": null }]),
        )
        .with("link", "<x>; rel=\"first\""),
        _ => Response::status(404),
    });
    let mut options = options(&server);
    options.comments = true;
    let issue = load(URL, &options).await.unwrap();
    assert_eq!(issue.comments.len(), 103);
    assert_eq!(
        (
            issue.comments[101].body.as_str(),
            issue.comments[102].author.as_str()
        ),
        ("c101", "ghost")
    );
    assert!(
        issue
            .text()
            .contains("Comment by bob on 2024-03-02:\n\nc99")
    );
}

#[tokio::test]
async fn comments_after_fix_are_ignored() {
    let events = json!([
        { "event": "labeled", "commit_id": null, "created_at": "2024-03-02T00:00:00Z" },
        { "event": "referenced", "commit_id": "abc", "created_at": "2024-03-05T10:00:00Z" },
        { "event": "closed", "commit_id": null, "created_at": "2024-03-08T00:00:00Z" }
    ]);
    let start = |events: Option<Value>| {
        api(move |request| match request.path.as_str() {
            "/repos/acme/slugs/issues/7" => Response::json(issue(
                json!({ "comments": 4, "closed_at": "2024-03-08T00:00:00Z" }),
            )),
            path if path.contains("/events") => {
                events.clone().map_or(Response::status(404), Response::json)
            }
            _ => Response::json(
                [2, 4, 5, 9]
                    .map(|day| comment(day, &format!("day {day}")))
                    .to_vec()
                    .into(),
            ),
        })
    };
    let bodies = |issue: &Issue| {
        issue
            .comments
            .iter()
            .map(|c| c.body.clone())
            .collect::<Vec<_>>()
    };

    let server = start(Some(events));
    let mut options = options(&server);
    options.comments = true;
    let issue = load(URL, &options).await.unwrap();
    assert_eq!(bodies(&issue), ["day 2", "day 4"]);
    insta::assert_snapshot!(issue.notes.last().unwrap(), @"2 of 4 comments are ignored: written at 2024-03-05 10:00 UTC or later, when the fix was known");

    options.before = Some("2024-03-03T00:00:00Z".parse().unwrap());
    assert_eq!(bodies(&load(URL, &options).await.unwrap()), ["day 2"]);

    // Without events, the time of closing counts.
    let server = start(None);
    options.before = None;
    options.base_url = Some(RedactedUrl::new(server.url.clone()));
    let issue = load(URL, &options).await.unwrap();
    assert_eq!(bodies(&issue), ["day 2", "day 4", "day 5"]);
    assert!(
        issue.notes.iter().any(|n| n.contains("unknown")),
        "{:?}",
        issue.notes
    );
}

#[tokio::test]
async fn pull_request_is_rejected() {
    let server = only(issue(json!({ "pull_request": { "url": "x" } })));
    let (_, shown) = refused(&server, &options(&server)).await;
    insta::assert_snapshot!(shown, @r"
    error: failed to read the issue at https://github.com/acme/slugs/issues/7
      cause: it is a pull request, not an issue
      hint: give the issue that the pull request is about
    ");
}

#[tokio::test]
async fn server_errors_have_hints() {
    let server = api(|_| Response::status(404));
    let (error, shown) = refused(&server, &options(&server)).await;
    insta::assert_snapshot!(shown, @r"
    error: failed to read the issue at https://github.com/acme/slugs/issues/7
      cause: it does not exist, or it is private
      hint: check the number; for a private repository set GITHUB_TOKEN
    ");
    assert_eq!(error.exit_code(), 2);
    insta::assert_snapshot!(refused(&server, &with_token(&server)).await.1, @r"
    error: failed to read the issue at https://github.com/acme/slugs/issues/7
      cause: it does not exist, or the token has no access to it
      hint: check the number, and the access of the token in GITHUB_TOKEN
    ");

    let server = api(|_| Response::status(410));
    insta::assert_snapshot!(refused(&server, &options(&server)).await.1, @r"
    error: failed to read the issue at https://github.com/acme/slugs/issues/7
      cause: it was deleted, or the repository no longer has issues
      hint: save the issue's text to a file and pass that
    ");
    let server = api(|_| Response::status(401));
    insta::assert_snapshot!(refused(&server, &with_token(&server)).await.1, @r"
    error: failed to read the issue at https://github.com/acme/slugs/issues/7
      cause: the server says 401 Unauthorized: status 401
      hint: renew the token in GITHUB_TOKEN, or unset it for public issues
    ");
    let server = api(|_| Response::status(451));
    insta::assert_snapshot!(refused(&server, &options(&server)).await.1, @r"
    error: failed to read the issue at https://github.com/acme/slugs/issues/7
      cause: the server says 451 Unavailable For Legal Reasons: status 451
      hint: save the issue's text to a file and pass that
    ");
    let server = api(|_| Response {
        status: 200,
        body: "<html>".to_owned(),
        ..Response::default()
    });
    insta::assert_snapshot!(refused(&server, &options(&server)).await.1, @r"
    error: failed to read the issue at https://github.com/acme/slugs/issues/7
      cause: 127.0.0.1 does not speak GitHub's API: expected value at line 1 column 1
      hint: set github.base-url to the API of the server, e.g. https://github.example.org/api/v3
    ");
}

#[tokio::test]
async fn rate_limit_error_shows_end() {
    let server = api(|_| {
        Response::status(403)
            .with("x-ratelimit-remaining", 0)
            .with("x-ratelimit-reset", 1_700_000_000)
    });
    let (error, shown) = refused(&server, &options(&server)).await;
    assert_eq!(error.exit_code(), 3);
    insta::assert_snapshot!(shown, @r"
    error: failed to read the issue at https://github.com/acme/slugs/issues/7
      cause: the server's rate limit is used up until 2023-11-14 22:13:20 UTC
      hint: wait, or set GITHUB_TOKEN, which allows many more requests
    ");

    let server = api(|_| Response::status(429).with("retry-after", 30));
    insta::assert_snapshot!(refused(&server, &with_token(&server)).await.1, @r"
    error: failed to read the issue at https://github.com/acme/slugs/issues/7
      cause: the server's rate limit is used up for 30 s
      hint: wait, or save the issue's text to a file and pass that
    ");

    // Here the request is forbidden for another reason.
    let server = api(|_| Response::status(403).with("x-ratelimit-remaining", 10));
    insta::assert_snapshot!(refused(&server, &with_token(&server)).await.1, @r"
    error: failed to read the issue at https://github.com/acme/slugs/issues/7
      cause: the server says 403 Forbidden: status 403
      hint: check the access of the token in GITHUB_TOKEN, or save the issue's text to a file and pass that
    ");
}

#[tokio::test]
async fn temporary_failures_are_retried() {
    let times = std::sync::atomic::AtomicU32::new(0);
    let server = api(
        move |_| match times.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => Response::status(502),
            _ => Response::json(issue(json!({}))),
        },
    );
    assert!(load(URL, &options(&server)).await.is_ok());

    let server = api(|_| Response::status(500));
    let (error, _) = refused(&server, &options(&server)).await;
    assert_eq!(error.exit_code(), 3);
    assert_eq!(
        server
            .requests(|r| !r.path.starts_with("/api"))
            .iter()
            .filter(|&&it| it)
            .count(),
        3
    );

    // No server listens on this port any more.
    let gone = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let nobody = Options {
        base_url: Some(RedactedUrl::new(format!("http://{gone}"))),
        ..Options::default()
    };
    let error = load(URL, &nobody).await.unwrap_err();
    assert_eq!(error.exit_code(), 3);
    assert!(error.cause.unwrap().contains("cannot be reached"));
}

#[tokio::test]
async fn token_is_sent_only_to_server() {
    let server = only(issue(json!({})));
    load(URL, &with_token(&server)).await.unwrap();
    let sent = server.requests(|r| r.header("authorization").map(str::to_owned));
    assert!(
        sent.iter()
            .all(|a| a.as_deref() == Some("Bearer ghp_secret")),
        "{sent:?}"
    );

    // The redirect of a transferred issue is followed on the same server.
    let server = api(|request| match request.path.as_str() {
        "/repos/acme/slugs/issues/7" => {
            Response::status(301).with("location", "/repositories/5/issues/9")
        }
        "/repositories/5/issues/9" => Response::json(issue(
            json!({ "html_url": "https://github.com/acme/words/issues/9" }),
        )),
        _ => Response::status(404),
    });
    let moved = load(URL, &with_token(&server)).await.unwrap();
    assert_eq!(
        moved.repository.as_deref(),
        Some("https://github.com/acme/words")
    );
    assert_eq!(
        (moved.origin.as_str(), moved.number),
        ("https://github.com/acme/words/issues/9", Some(9))
    );

    // Redirects to other paths are not followed.
    for page in [
        "/root/slugs/issues/9",
        "slugs/issues/9",
        "../slugs/issues/9",
        "file:///root/slugs/issues/9",
        "ssh://github.com/acme/words/issues/9",
        "git@github.com:acme/words/issues/9",
        "ext::sh -c x/issues/9",
        "github.com/acme/words/issues/9",
        "http://github.com/acme/words/issues/9",
        "https://github.com@127.0.0.1/acme/words/issues/9",
        "https://me:x@github.com/acme/words/issues/9",
        "https://127.0.0.1/acme/words/issues/9",
        "https://github.com.example.org/acme/words/issues/9",
        "https://github.com/../words/issues/9",
        "https://github.com/acme/words/pull/9",
        "https://github.com/acme/words",
    ] {
        let server = api(move |request| match request.path.as_str() {
            "/repos/acme/slugs/issues/7" => {
                Response::status(301).with("location", "/repositories/5/issues/9")
            }
            _ => Response::json(issue(json!({ "html_url": page }))),
        });
        let (error, _) = refused(&server, &with_token(&server)).await;
        let cause = error.cause.unwrap_or_default();
        assert!(
            cause.contains("not an issue of https://github.com"),
            "{page}: {cause}"
        );
    }

    // Redirects to other servers and redirect loops are not followed.
    let other = only(issue(json!({})));
    let to = format!("{}/repos/acme/slugs/issues/7", other.url);
    let server = api(move |_| Response::status(302).with("location", &to));
    let (_, shown) = refused(&server, &with_token(&server)).await;
    insta::assert_snapshot!(shown, @r"
    error: failed to read the issue at https://github.com/acme/slugs/issues/7
      cause: 127.0.0.1 redirects to 127.0.0.1
      hint: use the issue's current address, and set github.base-url to its server
    ");
    assert!(other.requests(|_| ()).is_empty());
    let server = api(|request| Response::status(302).with("location", &request.path));
    refused(&server, &with_token(&server)).await;
}
