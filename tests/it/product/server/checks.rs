//! Checks of given tests over the API: verdicts, rejected requests, and clients that disconnect.

use serde_json::{Value, json};

use super::mcp::wait_until_alone;
use super::mcp_cancel::{sleep_time, wait_until_sleeping};
use super::mcp_client::{McpClient, text};
use super::{ServerProcess, databases, issue};
use crate::product::check::{GOOD, PASSING, agreeing_model};
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

#[tokio::test(flavor = "multi_thread")]
async fn model_adds_fixes_and_review() {
    let place = TestDir::new();
    let model = agreeing_model(&place);
    let words = ["--allow-recordings", "--workers", "0"];
    let server = ServerProcess::start_with(&place, &databases::all()[0], None, "data", &words);
    let mut arguments = issue();
    arguments["model"] = json!(model);
    arguments["limits"] = json!({"steps": 5});
    let mut request = arguments.clone();
    // The second test passes on the old code, so the model is not asked about it.
    request["tests"] = json!([
        {"path": PATH, "content": GOOD},
        {"path": PATH, "content": PASSING},
    ]);
    let reply = server.client.post("/v1/checks", &request);
    assert_eq!(reply.status, 200, "{reply:?}");
    let checks = &reply.json()["checks"];
    assert_eq!(checks[0]["review"]["verdict"], "yes", "{checks:#}");
    assert_eq!(checks[0]["fixes"].as_array().map(Vec::len), Some(1));
    assert!(checks[0]["probability"].as_f64().unwrap() > 0.9);
    assert!(checks[1].get("review").is_none(), "{checks:#}");

    let client = McpClient::over_http(&server).await;
    arguments["path"] = json!(PATH);
    arguments["content"] = json!(GOOD);
    let result = client.try_call("check_test", arguments).await.unwrap();
    let evidence = result.structured_content.clone().unwrap();
    assert_eq!(evidence["review"], checks[0]["review"]);
    let text = text(&result);
    assert!(
        text.contains("\nReviewer: fails for the issue's reason"),
        "{text}"
    );
    assert!(
        text.contains("\nIssue: “") && text.contains("\nConfidence: 0.9"),
        "{text}"
    );
    wait_until_alone(server.child.id()).await;
}

#[test]
fn invalid_requests_are_rejected() {
    let place = TestDir::new();
    let server = ServerProcess::start_idle(&place);
    let with = |field: &str, value: Value| {
        let mut request = request(json!([{"path": PATH, "content": GOOD}]));
        request["model"] = json!("gpt-5-mini");
        request[field] = value;
        request
    };
    let mut foreign = request(json!([{"path": PATH, "content": GOOD}]));
    foreign["repository"] = json!("https://example.org/a/b");
    let mut limits_only = with("limits", json!({"dollars": 0.5}));
    limits_only["model"] = Value::Null;
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
        (
            with("model", json!("replay:replies.jsonl")),
            "recordings are disabled on this server",
        ),
        (with("model", json!("snippet")), "follows fixed rules"),
        (with("limits", json!({})), "OPENAI_API_KEY is not set"),
        (
            with("limits", json!({"steps": 0})),
            "`steps` is not greater than zero",
        ),
        (limits_only, "they apply to a model"),
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
