//! Requests: the conversation, fields that a server refuses, addresses.

use super::*;
use crate::name::Deployment;

#[tokio::test]
async fn history_follows_protocol() {
    let server = Server::new(vec![
        Act::json(200, &build_completion(json!({"content": "ok"}), "stop")),
        Act::refuse(400, "registry/m does not support tools"),
        Act::json(200, &build_completion(json!({"content": "ok"}), "stop")),
    ])
    .await;
    let model = client(&server, false);
    let mut request = request();
    request.parallel_calls = false;
    let bad = Reply {
        calls: vec![ToolCall {
            id: "a".to_owned(),
            name: "search".to_owned(),
            arguments: json!({"pattern": "x"}).into(),
            extra: ExtraFields::default(),
        }],
        malformed: vec![crate::MalformedCall {
            id: Some("b".to_owned()),
            name: Some("open file!".to_owned()),
            text: "{oops".to_owned(),
            problem: "no JSON".to_owned(),
            extra: ExtraFields::default(),
        }],
        ..Reply::default()
    };
    let turn = bad.turn();
    request.messages.push(turn.assistant);
    request.messages.push(Message::Tool(ToolResult {
        id: "a".to_owned(),
        content: "found".to_owned(),
    }));
    request
        .messages
        .extend(turn.answers.into_iter().map(Message::Tool));
    model.complete(&request).await.unwrap();
    let sent = &server.requests()[0].body;
    assert_eq!(sent["parallel_tool_calls"], json!(false));
    let assistant = &sent["messages"][2];
    assert_eq!(assistant["content"], Value::Null);
    assert_eq!(assistant["tool_calls"][1]["function"]["name"], "open_file_");
    for call in assistant["tool_calls"].as_array().unwrap() {
        let arguments = call["function"]["arguments"].as_str().unwrap();
        assert!(
            serde_json::from_str::<Value>(arguments)
                .unwrap()
                .is_object()
        );
    }
    assert_eq!(sent["messages"][4]["tool_call_id"], "b");

    // After a refusal, tools go into the text, in this request and the next.
    model.complete(&request).await.unwrap();
    let sent = &server.requests()[2].body;
    assert!(sent.get("tools").is_none() && sent.get("parallel_tool_calls").is_none());
    let messages = sent["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages
        .iter()
        .map(|m| m["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    let system = messages[0]["content"].as_str().unwrap();
    assert!(system.starts_with("You write tests.") && system.contains("does open_file"));
    assert!(
        messages[2]["content"]
            .as_str()
            .unwrap()
            .contains("<tool_call>")
    );
    let answers = messages[3]["content"].as_str().unwrap();
    assert!(answers.contains("found") && answers.contains("no JSON"));
}

#[tokio::test]
async fn consecutive_user_messages_are_joined() {
    let ok = Act::json(200, &build_completion(json!({"content": "ok"}), "stop"));
    let server = Server::new(vec![ok]).await;
    let user = |content: &str| Message::User {
        content: content.to_owned(),
    };
    let mut request = request();
    request.messages = vec![
        Message::System {
            content: "You write tests.".to_owned(),
        },
        user("The task."),
        user("It does not pass."),
        Message::Assistant {
            content: "It passes now.".to_owned(),
            calls: Vec::new(),
            extra: ExtraFields::default(),
        },
        user("It does not."),
    ];
    client(&server, false).complete(&request).await.unwrap();
    let expected = json!([
        {"role": "system", "content": "You write tests."},
        {"role": "user", "content": "The task.\n\nIt does not pass."},
        {"role": "assistant", "content": "It passes now."},
        {"role": "user", "content": "It does not."},
    ]);
    assert_eq!(server.requests()[0].body["messages"], expected);
}

#[tokio::test]
async fn null_content_falls_back_to_text() {
    // The wording of llama-cpp-python's server.
    let refused = "7 validation errors: {'type': 'string_type', 'loc': ('body', 'messages', 2, 'content'), \
                   'msg': 'Input should be a valid string', 'input': None}";
    let ok = || Act::json(200, &build_completion(json!({"content": "ok"}), "stop"));
    let server = Server::new(vec![Act::refuse(500, refused), ok(), ok()]).await;
    let model = client(&server, false);
    let mut request = request();
    let call = Reply {
        calls: vec![ToolCall {
            id: "a".to_owned(),
            name: "search".to_owned(),
            arguments: json!({}).into(),
            extra: ExtraFields::default(),
        }],
        ..Reply::default()
    };
    request.messages.push(call.turn().assistant);
    model.complete(&request).await.unwrap();
    model.complete(&request).await.unwrap();
    let contents: Vec<Value> = server
        .requests()
        .iter()
        .map(|seen| seen.body["messages"][2]["content"].clone())
        .collect();
    assert_eq!(contents, [Value::Null, json!(""), json!("")]);
}

#[tokio::test]
async fn refused_fields_stay_omitted() {
    let ok = || Act::json(200, &build_completion(json!({"content": "ok"}), "stop"));
    let server = Server::new(vec![
        Act::refuse(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
        Act::refuse(400, "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported."),
        ok(),
        ok(),
        Act::refuse(400, "temperature is not supported"),
    ])
    .await;
    let model = client(&server, false);
    let mut request = request();
    request.temperature = Some(0.2);
    request.max_tokens = Some(50);
    model.complete(&request).await.unwrap();
    model.complete(&request).await.unwrap();
    let seen = server.requests();
    assert_eq!(seen.len(), 4);
    assert_eq!(seen[0].body["max_tokens"], json!(50));
    for seen in &seen[2..] {
        assert_eq!(seen.body["max_completion_tokens"], json!(50));
        assert!(seen.body.get("max_tokens").is_none());
        assert!(seen.body.get("temperature").is_none());
    }
    // An omitted field cannot be the cause.
    let error = model.complete(&request).await.unwrap_err();
    assert!(matches!(error, ModelError::Refused { .. }), "{error:?}");
}

#[tokio::test]
async fn own_fields_precede_extra_ones() {
    let ok = Act::json(200, &build_completion(json!({"content": "ok"}), "stop"));
    let server = Server::new(vec![ok]).await;
    let mut settings = settings(&server, false);
    for (field, value) in [
        ("temperature", json!(1.0)),
        ("top_p", json!(0.9)),
        ("seed", json!(7)),
    ] {
        settings.extra.insert(field.to_owned(), value);
    }
    let mut request = request();
    request.temperature = Some(0.2);
    OpenAi::new(settings)
        .unwrap()
        .complete(&request)
        .await
        .unwrap();
    let body = &server.requests()[0].body;
    let sent = ["temperature", "top_p", "seed"].map(|field| body[field].clone());
    assert_eq!(sent, [json!(0.2), json!(0.9), json!(7)]);
}

#[tokio::test]
async fn contradictory_refusals_end() {
    let script = (0..40)
        .map(|_| Act::refuse(400, "max_completion_tokens: who knows"))
        .collect();
    let server = Server::new(script).await;
    let mut request = request();
    request.max_tokens = Some(50);
    client(&server, false).complete(&request).await.unwrap_err();
    assert!(
        server.requests().len() <= MAX_FALLBACKS,
        "{}",
        server.requests().len()
    );
}

#[tokio::test]
async fn azure_uses_deployment_address() {
    let server = Server::new(vec![Act::json(
        200,
        &build_completion(json!({"content": "ok"}), "stop"),
    )])
    .await;
    let mut settings = settings(&server, false);
    settings.base_url = settings.base_url.replace("/v1", "/");
    settings.api_key = Some(SecretString::from("azure-key"));
    settings.azure = Some(Azure {
        deployment: Deployment::parse("my-gpt").unwrap(),
        api_version: "2024-10-21".to_owned(),
    });
    OpenAi::new(settings)
        .unwrap()
        .complete(&request())
        .await
        .unwrap();
    let seen = &server.requests()[0];
    assert_eq!(
        seen.path,
        "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21"
    );
    assert!(seen.headers.contains("api-key: azure-key"));
    assert!(!seen.headers.contains("authorization"));
}
