//! Complete replies, with calls or text.

use super::*;

#[tokio::test]
async fn plain_reply_counts_cached_tokens() {
    let server = Server::new(vec![Act::json(
        200,
        &build_completion(json!({"role": "assistant", "content": "hello"}), "stop"),
    )])
    .await;
    let mut settings = settings(&server, false);
    settings.api_key = Some(SecretString::from("sk-secret-1\n"));
    let reply = OpenAi::new(settings)
        .unwrap()
        .complete(&request())
        .await
        .unwrap();
    assert_eq!(reply.content, "hello");
    assert_eq!(reply.finish, Finish::Stop);
    assert_eq!(reply.usage.prompt_tokens, 100);
    assert_eq!(reply.usage.cached_tokens, 64);
    assert_eq!(reply.usage.completion_tokens, 7);
    assert!(!reply.usage.estimated);
    let seen = &server.requests()[0];
    assert_eq!(seen.path, "/v1/chat/completions");
    assert!(
        seen.headers
            .contains("authorization: bearer sk-secret-1\r\n")
    );
    assert_eq!(seen.body["stream"], json!(false));
    assert_eq!(seen.body["tools"][1]["function"]["name"], "open_file");
    for absent in [
        "temperature",
        "max_tokens",
        "parallel_tool_calls",
        "stream_options",
    ] {
        assert!(seen.body.get(absent).is_none(), "{absent}");
    }
}

#[tokio::test]
async fn request_without_tools_keeps_text() {
    let text = "<tool_call>{\"name\": \"search\", \"arguments\": {}}</tool_call>";
    let server = Server::new(vec![Act::json(
        200,
        &build_completion(json!({"content": text}), "stop"),
    )])
    .await;
    let mut request = request();
    request.tools.clear();
    let reply = client(&server, false).complete(&request).await.unwrap();
    assert_eq!(reply.content, text);
    assert!(reply.calls.is_empty());
    assert!(server.requests()[0].body.get("tools").is_none());
}

#[tokio::test]
async fn good_and_bad_tool_calls() {
    let call = |id: &str, name: &str, arguments: Value| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [
        call("a", "search", json!("{\"pattern\": \"x\"}")),
        call("a", "functions.open_file", json!({"pattern": "y"})),
        call("", "search", json!("{'pattern': 'z',}")),
        call("d", "serach", json!("{}")),
        call("e", "search", json!("{\"pattern\": \"say \"hi\"\"}")),
        call("f", "search", json!("[1]")),
        call("g", "", json!("{}")),
    ]});
    let reply = answer_to(Act::json(200, &build_completion(message, "stop")))
        .await
        .unwrap();
    assert_eq!(reply.finish, Finish::ToolCalls);
    assert_eq!(
        names(&reply),
        [
            ("a", "search", r#"{"pattern":"x"}"#.to_owned()),
            ("tw0002000", "open_file", r#"{"pattern":"y"}"#.to_owned()),
            ("tw0002001", "search", r#"{"pattern":"z"}"#.to_owned()),
        ]
    );
    let problems: Vec<&str> = reply.malformed.iter().map(|m| m.problem.as_str()).collect();
    assert!(
        problems[0].contains("nearest name is \"search\""),
        "{problems:?}"
    );
    assert!(problems[1].contains("column 19"), "{problems:?}");
    assert!(problems[2].contains("a list"), "{problems:?}");
    assert!(problems[3].contains("names no tool"), "{problems:?}");
    assert_eq!(reply.malformed[3].id, None);
    assert!(reply.content.contains("without a name"));
}

#[tokio::test]
async fn decorated_calls_are_cleaned() {
    let inner = json!({"pattern": "x"});
    let call = |name: &str, arguments: Value| json!({"id": "", "type": "function", "function": {"name": name, "arguments": arguments}});
    let calls = [
        call("search<|channel|>commentary", json!(inner.to_string())),
        call("functions.search:0", json!(inner.to_string())),
        call("default_api:search", inner.clone()),
        call("Search", json!(json!({"arguments": inner}).to_string())),
        call(
            "search",
            json!(json!({"arguments": inner.to_string()}).to_string()),
        ),
        call("search", json!({"input": inner})),
        call("search", json!(json!(inner.to_string()).to_string())),
        call("search", json!(format!("{inner}<|call|>"))),
    ];
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    let reply = answer_to(Act::json(200, &build_completion(message, "tool_calls"))).await;
    let reply = reply.unwrap();
    assert_eq!(reply.malformed, []);
    assert_eq!(reply.calls.len(), calls.len());
    for call in &reply.calls {
        assert_eq!(
            (call.name.as_str(), call.arguments.value()),
            ("search", inner.clone())
        );
    }
}

#[tokio::test]
async fn cut_reply_reports_length() {
    let message = json!({"tool_calls": [{"id": "a", "function": {"name": "search", "arguments": "{\"pattern\": \"abc\""}}]});
    for reason in ["length", "repetition_truncation"] {
        let completion = build_completion(message.clone(), reason);
        let reply = answer_to(Act::json(200, &completion)).await.unwrap();
        assert_eq!(reply.finish, Finish::Length);
        assert!(reply.calls.is_empty());
        assert!(
            reply.malformed[0].problem.contains("token limit"),
            "{:?}",
            reply.malformed
        );
    }
}

#[tokio::test]
async fn text_calls_are_parsed() {
    let message = json!({"content": "Looking.\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"x\"}}\n</tool_call>"});
    let reply = answer_to(Act::json(200, &build_completion(message, "stop")))
        .await
        .unwrap();
    assert_eq!(reply.content, "Looking.");
    assert_eq!(reply.finish, Finish::ToolCalls);
    assert_eq!(
        names(&reply),
        [("tw0002000", "search", r#"{"pattern":"x"}"#.to_owned())]
    );
}

/// Returns the arguments of the calls in a reply.
async fn arguments_in(act: Act) -> Vec<Value> {
    let reply = answer_to(act).await.unwrap();
    assert_eq!(reply.malformed, []);
    let calls = reply.calls.iter();
    calls.map(|call| call.arguments.value()).collect()
}

#[tokio::test]
async fn calls_in_unfinished_reasoning_are_read() {
    let call = "I look.\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"x\"}}\n</tool_call>";
    for (content, end, expected) in [
        ("", "", vec![json!({"pattern": "x"})]),
        ("Done.", "", vec![]),
        ("", "\nOr should I read <main>", vec![]),
    ] {
        let thought = format!("{call}{end}");
        let message = json!({"content": content, "reasoning_content": thought});
        let act = Act::json(200, &build_completion(message, "stop"));
        assert_eq!(arguments_in(act).await, expected);
    }
}

#[tokio::test]
async fn parallel_wrapper_is_unpacked() {
    let uses = json!({"tool_uses": [
        {"recipient_name": "functions.search", "parameters": {"pattern": "a"}},
        {"recipient_name": "functions.search", "parameters": {"pattern": "b"}},
    ]});
    let function = json!({"name": "multi_tool_use.parallel", "arguments": uses.to_string()});
    let message = json!({"content": null, "tool_calls": [{"id": "1", "type": "function", "function": function}]});
    let act = Act::json(200, &build_completion(message, "tool_calls"));
    let expected = [json!({"pattern": "a"}), json!({"pattern": "b"})];
    assert_eq!(arguments_in(act).await, expected);
}

#[tokio::test]
async fn refused_generation_is_read() {
    let error = json!({"error": {
        "message": "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
        "code": "tool_use_failed",
        "failed_generation": "<function=search{\"pattern\": \"x\"}</function>",
    }});
    assert_eq!(
        arguments_in(Act::json(400, &error)).await,
        [json!({"pattern": "x"})]
    );
}
