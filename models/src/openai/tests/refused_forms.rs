//! Requests that a service refuses are repeated in the form that it takes, which is kept.

use super::*;

fn ok() -> Act {
    Act::json(200, &build_completion(json!({"content": "ok"}), "stop"))
}

/// Returns the bodies that were sent for two requests, of which the first is refused with these messages.
async fn sent(refusals: &[&str], request: &Request, stream: bool) -> Vec<Value> {
    let refusals = refusals.iter().map(|text| Act::refuse(400, text));
    let server = Server::new(refusals.chain([ok(), ok()]).collect()).await;
    let model = client(&server, stream);
    for _ in 0..2 {
        model.complete(request).await.unwrap();
    }
    let seen = server.requests();
    seen.into_iter().map(|seen| seen.body).collect()
}

fn roles(body: &Value) -> Vec<&str> {
    let messages = body["messages"].as_array().unwrap().iter();
    messages.map(|m| m["role"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn tools_get_the_effort_that_is_named() {
    let text = "Function tools with reasoning_effort are not supported for gpt-x in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.";
    let bodies = sent(&[text], &request(), false).await;
    assert!(bodies[0].get("reasoning_effort").is_none());
    for body in &bodies[1..] {
        assert_eq!(body["reasoning_effort"], "none");
        assert!(body["tools"].is_array());
    }
    for text in [
        "With tools, only 'low' and 'medium' are accepted as reasoning_effort.",
        "Tools need reasoning_effort=low here.",
    ] {
        let bodies = sent(&[text], &request(), false).await;
        assert_eq!(bodies[1]["reasoning_effort"], "low", "{text}");
    }
    let listed = "Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: 'low' and 'high'.";
    let bodies = sent(&[text, listed], &request(), false).await;
    assert_eq!(bodies[2]["reasoning_effort"], "low");
    let unknown = "Unsupported value: 'reasoning_effort' does not support 'none' with this model.";
    let bodies = sent(&[text, unknown], &request(), false).await;
    for body in &bodies[2..] {
        assert!(body.get("tools").is_none() && body.get("reasoning_effort").is_none());
        assert!(
            body["messages"][0]["content"]
                .as_str()
                .unwrap()
                .contains("# Tools")
        );
    }
}

#[tokio::test]
async fn refused_tools_become_text() {
    for text in [
        "Function call is not supported for this model.",
        "Tool calling is not enabled for this deployment",
    ] {
        let bodies = sent(&[text], &request(), false).await;
        for body in &bodies[1..] {
            assert!(body.get("tools").is_none(), "{text}");
        }
    }
}

#[tokio::test]
async fn system_message_moves_into_user_message() {
    for text in [
        "System role not supported",
        "This model doesn't support system messages. Try again without a system message.",
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        "Developer instruction is not enabled for models/gemma-3-27b-it",
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "Only user and assistant roles are supported, not the system role",
    ] {
        let bodies = sent(&[text], &request(), false).await;
        assert_eq!(roles(&bodies[0]), ["system", "user"], "{text}");
        for body in &bodies[1..] {
            assert_eq!(roles(body), ["user"], "{text}");
            assert_eq!(body["messages"][0]["content"], "You write tests.\n\nGo.");
        }
    }
}

#[tokio::test]
async fn remarks_move_into_tool_answers() {
    let mut request = request();
    request.messages.push(Message::Assistant {
        content: String::new(),
        calls: vec![ToolCall::new("a", "search", json!({"pattern": "x"}))],
        extra: ExtraFields::default(),
    });
    request.messages.push(Message::Tool(ToolResult {
        id: "a".to_owned(),
        content: "found".to_owned(),
    }));
    request.messages.push(Message::User {
        content: "Go on.".to_owned(),
    });
    let text = "Unexpected role 'user' after role 'tool'";
    let bodies = sent(&[text], &request, false).await;
    for body in &bodies[1..] {
        assert_eq!(roles(body), ["system", "user", "assistant", "tool"]);
        assert_eq!(body["messages"][3]["content"], "found\n\nGo on.");
    }
    // Without a role for tools, calls and answers become text.
    for text in [
        "Unknown role 'tool' in the chat template; only system, user and assistant are supported",
        "messages[3]: invalid role: 'tool' role is not supported",
        "Invalid value: 'tool'. Supported values are: 'system', 'assistant', 'user', 'function', and 'developer'.",
        "Only user, assistant and system roles are supported! got tool",
        "Unrecognized request argument supplied: tools",
        "body.tools: Extra inputs are not permitted",
    ] {
        let bodies = sent(&[text], &request, false).await;
        for body in &bodies[1..] {
            assert_eq!(
                roles(body),
                ["system", "user", "assistant", "user"],
                "{text}"
            );
            assert!(body.get("tools").is_none());
        }
    }
    let alternate = "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...";
    let turns = "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
    for text in [alternate, turns] {
        let bodies = sent(&[text, text], &request, false).await;
        assert_eq!(roles(&bodies[2]), ["user", "assistant", "user"]);
    }
}

#[tokio::test]
async fn schemas_take_the_accepted_form() {
    let mut request = request();
    request.tools[0].parameters = json!({"type": "object", "additionalProperties": false,
        "properties": {"pattern": {"type": "string"}, "limit": {"type": ["integer", "null"]}}, "required": ["pattern"]});
    for text in [
        "Invalid JSON payload received. Unknown name \"additionalProperties\" at 'tools[0].function_declarations[0].parameters': Cannot find field.",
        "tools.0.function.parameters: JSON schema is invalid: type must be a string",
        "Failed to initialize samplers: failed to parse grammar",
    ] {
        let bodies = sent(&[text], &request, false).await;
        for body in &bodies[1..] {
            let schema = &body["tools"][0]["function"]["parameters"];
            assert!(schema.get("additionalProperties").is_none(), "{text}");
            assert_eq!(schema["properties"]["limit"]["type"], "integer");
        }
    }
    let strict = "Invalid schema for function 'search': In context=(), 'required' is required to be supplied and to be an array including every key in properties. Missing 'limit'.";
    let bodies = sent(&[strict], &request, false).await;
    for body in &bodies[1..] {
        let schema = &body["tools"][0]["function"]["parameters"];
        assert_eq!(schema["required"], json!(["pattern", "limit"]));
    }
}

#[tokio::test]
async fn named_fields_are_left_out() {
    let mut request = request();
    request.temperature = Some(0.2);
    request.max_tokens = Some(50);
    request.parallel_calls = false;
    for (text, field) in [
        (
            "invalid temperature: only 1 is allowed for this model",
            "temperature",
        ),
        ("`temperature` is deprecated for this model.", "temperature"),
        (
            "Extra inputs are not permitted: parallel_tool_calls",
            "parallel_tool_calls",
        ),
        (
            "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
            "parallel_tool_calls",
        ),
        (
            "Invalid JSON payload received. Unknown name \"parallel_tool_calls\": Cannot find field.",
            "parallel_tool_calls",
        ),
        ("Unknown field stream_options", "stream_options"),
        (
            "Unrecognized request argument supplied: max_tokens",
            "max_tokens",
        ),
    ] {
        let bodies = sent(&[text], &request, true).await;
        assert!(bodies[0].get(field).is_some(), "{text}");
        for body in &bodies[1..] {
            assert!(body.get(field).is_none(), "{text}");
        }
    }
    request.max_tokens = None;
    let bodies = sent(&["max_tokens: Field required"], &request, true).await;
    for body in &bodies[1..] {
        assert_eq!(body["max_tokens"], json!(8_192));
    }
    for text in [
        "Unsupported value: 'stream' does not support true with this model.",
        "This model doesn't support tool use in streaming mode.",
    ] {
        let bodies = sent(&[text], &request, true).await;
        for body in &bodies[1..] {
            assert_eq!(body["stream"], json!(false));
            assert!(body["tools"].is_array());
        }
    }
}

#[tokio::test]
async fn required_streams_are_requested() {
    for text in [
        "This model only support stream mode, please enable the stream parameter to access the model.",
        "parameter.enable_thinking must be set to false for non-streaming calls",
    ] {
        let refusal = Act::refuse(400, text);
        let reply = Act::stream(&[delta(json!({"content": "done"})), end("stop")]);
        let server = Server::new(vec![refusal, reply]).await;
        let reply = client(&server, false).complete(&request()).await.unwrap();
        assert_eq!(reply.content, "done", "{text}");
    }
}
