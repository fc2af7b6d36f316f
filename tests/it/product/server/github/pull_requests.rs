//! Draft pull requests with a test, and later pull requests that the test checks.

use std::time::Duration;

use serde_json::json;

use super::hub::{Hub, comment, labelled, repository};
use super::pytest;
use crate::support::server::Response;

#[test]
fn draft_test_checks_later_pull_requests() {
    let hub = Hub::new();
    hub.deliver(
        "issue_comment",
        "d-1",
        &comment("/testwright pr\nthank you"),
    );
    let comments = hub.api.wait_for_comments(7, 1);
    assert!(
        comments[0].contains("Draft pull request #20 adds it"),
        "{comments:?}"
    );
    let pull = hub.api.state().pull_requests[0].clone();
    assert_eq!(
        (&pull["draft"], &pull["base"]),
        (&json!(true), &json!("main"))
    );
    assert!(pull["body"].as_str().unwrap().contains("Refs #7"), "{pull}");
    let files = hub.files(&pull);
    let [(path, text)] = &files[..] else {
        panic!("{files:?}")
    };
    assert_eq!(path, "tests/test_slug.py");
    assert!(
        text.contains("@pytest.mark.xfail(strict=True, reason=\"#7\")\n"),
        "{text}"
    );
    // A second command opens no pull request and starts no run.
    hub.deliver("issue_comment", "d-2", &comment("/testwright pr"));
    hub.api.wait_for_comments(7, 2);
    assert_eq!(
        (hub.runs().len(), hub.api.state().pull_requests.len()),
        (1, 1)
    );

    let base = hub.git(&["rev-parse", "main"]);
    let slug = "slugs/slug.py";
    let cut = "return slug[:max_length]";
    let right = "return slug[:max_length].rstrip(\"-_\")";
    let fix = hub.commit("fix", slug, cut, right);
    let words = hub.commit("words", "README.md", "slug", "short name");
    let breaks = hub.commit(
        "breaks",
        slug,
        cut,
        "return slug[:max_length].rsplit(\"-\", 1)[0]",
    );
    for (number, head) in [(31, &fix), (32, &words), (33, &breaks)] {
        assert_eq!(hub.open(number, &base, head).status, 202);
    }
    for (number, begin) in [
        (31, "Fail-to-pass confirmed"),
        (32, "Still failing"),
        (33, "Other tests broke"),
    ] {
        let comments = hub.api.wait_for_comments(number, 1);
        assert!(comments[0].starts_with(begin), "{comments:?}");
    }
    assert!(hub.api.comments(33)[0].contains("::test_long_text_is_cut"));
    assert!(!hub.api.comments(33)[0].contains("::test_must_be_positive"));

    // After the draft is merged, pytest reports its test as xfailed. It can still confirm a fix.
    std::fs::write(repository(&hub.place).join(path), text).unwrap();
    hub.git(&["commit", "-qam", "Merge"]);
    let reported = pytest::run(&hub.place, &repository(&hub.place), path);
    assert!(reported.contains("1 xfailed"), "{reported}");
    assert!(!reported.contains("failed in"), "{reported}");
    let base = hub.git(&["rev-parse", "main"]);
    let fix = hub.commit("fix-after-the-merge", slug, cut, right);
    hub.open(34, &base, &fix);
    let comments = hub.api.wait_for_comments(34, 1);
    assert!(
        comments[0].starts_with("Fail-to-pass confirmed"),
        "{comments:?}"
    );
}

#[test]
fn refused_pull_request_does_not_withhold_test() {
    let hub = Hub::new();
    for (delivery, count, status, message) in [
        ("d-1", 1, 422, "Draft pull requests are not supported"),
        ("d-2", 2, 403, "Resource not accessible by integration"),
    ] {
        let refusal = Response::json(json!({ "message": message }));
        hub.api.state().pull_request_refusal = Some(Response { status, ..refusal });
        // The same text without another id would be a repeated delivery.
        let mut asked = comment("/testwright pr");
        asked["comment"]["id"] = json!(count);
        hub.deliver("issue_comment", delivery, &asked);
        let comments = hub.api.wait_for_comments(7, count);
        for expected in ["```diff\n", "No pull request was opened: an error occurred"] {
            assert!(comments[count - 1].contains(expected), "{comments:?}");
        }
        hub.wait_for_log(message);
    }
}

#[test]
fn restarted_server_answers_once() {
    let mut hub = Hub::new();
    hub.deliver("issues", "d-1", &labelled());
    hub.api.wait_for_comments(7, 1);
    let base = hub.git(&["rev-parse", "main"]);
    let head = hub.commit("words", "README.md", "slug", "short name");
    assert_eq!(hub.open(31, &base, &head).status, 202);
    // The work has usually started by now, but the test does not depend on it.
    std::thread::sleep(Duration::from_secs(2));
    hub.restart();
    let comments = hub.api.wait_for_comments(31, 1);
    assert!(comments[0].starts_with("Still failing"), "{comments:?}");
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(
        (hub.api.comments(31).len(), hub.api.comments(7).len()),
        (1, 1)
    );
}
