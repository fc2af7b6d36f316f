//! An endpoint that quotes the API key, which it received, in all its responses.

use base64::Engine;
use serde_json::json;

use crate::support::program::{TestDir, assert_exit_code};
use crate::support::server::{MockServer, Response};

const KEY: &str = "sk-pa55word/0123+456789";

/// Returns the key in every encoding that is searched for.
fn encoded_keys() -> String {
    let base64 = base64::engine::general_purpose::STANDARD;
    format!(
        "{KEY} {} {} {}",
        base64.encode(format!("Bearer {KEY}")),
        KEY.replace('/', "%2F").replace('+', "%2B"),
        KEY.replace('/', "\\/")
    )
}

/// Returns everything that a run printed and wrote to disk.
fn left(place: &TestDir, output: &std::process::Output) -> String {
    let mut all = String::from_utf8_lossy(&output.stdout).into_owned();
    all.push_str(&String::from_utf8_lossy(&output.stderr));
    for entry in std::fs::read_dir(place.path("out"))
        .into_iter()
        .flatten()
        .flatten()
    {
        all.push_str(&String::from_utf8_lossy(
            &std::fs::read(entry.path()).unwrap(),
        ));
    }
    if let Ok(text) = std::fs::read_to_string(place.path("traffic.jsonl")) {
        all.push_str(&text);
    }
    all
}

fn is_clean(text: &str) {
    let base64 = base64::engine::general_purpose::STANDARD.encode(format!("Bearer {KEY}"));
    let forms = [KEY, "pa55word", &base64[12..30], "0123%2B456"];
    for form in forms {
        let at = text.find(form).map(|at| {
            let start = text[..at]
                .char_indices()
                .rev()
                .nth(150)
                .map_or(0, |(i, _)| i);
            text[start..].chars().take(400).collect::<String>()
        });
        assert_eq!(at, None, "{form}");
    }
}

fn run(place: &TestDir, server: &MockServer, more: &[&str]) -> std::process::Output {
    place
        .run_example(&[
            "--approach",
            "testwright",
            "--model",
            "m",
            "--max-steps",
            "3",
        ])
        .args(more)
        .arg("--record")
        .arg(place.path("traffic.jsonl"))
        .env("OPENAI_BASE_URL", format!("{}/v1", server.url))
        .env("OPENAI_API_KEY", KEY)
        .output()
        .unwrap()
}

fn reply(message: serde_json::Value) -> Response {
    Response::json(json!({
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5},
    }))
    .with("content-type", "application/json")
}

#[test]
fn quoted_key_is_removed_from_replies() {
    let place = TestDir::new();
    let server = MockServer::start(|_| {
        // The arguments are JSON in JSON, so the key is escaped twice there.
        let escaped: String = KEY
            .chars()
            .map(|c| format!("\\u{:04x}", u32::from(c)))
            .collect();
        reply(json!({
            "role": "assistant",
            "content": format!("your key: {}", encoded_keys()),
            "tool_calls": [
                {"id": format!("id-{KEY}"), "type": "function", "function":
                    {"name": "search", "arguments": json!({"pattern": encoded_keys()}).to_string()}},
                {"id": "b", "type": "function", "function":
                    {"name": "search", "arguments": format!("{{\"pattern\": \"{escaped}\"}}")}},
                {"id": "c", "type": "function", "function":
                    {"name": format!("tool-{KEY}"), "arguments": format!("not json {}", encoded_keys())}},
            ],
        }))
    });
    let output = run(&place, &server, &[]);
    assert_exit_code(&output, 1);
    let all_output = left(&place, &output);
    assert!(all_output.contains("your key: ***"), "{all_output}");
    is_clean(&all_output);
    // Requests do not contain the key either, except in the authorization header.
    is_clean(&server.requests(|r| r.body.clone()).concat());
    let authorizations =
        server.requests(|r| r.header("authorization").unwrap_or_default().to_owned());
    assert_eq!(authorizations[0], format!("Bearer {KEY}"));
}

#[test]
fn quoted_key_is_removed_from_errors() {
    let bodies = [
        json!({"error": {"message": format!("Incorrect API key provided: {}", encoded_keys())}})
            .to_string(),
        // A truncated message must not keep a part of the key.
        json!({"error": {"message": format!("{}{KEY}", "x".repeat(590))}}).to_string(),
        format!("no json: {}", encoded_keys()),
        json!({"choices": [], "padding": "y".repeat(230), "key": KEY}).to_string(),
    ];
    for (i, body) in bodies.into_iter().enumerate() {
        for status in [401, 200] {
            let place = TestDir::new();
            let body = body.clone();
            let server = MockServer::start(move |_| Response {
                status,
                body: body.clone(),
                ..Response::status(status).with("content-type", "application/json")
            });
            let output = run(&place, &server, &["--max-minutes", "0.05"]);
            let all_output = left(&place, &output);
            assert!(
                all_output.contains(&server.url) || all_output.contains("budget"),
                "{i} {status}: {all_output}"
            );
            is_clean(&all_output);
        }
    }
}
