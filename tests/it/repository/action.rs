//! Tests of the script behind `action.yml`, which reads an issue through GitHub's API and comments on it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::program::{TestDir, assert_exit_code, example};
use crate::support::server::{MockServer, Response};

const ISSUE: &str = "/repos/acme/slugs/issues/7";
const COMMENTS: &str = "/repos/acme/slugs/issues/7/comments";

/// An issue whose code shows nothing wrong.
const WITHOUT_FAULT: &str =
    "It is slow, @bob:\n\n```python\n>>> from slugs import slugify\n>>> slugify('a')\n'a'\n```\n";

/// Starts a server with one issue. It answers comments with this status.
fn server(body: String, comment: u16) -> MockServer {
    MockServer::start(move |request| match request.path.as_str() {
        ISSUE => Response::json(json!({
            "number": 7, "title": "slugify with max_length can end in a separator", "body": body,
            "html_url": "https://github.com/acme/slugs/issues/7", "created_at": "2024-03-01T10:00:00Z",
            "closed_at": null, "comments": 0, "state": "open", "user": {"login": "ann"},
        })),
        COMMENTS => Response::status(comment),
        _ => Response::status(404),
    })
}

fn answer(place: &TestDir, server: &MockServer, issue: &str, arguments: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_testwright"));
    let path = std::env::var("PATH").unwrap();
    let folder = program.parent().unwrap().display();
    let mut command = Command::new(format!(
        "{}/.github/answer-issue",
        env!("CARGO_MANIFEST_DIR")
    ));
    let testwright = place.testwright();
    for (name, value) in testwright.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .envs([
            ("ISSUE", issue),
            ("ARGUMENTS", arguments),
            ("GITHUB_TOKEN", "ghp_secret"),
            ("GITHUB_REPOSITORY", "acme/slugs"),
            ("GITHUB_SERVER_URL", &server.url),
            ("GITHUB_API_URL", &server.url),
            ("GITHUB_RUN_ID", "1"),
            // GitHub passes empty strings for omitted inputs.
            ("OPENAI_MODEL", ""),
            ("OPENAI_BASE_URL", ""),
            ("OPENAI_API_KEY", ""),
            ("TESTWRIGHT_GITHUB_BASE_URL", &server.url),
        ])
        .env("PATH", format!("{folder}:{path}"))
        .env("GITHUB_WORKSPACE", example("slugs"))
        .env("GITHUB_OUTPUT", place.path("output"))
        .env("GITHUB_STEP_SUMMARY", place.path("summary"))
        .env("RUNNER_TEMP", place.folder.path())
        .output()
        .unwrap()
}

/// Returns the posted comments with their tokens.
fn comments(server: &MockServer) -> Vec<(String, String)> {
    let requests = server.requests(|request| {
        let token = request
            .header("authorization")
            .unwrap_or_default()
            .to_owned();
        let sent = request.path == COMMENTS && !request.body.is_empty();
        sent.then(|| (token, request.body.clone()))
    });
    let comment_requests = requests.into_iter().flatten();
    comment_requests
        .map(|(token, body)| {
            let body: Value = serde_json::from_str(&body).unwrap();
            (token, body["body"].as_str().unwrap().to_owned())
        })
        .collect()
}

#[test]
fn accepted_test_is_posted_with_evidence() {
    let place = TestDir::new();
    let body = std::fs::read_to_string(example("issue.md")).unwrap();
    let server = server(body, 201);
    let arguments = "--max-minutes 5 --env 'WORDS=two words'";
    assert_exit_code(&answer(&place, &server, "7", arguments), 0);
    let comments = comments(&server);
    let [(token, comment)] = comments.as_slice() else {
        panic!("{} comments", comments.len())
    };
    assert_eq!(token, "Bearer ghp_secret");
    assert!(
        comment.starts_with("**testwright** wrote a test that fails"),
        "{comment}"
    );
    for part in [
        "```text\nA test was accepted.",
        "  fails      assertion",
        "```diff\ndiff --git a/",
    ] {
        assert!(comment.contains(part), "{part}: {comment}");
    }
    assert!(!comment.contains("ghp_secret"));
    let output = std::fs::read_to_string(place.path("output")).unwrap();
    assert!(output.contains("accepted=true"), "{output}");
    let results = place.path("testwright-7-1-1");
    assert!(results.join("test.patch").exists());
    let record = std::fs::read_to_string(results.join("run.json")).unwrap();
    assert!(record.contains("two words"), "{record}");
    assert_eq!(
        &std::fs::read_to_string(place.path("summary")).unwrap(),
        comment
    );
}

#[test]
fn missing_test_is_reported_in_summary() {
    let place = TestDir::new();
    let server = server(WITHOUT_FAULT.to_owned(), 201);
    assert_exit_code(&answer(&place, &server, "7", "--max-minutes 5"), 0);
    assert_eq!(comments(&server), []);
    let summary = std::fs::read_to_string(place.path("summary")).unwrap();
    assert!(
        summary.starts_with("**testwright** found no test for this issue"),
        "{summary}"
    );
    let output = std::fs::read_to_string(place.path("output")).unwrap();
    assert!(output.contains("accepted=false"), "{output}");
}

#[test]
fn failures_post_no_comment() {
    let place = TestDir::new();
    let body = std::fs::read_to_string(example("issue.md")).unwrap();
    let server = server(body, 403);
    for (issue, arguments, code) in [
        ("7; id", "", 2),
        ("8", "", 2),
        ("7", "--no-such-option", 2),
        ("7", "--env 'open", 2),
        ("7", "", 1),
    ] {
        let output = answer(&place, &server, issue, arguments);
        assert_exit_code(&output, code);
        let refused = String::from_utf8_lossy(&output.stderr).contains("the comment was rejected");
        assert_eq!(refused, code == 1);
    }
    assert_eq!(comments(&server).len(), 1);
}
