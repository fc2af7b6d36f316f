#![allow(clippy::unwrap_used, clippy::expect_used)]
use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::json;

use super::*;
use crate::{Message, Model, Request, ToolCall, ToolResult, Usage};

/// A model that counts its calls; the third call fails.
#[derive(Default)]
struct Counter(Mutex<u64>);

#[async_trait]
impl Model for Counter {
    fn name(&self) -> &str {
        "counter"
    }

    async fn complete(&self, _: &Request) -> Result<Reply, ModelError> {
        let mut n = self.0.lock().unwrap();
        *n += 1;
        if *n == 3 {
            return Err(ModelError::ContextFull("full".to_owned()));
        }
        Ok(Reply {
            content: format!("reply {n} é\n"),
            calls: vec![ToolCall {
                id: format!("c{n}"),
                name: "search".to_owned(),
                arguments: json!({"b": 1, "a": [*n]}).into(),
                extra: crate::ExtraFields::default(),
            }],
            usage: Usage {
                prompt_tokens: *n,
                dollars: Some(0.1),
                ..Usage::default()
            },
            ..Reply::default()
        })
    }
}

fn request(messages: &[&str]) -> Request {
    Request {
        messages: messages
            .iter()
            .map(|m| Message::User {
                content: (*m).to_owned(),
            })
            .collect(),
        tools: vec![ToolSpec {
            name: "search".to_owned(),
            description: "d".to_owned(),
            parameters: json!({"type": "object"}),
        }],
        parallel_calls: true,
        temperature: Some(0.5),
        max_tokens: None,
    }
}

/// Returns requests that grow, are compacted, repeat themselves and change their settings.
fn requests() -> Vec<Request> {
    let mut other = request(&["x"]);
    other.tools.clear();
    let mut with_answer = request(&["a", "b"]);
    with_answer.messages.push(Message::Tool(ToolResult {
        id: "c1".to_owned(),
        content: "found".to_owned(),
    }));
    vec![
        request(&["a"]),
        request(&["a", "b"]),
        with_answer,
        other,
        request(&["a", "b"]),
    ]
}

type Outcomes = Vec<Result<Reply, ModelError>>;

async fn record(path: &std::path::Path) -> Outcomes {
    let recorder = Recorder::new(Box::new(Counter::default()), path).unwrap();
    let mut outcomes = Vec::new();
    for request in requests() {
        outcomes.push(recorder.complete(&request).await);
    }
    outcomes
}

#[tokio::test]
async fn replay_repeats_replies_and_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let outcomes = record(&path).await;
    let player = Replayer::open(&path, false).unwrap();
    assert_eq!(player.name(), "counter");
    for (request, outcome) in requests().iter().zip(outcomes) {
        assert_eq!(player.complete(request).await, outcome);
    }
    assert_eq!(player.left(), 0);
    let error = player.complete(&request(&["a"])).await.unwrap_err();
    assert!(error.to_string().contains("5 exchanges"), "{error}");
}

#[tokio::test]
async fn line_stores_new_messages_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    record(&path).await;
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(lines[2]["kept"], 2);
    assert_eq!(lines[2]["messages"].as_array().unwrap().len(), 1);
    assert!(lines[1].get("setting").is_none());
    assert!(lines[3].get("setting").is_some());
    assert_eq!(lines[0]["digest"].as_str().unwrap().len(), 64);
}

#[tokio::test]
async fn different_request_names_the_difference() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let outcomes = record(&path).await;
    let mut warmer = request(&["a"]);
    warmer.temperature = Some(1.0);
    let cases = [
        (request(&["one\nother"]), "/messages/0/content, line 1"),
        (
            request(&["a", "more"]),
            "/messages, 1 entries recorded and 2 now",
        ),
        (warmer, "/temperature"),
    ];
    for (changed_request, place) in cases {
        let player = Replayer::open(&path, false).unwrap();
        let error = player.complete(&changed_request).await.unwrap_err();
        let ModelError::NotRecorded(message) = &error else {
            panic!("{error:?}")
        };
        assert!(
            message.contains(place) && message.contains("request 1"),
            "{message}"
        );
        assert_eq!(player.left(), 5, "nothing is used up");
        let lenient = Replayer::open(&path, true).unwrap();
        assert_eq!(lenient.complete(&changed_request).await, outcomes[0]);
    }
}

#[tokio::test]
async fn concurrent_requests_may_be_reordered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let outcomes = record(&path).await;
    let player = Replayer::open(&path, false).unwrap();
    assert_eq!(player.complete(&requests()[3]).await, outcomes[3]);
    assert_eq!(player.complete(&requests()[0]).await, outcomes[0]);
}

#[tokio::test]
async fn killed_recording_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    record(&path).await;
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 30]).unwrap();
    assert_eq!(Replayer::open(&path, false).unwrap().left(), 4);
    let recorder = Recorder::new(Box::new(Counter::default()), &path).unwrap();
    recorder.complete(&request(&["a", "b"])).await.unwrap();
    let player = Replayer::open(&path, false).unwrap();
    assert_eq!(player.left(), 5);
}

#[tokio::test]
async fn invalid_recordings_are_not_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    record(&path).await;
    let good = std::fs::read_to_string(&path).unwrap();
    let good = good.lines().next().unwrap().to_owned() + "\n";
    for bad in [
        "hunter2",
        "\"hunter2\"",
        "4711",
        "{\"model\": 4711, \"hunter2\": 1}",
        "{\"model\": \"m\", \"digest\": \"\", \"kept\": 0, \"messages\": [{\"role\": \"hunter2\"}]}",
        "[\"hunter2\"]",
    ] {
        for (before, line) in [("", "line 1:"), (good.as_str(), "line 2:")] {
            std::fs::write(&path, format!("{before}{bad}\n")).unwrap();
            let error = Replayer::open(&path, false).unwrap_err().to_string();
            assert!(error.contains(line), "{error}");
            assert!(
                !error.contains("hunter2") && !error.contains("4711"),
                "{error}"
            );
        }
    }
    // The same holds for recorded content if the request differs.
    let planted = good
        .replace("\"a\"", "\"hunter2\"")
        .replace("\"object\"", "\"4711\"");
    std::fs::write(&path, planted).unwrap();
    for other_request in [request(&["b"]), request(&["b", "c"])] {
        let player = Replayer::open(&path, false).unwrap();
        let error = player
            .complete(&other_request)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("differs"), "{error}");
        assert!(
            !error.contains("hunter2") && !error.contains("4711"),
            "{error}"
        );
    }
}

#[test]
fn only_bounded_regular_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("plain"), "\n").unwrap();
    std::os::unix::fs::symlink(path("plain"), path("link")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let sparse = |name: &str, bytes| {
        std::fs::File::create(path(name))
            .unwrap()
            .set_len(bytes)
            .unwrap()
    };
    sparse("large", 3 << 30);
    sparse("one line", 65 << 20);
    assert_eq!(Replayer::open(&path("plain"), false).unwrap().left(), 0);
    for (name, why) in [
        ("link", "a symbolic link"),
        ("pipe", "a pipe"),
        ("large", "the limit"),
        ("one line", "line 1 has more than"),
        (".", "a folder"),
        ("/dev/zero", "a device"),
    ] {
        let error = Replayer::open(&path(name), false).unwrap_err().to_string();
        assert!(error.contains(why), "{name}: {error}");
    }
}

/// A short line may keep all messages of the line before.
#[tokio::test]
async fn shared_messages_are_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    record(&path).await;
    let good = std::fs::read_to_string(&path).unwrap();
    let first = good.lines().next().unwrap();
    let long = first.replace("\"a\"", &format!("\"{}\"", "a".repeat(1 << 20)));
    let mut next: serde_json::Value = serde_json::from_str(first).unwrap();
    next["kept"] = json!(1);
    next["messages"] = json!([]);
    let lines = format!("{long}\n{}", format!("{next}\n").repeat(20_000));
    std::fs::write(&path, lines).unwrap();
    let player = Replayer::open(&path, false).unwrap();
    assert_eq!(player.left(), 20_001);
    let error = player.complete(&request(&["b"])).await.unwrap_err();
    assert!(
        error.to_string().contains("/messages/0/content, line 1"),
        "{error}"
    );
}

#[test]
fn digest_ignores_key_order() {
    let mut a = request(&["a"]);
    let mut b = a.clone();
    a.tools[0].parameters = json!({"x": 1, "y": {"p": 1, "q": 2}});
    b.tools[0].parameters = json!({"y": {"q": 2, "p": 1}, "x": 1});
    assert_eq!(digest(&a), digest(&b));
    b.tools[0].parameters = json!({"y": {"q": 2, "p": 1}, "x": 2});
    assert_ne!(digest(&a), digest(&b));
}

/// /dev/full accepts no byte, like a full disk.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn unrecorded_reply_is_not_returned() {
    let full = std::path::Path::new("/dev/full");
    let recorder = Recorder::new(Box::new(Counter::default()), full).unwrap();
    let error = recorder.complete(&request(&["a"])).await.unwrap_err();
    assert!(
        matches!(error, ModelError::Fatal { hint: Some(_), .. }),
        "{error:?}"
    );
}
