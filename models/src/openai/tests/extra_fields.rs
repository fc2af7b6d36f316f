//! Fields of a reply that the service expects back.

use super::*;

/// Returns the messages of the request that follows a reply with these acts.
async fn sent_back(first: Act, stream: bool) -> Vec<Value> {
    let ok = Act::json(200, &build_completion(json!({"content": "ok"}), "stop"));
    let server = Server::new(vec![first, ok]).await;
    let model = client(&server, stream);
    let mut request = request();
    let reply = model.complete(&request).await.unwrap();
    // A record keeps the fields.
    let record = serde_json::to_string(&reply).unwrap();
    let reply: Reply = serde_json::from_str(&record).unwrap();
    let turn = reply.turn();
    request.messages.push(turn.assistant);
    for call in &reply.calls {
        request.messages.push(Message::Tool(ToolResult {
            id: call.id.clone(),
            content: "found".to_owned(),
        }));
    }
    request
        .messages
        .extend(turn.answers.into_iter().map(Message::Tool));
    model.complete(&request).await.unwrap();
    let body = server.requests()[1].body.clone();
    body["messages"].as_array().unwrap().clone()
}

#[tokio::test]
async fn signatures_are_sent_back_unchanged() {
    let call = |id: &str, arguments: &str| {
        json!({"index": 0, "id": id, "type": "function",
            "function": {"name": "search", "arguments": arguments, "thought_signature": format!("f {id}")},
            "extra_content": {"google": {"thought_signature": format!("opaque {id}")}}})
    };
    let calls = [call("a", "{\"pattern\": \"x\"}"), call("b", "{oops")];
    let whole = Act::json(
        200,
        &build_completion(json!({"content": null, "tool_calls": calls}), "tool_calls"),
    );
    let pieces = calls
        .iter()
        .map(|call| delta(json!({"tool_calls": [call]})));
    let events: Vec<Value> = pieces.chain([end("tool_calls")]).collect();
    for (act, stream) in [(whole, false), (Act::stream(&events), true)] {
        let messages = sent_back(act, stream).await;
        for (at, id) in ["a", "b"].into_iter().enumerate() {
            let sent = &messages[2]["tool_calls"][at];
            assert_eq!(sent["id"], id);
            assert_eq!(
                sent["extra_content"]["google"]["thought_signature"],
                format!("opaque {id}")
            );
            assert_eq!(sent["function"]["thought_signature"], format!("f {id}"));
            assert_eq!(sent["type"], "function");
            assert!(sent.get("index").is_none());
        }
    }
}

#[tokio::test]
async fn reasoning_is_sent_back_with_calls() {
    let call = json!({"index": 0, "id": "a", "function": {"name": "search", "arguments": "{\"pattern\": \"x\"}"}});
    let message = json!({"content": "", "reasoning_content": "I think.", "annotations": [], "tool_calls": [call]});
    let whole = Act::json(200, &build_completion(message, "tool_calls"));
    let events = [
        delta(json!({"reasoning_content": "I "})),
        delta(json!({"reasoning_content": "think."})),
        delta(json!({"tool_calls": [call]})),
        end("tool_calls"),
    ];
    for (act, stream) in [(whole, false), (Act::stream(&events), true)] {
        let messages = sent_back(act, stream).await;
        assert_eq!(messages[2]["reasoning_content"], "I think.");
        assert!(messages[2].get("annotations").is_none());
    }
}

#[tokio::test]
async fn refused_extra_fields_stay_omitted() {
    let ok = || Act::json(200, &build_completion(json!({"content": "ok"}), "stop"));
    let refused = "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]";
    let server = Server::new(vec![Act::refuse(400, refused), ok(), ok()]).await;
    let model = client(&server, false);
    let mut request = request();
    request.messages.push(Message::Assistant {
        content: String::new(),
        calls: vec![ToolCall::new("a", "search", json!({}))],
        extra: serde_json::from_value(json!({"reasoning_content": "I think."})).unwrap(),
    });
    for _ in 0..2 {
        model.complete(&request).await.unwrap();
    }
    let sent: Vec<bool> = server
        .requests()
        .iter()
        .map(|seen| seen.body["messages"][2].get("reasoning_content").is_some())
        .collect();
    assert_eq!(sent, [true, false, false]);
}

/// Returns the messages that are sent after a refusal with this text.
async fn sent_after_refusal(text: &str) -> Vec<Value> {
    let ok = || Act::json(200, &build_completion(json!({"content": "ok"}), "stop"));
    let server = Server::new(vec![Act::refuse(400, text), ok()]).await;
    let mut request = request();
    let extra = |fields: Value| serde_json::from_value(fields).unwrap();
    for (calls, fields) in [
        (vec![ToolCall::new("a", "search", json!({}))], json!({})),
        (vec![], json!({"reasoning": "I think."})),
    ] {
        request.messages.push(Message::Assistant {
            content: "Hm.".to_owned(),
            calls,
            extra: extra(fields),
        });
    }
    client(&server, false).complete(&request).await.unwrap();
    let body = server.requests()[1].body.clone();
    body["messages"].as_array().unwrap().clone()
}

#[tokio::test]
async fn missing_reasoning_is_added() {
    for text in [
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
    ] {
        let messages = sent_after_refusal(text).await;
        assert_eq!(messages[2]["reasoning_content"], "(none)", "{text}");
        assert_eq!(messages[3]["reasoning_content"], "I think.", "{text}");
    }
}

#[tokio::test]
async fn missing_signature_is_added() {
    let text = "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly.";
    let messages = sent_after_refusal(text).await;
    let call = &messages[2]["tool_calls"][0];
    assert_eq!(
        call["extra_content"]["google"]["thought_signature"],
        "skip_thought_signature_validator"
    );
}

#[tokio::test]
async fn reasoning_with_key_is_redacted() {
    let message = json!({"content": "x", "reasoning_content": "the key is sk-secret-1"});
    let server = Server::new(vec![Act::json(200, &build_completion(message, "stop"))]).await;
    let mut settings = settings(&server, false);
    settings.api_key = Some(SecretString::from("sk-secret-1"));
    let reply = OpenAi::new(settings).unwrap().complete(&request()).await;
    let record = serde_json::to_string(&reply.unwrap()).unwrap();
    assert!(!record.contains("sk-secret-1"), "{record}");
}
