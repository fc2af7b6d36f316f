//! Issues of other forges than GitHub, from a mock server.

use std::collections::BTreeMap;

use serde_json::json;
use testwright_agent::issues::{Options, load};
use testwright_config::settings::{Settings, Sources};

use crate::support::server::{MockServer, Response};

/// Returns the options with a token in this variable, and this server in the other one.
fn options(server: &MockServer, token: &str, host: &str) -> Options {
    let sources = Sources {
        variables: BTreeMap::from([
            (token.to_owned(), "a-secret".to_owned()),
            (host.to_owned(), server.url.clone()),
        ]),
        ..Sources::default()
    };
    Options::from_settings(&Settings::load(&sources).unwrap(), true)
}

fn forges() -> MockServer {
    let comment = |day: u32| {
        json!({
            "user": {"login": "bob"}, "author": {"username": "bob"}, "body": format!("day {day}"),
            "created_at": format!("2024-03-{day:02}T10:00:00Z"),
        })
    };
    MockServer::start(move |request| match request.path.as_str() {
        "/api/v4/projects/acme%2Fsub%2Fslugs/issues/7" => Response::json(json!({
            "title": "It fails", "description": "In GitLab.", "user_notes_count": 2,
            "created_at": "2024-03-01T10:00:00.123Z", "closed_at": "2024-03-05T10:00:00Z",
        })),
        path if path.starts_with("/api/v4/") && path.contains("/notes?") => {
            assert!(path.ends_with("&sort=asc"), "{path}");
            let mut of_system = comment(3);
            of_system["system"] = json!(true);
            Response::json(json!([comment(9), of_system, comment(2)]))
        }
        "/api/v1/repos/acme/slugs/issues/7" => Response::json(json!({
            "title": "It fails", "body": "In Gitea.", "comments": 1, "pull_request": null,
            "created_at": "2024-03-01T10:00:00Z", "updated_at": "2024-03-01T10:00:00Z",
            "closed_at": null,
        })),
        path if path.starts_with("/api/v1/") => Response::json(json!([comment(2)])),
        "/2.0/repositories/acme/slugs/issues/7" => Response::json(json!({
            "title": "It fails", "content": {"raw": "In Bitbucket."}, "state": "open",
            "created_on": "2024-03-01T10:00:00.123456+00:00",
        })),
        path if path.starts_with("/2.0/") => {
            let time = "2024-03-02T10:00:00+00:00";
            let values = ["day 2", ""].map(|raw| {
                json!({"content": {"raw": raw}, "created_on": time, "user": {"display_name": "bob"}})
            });
            Response::json(json!({"values": values, "next": "https://elsewhere.example.org/2"}))
        }
        _ => Response::status(404),
    })
}

#[tokio::test]
async fn other_forges_have_issues_and_comments() {
    let server = forges();
    let gitlab = options(&server, "GITLAB_TOKEN", "GITLAB_HOST");
    let gitea = options(&server, "GITEA_TOKEN", "GITEA_SERVER_URL");
    // This token is only for the public server.
    let bitbucket = options(&server, "BITBUCKET_TOKEN", "BITBUCKET_HOST");
    for (options, path, repository, page, body, token) in [
        (
            gitlab,
            "/acme/sub/slugs/-/issues/7#note_3",
            "/acme/sub/slugs",
            "/-/issues/7",
            "In GitLab.",
            Some("Bearer a-secret"),
        ),
        (
            gitea,
            "/acme/slugs/issues/7",
            "/acme/slugs",
            "/issues/7",
            "In Gitea.",
            Some("Bearer a-secret"),
        ),
        (
            bitbucket,
            "/2.0/repositories/acme/slugs/issues/7",
            "/acme/slugs",
            "/issues/7",
            "In Bitbucket.",
            None,
        ),
    ] {
        let before = server.requests(|_| ()).len();
        let url = format!("{}{path}", server.url);
        let issue = load(&url, &options).await.unwrap();
        assert_eq!(issue.title, "It fails");
        assert_eq!(issue.body, body);
        let repository = format!("{}{repository}", server.url);
        assert_eq!(issue.origin, format!("{repository}{page}"));
        assert_eq!(issue.repository, Some(repository));
        let comments: Vec<&str> = issue.comments.iter().map(|c| c.body.as_str()).collect();
        assert_eq!(comments, ["day 2"], "{path}");
        let sent = server.requests(|r| r.header("authorization").map(str::to_owned));
        assert_eq!(sent.len(), before + 2);
        let is_right = |sent: &Option<String>| sent.as_deref() == token;
        assert!(sent[before..].iter().all(is_right), "{path}: {sent:?}");
    }
}
