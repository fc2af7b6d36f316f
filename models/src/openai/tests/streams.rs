//! Streamed replies, and streams that break.

use super::*;

#[tokio::test]
async fn parallel_call_fragments_are_joined() {
    let reply = streamed(&[
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"content": "On "})),
        delta(json!({"content": "it."})),
        fragment(Some(0), Some("a"), Some("search"), ""),
        fragment(Some(0), None, None, "{\"pat"),
        fragment(Some(1), Some("b"), Some("open_file"), "{\"pattern\""),
        fragment(Some(0), None, None, "tern\": \"x\"}"),
        fragment(Some(1), Some("b"), Some("open_file"), ": \"y\"}"),
        end("tool_calls"),
        json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3, "prompt_cache_hit_tokens": 8}}),
    ])
    .await
    .unwrap();
    assert_eq!(reply.content, "On it.");
    assert_eq!(
        names(&reply),
        [
            ("a", "search", r#"{"pattern":"x"}"#.to_owned()),
            ("b", "open_file", r#"{"pattern":"y"}"#.to_owned()),
        ]
    );
    assert_eq!(
        (reply.usage.prompt_tokens, reply.usage.cached_tokens),
        (9, 8)
    );
}

#[tokio::test]
async fn missing_indices_are_tolerated() {
    // First complete calls that all have index 0 (Ollama), then calls without an index (gateways).
    for index in [Some(0), None] {
        let reply = streamed(&[
            fragment(index, Some("a"), Some("search"), "{\"pattern\": \"x\"}"),
            fragment(index, Some("b"), Some("search"), "{\"pattern\": "),
            fragment(index, None, None, "\"y\"}"),
            end("tool_calls"),
        ])
        .await
        .unwrap();
        assert_eq!(reply.calls.len(), 2, "{index:?} {reply:?}");
        assert_eq!(reply.calls[1].arguments, json!({"pattern": "y"}));
        assert!(reply.usage.estimated, "no usage came");
        assert!(reply.usage.prompt_tokens > 50 && reply.usage.completion_tokens > 5);
    }
}

#[tokio::test]
async fn unstreamed_reply_is_read() {
    let server = Server::new(vec![Act::json(
        200,
        &whole(json!({"content": "hello"}), "stop"),
    )])
    .await;
    let reply = client(&server, true).complete(&request()).await.unwrap();
    assert_eq!(reply.content, "hello");
    assert_eq!(
        server.requests()[0].body["stream_options"],
        json!({"include_usage": true})
    );
}

#[tokio::test]
async fn broken_stream_is_an_error() {
    let half = delta(json!({"content": "half a rep"}));
    let broken: Vec<(&str, Act)> = vec![
        (
            "cut",
            Act::Stream {
                events: vec![half.to_string()],
                cut: true,
            },
        ),
        (
            "ended",
            Act::Stream {
                events: vec![half.to_string()],
                cut: false,
            },
        ),
        ("done too early", Act::stream(std::slice::from_ref(&half))),
        (
            "garbage",
            Act::Stream {
                events: vec![half.to_string(), "{oops".to_owned()],
                cut: false,
            },
        ),
        (
            "error",
            Act::stream(&[
                half.clone(),
                json!({"error": {"message": "overloaded", "code": 529}}),
            ]),
        ),
        (
            "html",
            Act::Answer(
                200,
                vec![("content-type".to_owned(), "text/html".to_owned())],
                "<html>".to_owned(),
            ),
        ),
    ];
    for (name, act) in broken {
        let server = Server::new(vec![act]).await;
        let error = client(&server, true)
            .complete(&request())
            .await
            .unwrap_err();
        assert!(
            matches!(error, ModelError::Transient { .. }),
            "{name}: {error:?}"
        );
    }
}

#[tokio::test]
async fn silence_times_out() {
    let acts = [
        Act::Silence,
        Act::Stream {
            events: vec![],
            cut: false,
        },
    ];
    for (act, stream) in acts.into_iter().zip([false, true]) {
        let server = Server::new(vec![act]).await;
        let mut settings = settings(&server, stream);
        settings.timeout = Duration::from_millis(200);
        let error = OpenAi::new(settings)
            .unwrap()
            .complete(&request())
            .await
            .unwrap_err();
        let ModelError::Transient { message, .. } = error else {
            panic!("{error:?}")
        };
        assert!(
            message.contains("sent nothing") || message.contains("ended"),
            "{message}"
        );
    }
}
