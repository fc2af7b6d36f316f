//! TESTWRIGHT_LOG: details of a run, to find the cause of a problem.

use serde_json::json;

use crate::support::program::{TestDir, code};
use crate::support::server::{MockServer, Response};

/// Runs the example with a model that is busy at first. Returns the exit code and stderr.
fn printed(log: Option<&str>) -> (i32, String) {
    let place = TestDir::new();
    let refusals = std::sync::atomic::AtomicUsize::new(0);
    let server = MockServer::start(move |_| {
        if refusals.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 {
            return Response::status(429).with("retry-after", 0);
        }
        Response::json(json!({
            "id": "1", "object": "chat.completion", "created": 0, "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "I wait."}}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }))
    });
    let mut run = place.run_example(&["--model", "m", "--max-steps", "1"]);
    run.env("OPENAI_BASE_URL", &server.url)
        .env("OPENAI_API_KEY", "sk-secret-key");
    if let Some(log) = log {
        run.env("TESTWRIGHT_LOG", log);
    }
    let output = run.output().unwrap();
    (
        code(&output),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn log_variable_shows_retries() {
    const RETRY: &str = "waiting before asking the model again";
    let (ended, text) = printed(Some("testwright=info"));
    assert_eq!(ended, 1, "{text}");
    assert!(
        text.contains("INFO testwright_models::retry") && text.contains(RETRY),
        "{text}"
    );
    assert!(!text.contains("sk-secret-key"), "{text}");
    let (ended, text) = printed(None);
    assert_eq!(ended, 1, "{text}");
    assert!(!text.contains(RETRY), "{text}");
}

#[test]
fn unreachable_model_ends_run_before_build() {
    let place = TestDir::new();
    let output = place
        .run_example(&["--model", "m"])
        .env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
        .output()
        .unwrap();
    assert_eq!(code(&output), 3);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("model: m · approach testwright"), "{text}");
    assert!(
        text.contains(": connection refused\n  hint: start the model server on port 1"),
        "{text}"
    );
    assert!(
        !text.contains("recipe: ") && !place.path("out").exists(),
        "{text}"
    );
}

#[test]
fn dollar_limit_without_price_is_refused() {
    let place = TestDir::new();
    let output = place
        .run_example(&["--model", "m", "--max-dollars", "1"])
        .env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
        .output()
        .unwrap();
    assert_eq!(code(&output), 2);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("the model `m` has no price"), "{text}");
}

#[test]
fn invalid_log_level_is_rejected() {
    let output = TestDir::new()
        .testwright()
        .env("TESTWRIGHT_LOG", "testwright=loud")
        .arg("tools")
        .output()
        .unwrap();
    assert_eq!(code(&output), 2);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("TESTWRIGHT_LOG=testwright=loud") && text.contains("hint: "),
        "{text}"
    );
}
