//! Checks of given tests over the API: verdicts, rejected requests, and clients that disconnect.

use serde_json::{Value, json};

use super::mcp::wait_until_alone;
use super::mcp_cancel::{sleep_time, wait_until_sleeping};
use super::{ServerProcess, issue};
use crate::product::check::{GOOD, PASSING};
use crate::support::program::TestDir;

const PATH: &str = "tests/test_given.py";

/// Returns a request to check tests for the example.
fn request(tests: Value) -> Value {
    let mut request = issue();
    request["tests"] = tests;
    request
}

#[test]
fn given_tests_are_judged_in_order() {
    let place = TestDir::new();
    let server = ServerProcess::start_idle(&place);
    let tests = json!([
        {"name": "good", "path": PATH, "content": GOOD},
        {"path": PATH, "content": PASSING},
        {"patch": "+x"},
    ]);
    let reply = server.client.post("/v1/checks", &request(tests));
    assert_eq!(reply.status, 200, "{reply:?}");
    let body = reply.json();
    let checks = body["checks"].as_array().unwrap();
    let accepted: Vec<&Value> = checks.iter().map(|check| &check["accepted"]).collect();
    assert_eq!(accepted, [true, false, false], "{body:#}");
    assert_eq!(checks[0]["name"], "good");
    assert_eq!(
        checks[0]["failing"][0]["id"],
        "tests/test_given.py::test_cut"
    );
    assert_eq!(checks[1]["name"], PATH);
    assert_eq!(checks[1]["findings"][0]["rule"], "fails", "{body:#}");
    assert!(checks[2].get("name").is_none());
    let refused = checks[2]["refused"].as_str().unwrap();
    assert!(refused.contains("the patch does not apply"), "{refused}");
}

#[test]
fn invalid_requests_are_rejected() {
    let place = TestDir::new();
    let server = ServerProcess::start_idle(&place);
    let mut foreign = request(json!([{"path": PATH, "content": GOOD}]));
    foreign["repository"] = json!("https://example.org/a/b");
    let long = "x".repeat((1 << 20) + 1);
    for (request, reason) in [
        (
            request(json!([{"patch": "x", "path": PATH, "content": GOOD}])),
            "neither a patch nor a file, or both",
        ),
        (
            request(json!([{"path": PATH}])),
            "neither a patch nor a file",
        ),
        (
            request(json!([{"patch": long}])),
            "a text of at most 1048576 bytes",
        ),
        (
            request(json!([{"name": "", "patch": "x"}])),
            "1 to 100 characters",
        ),
        (request(json!([])), "the allowed number is 1 to 20"),
        (foreign, "failed to use that repository"),
    ] {
        let reply = server.client.post("/v1/checks", &request);
        assert_eq!(reply.status, 422, "{reason}: {reply:?}");
        assert!(reply.body.contains(reason), "{reason}: {reply:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_ends_when_client_disconnects() {
    let place = TestDir::new();
    let server = ServerProcess::start_idle(&place);
    let slow = format!(
        "import subprocess\n\n\ndef test_slow():\n    subprocess.run(['sleep', '{}'])\n",
        sleep_time()
    );
    let body = request(json!([{"path": PATH, "content": slow}])).to_string();
    let kind = [("content-type", "application/json")];
    let connection = server.client.open("POST", "/v1/checks", &kind, &body);
    wait_until_sleeping(true).await;
    drop(connection);
    wait_until_sleeping(false).await;
    wait_until_alone(server.child.id()).await;
}
