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
async fn complete_calls_under_one_index_are_separate() {
    for id in [Some(""), None, Some("same")] {
        let reply = streamed(&[
            fragment(Some(0), id, Some("search"), "{\"pattern\": \"x\"}"),
            fragment(Some(0), id, Some("open_file"), "{\"pattern\": \"y\"}"),
            fragment(Some(0), id, Some("search"), "{\"pattern\": \"z\"}"),
            end("tool_calls"),
        ])
        .await
        .unwrap();
        let names: Vec<&str> = reply.calls.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["search", "open_file", "search"], "{id:?}");
        assert_eq!(reply.calls[2].arguments, json!({"pattern": "z"}));
    }
}

#[tokio::test]
async fn calls_without_arguments_are_separate() {
    let bare = |name: &str, arguments: &str| {
        let function = json!({"name": name, "arguments": arguments});
        delta(
            json!({"tool_calls": [{"index": 0, "id": "", "type": "function", "function": function}]}),
        )
    };
    let reply = streamed(&[
        bare("open_file", ""),
        bare("search", "{\"pattern\": \"x\"}"),
    ])
    .await
    .unwrap();
    assert_eq!(reply.calls.len(), 2, "{reply:?}");
    assert_eq!(reply.calls[1].arguments, json!({"pattern": "x"}));
    // `[DONE]` shows that no arguments follow.
    let reply = streamed(&[bare("search", "")]).await.unwrap();
    assert_eq!(reply.calls.len(), 1, "{reply:?}");
}

#[tokio::test]
async fn alternating_pieces_are_joined_by_id() {
    let reply = streamed(&[
        fragment(Some(0), Some("a"), Some("search"), ""),
        fragment(Some(0), Some("b"), Some("open_file"), ""),
        fragment(Some(0), Some("a"), None, "{\"pattern\": \"x\"}"),
        fragment(Some(0), Some("b"), None, "{\"pattern\": \"y\"}"),
        end("tool_calls"),
    ])
    .await
    .unwrap();
    let arguments: Vec<_> = reply
        .calls
        .iter()
        .map(|call| call.arguments.value())
        .collect();
    assert_eq!(
        arguments,
        [json!({"pattern": "x"}), json!({"pattern": "y"})]
    );
}

#[tokio::test]
async fn repeated_message_at_end_is_read_once() {
    let call = json!({"id": "a", "index": 0, "function": {"name": "search", "arguments": "{\"pattern\": \"x\"}"}});
    let whole = json!({"choices": [{"index": 0, "message": {"content": "Hm.", "tool_calls": [call]}, "finish_reason": "stop"}]});
    let repeated = delta(json!({"tool_calls": [call]}));
    for last in [whole, repeated] {
        let reply = streamed(&[
            delta(json!({"content": "Hm."})),
            delta(json!({"tool_calls": [call]})),
            last,
            end("tool_calls"),
        ])
        .await
        .unwrap();
        assert_eq!((reply.content.as_str(), reply.calls.len()), ("Hm.", 1));
    }
}

#[tokio::test]
async fn repeated_names_do_not_start_calls() {
    let (name, end_of_arguments) = (Some("search"), "\"x\"}");
    for [first, second] in [[Some("a"), Some("b")], [None, None]] {
        let reply = streamed(&[
            fragment(Some(0), first, name, "{\"pattern\": "),
            fragment(Some(0), second, name, end_of_arguments),
            fragment(Some(0), None, name, ""),
            end("tool_calls"),
        ])
        .await
        .unwrap();
        assert_eq!(reply.calls.len(), 1, "{reply:?}");
        assert_eq!(reply.calls[0].arguments, json!({"pattern": "x"}));
    }
}

#[tokio::test]
async fn arguments_after_repeated_name_start_call() {
    let (index, name) = (Some(0), Some("search"));
    let reply = streamed(&[
        fragment(index, None, name, ""),
        fragment(index, None, None, "{\"pattern\": \"x\"}"),
        fragment(index, None, name, ""),
        fragment(index, None, None, "{\"pattern\": "),
        fragment(index, None, None, "\"y\"}"),
        end("tool_calls"),
    ])
    .await
    .unwrap();
    assert_eq!(reply.calls.len(), 2, "{reply:?}");
    assert_eq!(reply.calls[1].arguments, json!({"pattern": "y"}));
}

#[tokio::test]
async fn error_objects_in_streams_are_errors() {
    let error = json!({"object": "error", "message": "The input (9000 tokens) is longer than the model's context length (8192 tokens).", "code": 400});
    let error = streamed(&[delta(json!({"content": "x"})), error]).await;
    assert!(
        matches!(error, Err(ModelError::ContextFull(_))),
        "{error:?}"
    );
}

#[tokio::test]
async fn empty_streams_are_given_up() {
    let empty = || Act::Answer(200, vec![], "{\"choices\": []}".to_owned());
    let whole = Act::json(200, &build_completion(json!({"content": "done"}), "stop"));
    let server = Server::new(vec![empty(), empty(), whole]).await;
    let model = client(&server, true);
    for _ in 0..2 {
        assert!(model.complete(&request()).await.is_err());
    }
    assert_eq!(model.complete(&request()).await.unwrap().content, "done");
    assert_eq!(server.requests()[2].body["stream"], json!(false));
}

#[tokio::test]
async fn missing_finish_reason_is_tolerated() {
    let call = fragment(Some(0), Some("a"), Some("search"), "{\"pattern\": \"x\"}");
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}});
    let reply = streamed(&[call, usage]).await.unwrap();
    assert_eq!((reply.calls.len(), reply.finish), (1, Finish::ToolCalls));
    let half = fragment(Some(0), Some("a"), Some("search"), "{\"pattern\": ");
    assert!(streamed(&[half]).await.is_err());
    let complete = fragment(Some(0), Some("a"), Some("search"), "{\"pattern\": \"x\"}");
    let act = Act::Stream {
        events: vec![complete.to_string()],
        cut: false,
    };
    let server = Server::new(vec![act]).await;
    let reply = client(&server, true).complete(&request()).await.unwrap();
    assert_eq!(reply.calls.len(), 1);
    // A text is taken the second time: the service never says why a reply ended.
    let text = || Act::stream(&[delta(json!({"content": "done"}))]);
    let server = Server::new(vec![text(), text(), text()]).await;
    let model = client(&server, true);
    assert!(model.complete(&request()).await.is_err());
    for _ in 0..2 {
        assert_eq!(model.complete(&request()).await.unwrap().content, "done");
    }
}

#[tokio::test]
async fn data_without_chunk_is_skipped() {
    let events = [
        "ping".to_owned(),
        delta(json!({"content": "done"})).to_string(),
        String::new(),
        end("stop").to_string(),
        "[DONE] ".to_owned(),
    ];
    let act = Act::Stream {
        events: events.to_vec(),
        cut: false,
    };
    let server = Server::new(vec![act]).await;
    let reply = client(&server, true).complete(&request()).await.unwrap();
    assert_eq!(reply.content, "done");
}

#[tokio::test]
async fn empty_finish_reason_is_ignored() {
    for reason in ["", "null"] {
        let half = json!({"choices": [{"index": 0, "delta": {"content": "half"}, "finish_reason": reason}]});
        let act = Act::Stream {
            events: vec![half.to_string()],
            cut: false,
        };
        let server = Server::new(vec![act]).await;
        let error = client(&server, true).complete(&request()).await;
        assert!(
            matches!(error, Err(ModelError::Transient { .. })),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn thoughts_without_opening_tag_are_no_calls() {
    let text = "I could write <tool_call>{\"name\": \"open_file\", \"arguments\": {\"pattern\": \"y\"}}</tool_call>.\n</think>\n\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"x\"}}\n</tool_call>";
    let reply = streamed(&[delta(json!({"content": text})), end("stop")])
        .await
        .unwrap();
    assert_eq!(reply.calls.len(), 1, "{reply:?}");
    assert_eq!(reply.calls[0].name, "search");
}

#[tokio::test]
async fn unstreamed_reply_is_read() {
    let server = Server::new(vec![Act::json(
        200,
        &build_completion(json!({"content": "hello"}), "stop"),
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
