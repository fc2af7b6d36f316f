//! Issues that get a label or a comment: the server answers them once, or not at all.

use std::time::Duration;

use serde_json::{Value, json};

use super::hub::{Hub, SECRET, comment, labelled, payload, sign};
use crate::product::server::databases;
use crate::support::server::Response;

#[test]
fn labelled_issue_is_answered_once() {
    for database in databases::all() {
        let hub = Hub::with(&database, &[]);
        let ping = payload(include_str!("ping.json"));
        assert_eq!(hub.deliver("ping", "d-0", &ping).status, 200);
        let first = hub.deliver("issues", "d-1", &labelled());
        assert_eq!(first.status, 202, "{first:?}");
        let comments = hub.api.wait_for_comments(7, 1);
        assert!(
            comments[0].starts_with("testwright wrote a test that fails on the current code"),
            "{comments:?}"
        );
        assert!(comments[0].contains("```diff\ndiff --git a/tests/test_slug.py"));
        assert!(comments[0].contains("confidence"), "{comments:?}");
        assert!(comments[0].contains("<!-- testwright "));
        let runs = hub.runs();
        assert_eq!(runs.len(), 1);
        assert_eq!(runs[0]["status"], "accepted");
        assert_eq!(runs[0]["title"], labelled()["issue"]["title"]);

        // A repeated delivery has no effect, even with another id.
        for delivery in ["d-1", "d-2"] {
            assert_eq!(hub.deliver("issues", delivery, &labelled()).status, 200);
        }
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!((hub.runs().len(), hub.api.comments(7).len()), (1, 1));
        let logins = hub.api.state().logins.clone();
        assert!(
            logins
                .iter()
                .all(|(_, login)| login == "Bearer ghp_of_the_daemon")
        );
        assert_eq!(hub.daemon.terminate(), Some(0));
    }
}

#[test]
fn unsigned_or_forbidden_events_are_ignored() {
    let hub = Hub::new();
    let body = labelled().to_string();
    let of_other = sign(&format!("{body} "));
    let older = sign(&body).replace("sha256", "sha1");
    for signature in ["", "sha256=", &of_other, &older] {
        let refused = hub.send("issues", "d-1", &body, signature);
        assert_eq!(refused.status, 401, "{signature}");
    }
    // Unsigned deliveries are not read.
    assert_eq!(hub.send("issues", "d-1", "{", "").status, 401);
    let hint = |body: &str| {
        let refused = hub.send("issues", "d-1", body, &sign(body));
        assert_eq!(refused.status, 400, "{refused:?}");
        refused.json()["hint"].as_str().unwrap().to_owned()
    };
    assert!(!hint("{").contains("content type"));
    assert!(hint("payload=%7B%7D").contains("content type"));
    assert_eq!(hub.send("issues", "", &body, &sign(&body)).status, 400);
    let long = " ".repeat((4 << 20) + 1);
    let refused = hub.send("issues", "d-1", &long, &sign(&long));
    assert_eq!(refused.status, 413, "{refused:?}");
    assert_eq!(
        refused.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(refused.json()["hint"], "send at most 4194304 bytes");
    // Other addresses reject unknown host names.
    let kind = ("content-type", "application/json");
    for path in [
        "/v1/runs",
        "/v1/github/webhook/",
        "/v1/github/webhook/../../runs",
    ] {
        let headers = [kind, ("host", "hooks.example.org")];
        assert_eq!(
            hub.daemon.client.send("POST", path, &headers, "{}").status,
            421,
            "{path}"
        );
    }

    let mut by_stranger = comment("/testwright");
    by_stranger["comment"]["author_association"] = json!("NONE");
    let mut by_program = comment("/testwright");
    by_program["sender"]["type"] = json!("Bot");
    let mut on_pull_request = comment("/testwright");
    on_pull_request["issue"]["pull_request"] = json!({"url": "https://x/pulls/7"});
    let mut other_label = labelled();
    other_label["label"]["name"] = json!("bug");
    let mut unlabelled = labelled();
    unlabelled["action"] = json!("unlabeled");
    let star = json!({"action": "created", "repository": {"full_name": "acme/slugs"}});
    let mut long_star = star.clone();
    long_star["text"] = json!("x".repeat(3 << 20));
    let elsewhere = hub.git(&["rev-parse", "main"]);
    for (event, payload) in [
        ("issue_comment", by_stranger),
        ("issue_comment", by_program),
        ("issue_comment", on_pull_request),
        ("issue_comment", comment("I like /testwright")),
        ("issues", other_label),
        ("issues", unlabelled),
        ("star", star),
        ("star", long_star),
    ] {
        let delivery = format!("{event}-{}", payload.to_string().len());
        // Nothing is stored, so a repetition is not recognized.
        for _ in 0..2 {
            let ignored = hub.deliver(event, &delivery, &payload);
            assert_eq!(ignored.status, 202, "{event} {ignored:?}");
            assert!(!ignored.body.contains("queued"), "{ignored:?}");
        }
    }
    // No test exists for the issue that it mentions.
    assert!(
        hub.open(31, &elsewhere, &elsewhere)
            .body
            .contains("no test")
    );
    let mut of_stranger = payload(include_str!("pull_request_opened.json"));
    for branch in ["head", "base"] {
        of_stranger["pull_request"][branch]["sha"] = json!(elsewhere);
    }
    let mut of_ours = of_stranger.clone();
    of_stranger["pull_request"]["author_association"] = json!("FIRST_TIME_CONTRIBUTOR");
    of_ours["pull_request"]["head"]["ref"] = json!("testwright/issue-7-x");
    of_ours["pull_request"]["head"]["repo"]["full_name"] = json!("acme/slugs");
    for (delivery, pull, why) in [
        (
            "p-1",
            &of_stranger,
            "do not run on pull requests of this author",
        ),
        ("p-2", &of_ours, "testwright opened this"),
    ] {
        let ignored = hub.deliver("pull_request", delivery, pull);
        assert!(ignored.body.contains(why), "{ignored:?}");
    }
    // The names are an invalid repository, and one that the server does not allow.
    let mut foreign = labelled();
    foreign["repository"]["full_name"] = json!("../acme");
    assert_eq!(hub.deliver("issues", "d-8", &foreign).status, 400);
    foreign["repository"]["full_name"] = json!("other/slugs");
    assert_eq!(hub.deliver("issues", "d-9", &foreign).status, 202);
    let log = hub.wait_for_log("gave up a GitHub task");
    assert!(log.contains("this server does not allow it"), "{log}");
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(hub.runs(), Vec::<Value>::new());
    assert_eq!(hub.api.requests(), 0);
}

#[test]
fn lost_response_is_not_posted_twice() {
    let mut hub = Hub::new();
    let limited = Response::status(403).with("retry-after", 2);
    hub.api.state().comment_responses = vec![(limited, false), (Response::status(502), true)];
    hub.deliver("issues", "d-1", &labelled());
    hub.wait_for_log("GitHub responded with 502");
    hub.restart();
    hub.deliver("issue_comment", "d-2", &comment("/testwright"));
    // The second answer follows once the first one is complete.
    let comments = hub.api.wait_for_comments(7, 2);
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(hub.api.comments(7), comments);
    assert_ne!(comments[0], comments[1]);
    assert!(hub.api.state().comment_responses.is_empty());
}

#[test]
fn dry_run_posts_nothing() {
    let variables = [("TESTWRIGHT_GITHUB_DRY_RUN", "true"), ("GITHUB_TOKEN", "")];
    let hub = Hub::with(&databases::embedded(), &variables);
    hub.deliver("issue_comment", "d-1", &comment("/testwright pr"));
    let log = hub.wait_for_log("dry run: not posted");
    assert!(log.contains("dry run: not opening a pull request"), "{log}");
    assert!(log.contains("tests/test_slug.py"), "{log}");
    assert!(log.contains("testwright wrote a test that fails"), "{log}");
    assert!(!log.contains(SECRET));
    assert_eq!(hub.api.requests(), 0);
}
