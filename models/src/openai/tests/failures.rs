//! Server failures, and when to retry.

use super::*;

#[tokio::test]
async fn full_context_is_recognized() {
    let texts = [
        (
            400,
            json!({"error": {"message": "This model's maximum context length is 128000 tokens.", "code": "context_length_exceeded"}}),
        ),
        (
            400,
            json!({"object": "error", "message": "This model's maximum context length is 4096 tokens. However, you requested 5000", "code": 400}),
        ),
        (
            400,
            json!({"error": {"code": 400, "message": "the request exceeds the available context size, try increasing it", "type": "exceed_context_size_error", "n_ctx": 4096}}),
        ),
        (
            500,
            json!({"error": {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}}),
        ),
        (
            400,
            json!({"error": {"message": "Requested tokens (20000) exceed context window of 16384"}}),
        ),
        (
            400,
            json!({"error": {"message": "litellm.ContextWindowExceededError: too much"}}),
        ),
        (
            400,
            json!({"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}),
        ),
        (
            400,
            json!({"error": "input length exceeds the context length"}),
        ),
        (
            429,
            json!({"error": {"message": "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000."}}),
        ),
        (413, json!({"detail": "Payload Too Large"})),
        (
            200,
            json!({"choices": [{"message": {"content": ""}, "finish_reason": "model_context_window_exceeded"}]}),
        ),
    ];
    for (status, body) in texts {
        let error = answer_to(Act::json(status, &body)).await.unwrap_err();
        assert!(
            matches!(error, ModelError::ContextFull(_)),
            "{body}: {error:?}"
        );
    }
}

#[tokio::test]
async fn fatal_errors_have_a_hint() {
    let cases = [
        (
            401,
            "Incorrect API key provided: sk-secret-1",
            "OPENAI_API_KEY",
        ),
        (403, "forbidden", "OPENAI_API_KEY"),
        (404, "The model `m` does not exist", "--model"),
        (404, "Not Found", "/v1"),
        (
            429,
            "You exceeded your current quota (insufficient_quota)",
            "quota",
        ),
        (402, "Insufficient Balance", "credit"),
        (
            400,
            "The response was filtered: content management policy",
            "filter",
        ),
    ];
    for (status, message, hint) in cases {
        let server = Server::new(vec![Act::refuse(status, message)]).await;
        let mut settings = settings(&server, true);
        settings.api_key = Some(SecretString::from("sk-secret-1"));
        let error = OpenAi::new(settings)
            .unwrap()
            .complete(&request())
            .await
            .unwrap_err();
        let ModelError::Fatal {
            message,
            hint: Some(actual_hint),
        } = &error
        else {
            panic!("{status} {message}: {error:?}")
        };
        assert!(actual_hint.contains(hint), "{message}: {actual_hint}");
        assert!(
            !message.contains("sk-secret"),
            "the key is shown: {message}"
        );
    }
    let error = answer_to(Act::refuse(401, "no key")).await.unwrap_err();
    assert!(
        matches!(&error, ModelError::Fatal { hint: Some(h), .. } if h.contains("no API key was sent")),
        "{error:?}"
    );
}

#[tokio::test]
async fn only_service_message_is_passed_on() {
    let html = |status, body: &str| Act::Answer(status, vec![], body.to_owned());
    let planted = "hunter2";
    for act in [
        Act::json(200, &json!({"key": planted})),
        Act::json(200, &json!({"choices": [{"text": planted}]})),
        Act::json(200, &json!({"error": {"code": 400, "key": planted}})),
        Act::json(200, &json!(planted)),
        Act::json(400, &json!({"key": planted})),
        Act::json(
            400,
            &json!({"error": {"key": planted, "metadata": {"raw": planted}}}),
        ),
        Act::json(401, &json!([planted])),
        html(200, planted),
        html(404, planted),
        html(502, planted),
    ] {
        let error = answer_to(act).await.unwrap_err();
        assert!(!format!("{error:?}").contains(planted), "{error:?}");
    }
    for body in [
        json!({"error": {"message": "no such model", "key": planted}}),
        json!({"error": "no such model", "key": planted}),
        json!({"message": "no such model", "key": planted}),
        json!({"detail": [{"msg": "no such model", "input": planted}]}),
    ] {
        let error = answer_to(Act::json(400, &body)).await.unwrap_err();
        assert!(
            error.to_string().ends_with("answered 400: no such model"),
            "{error}"
        );
        assert!(!format!("{error:?}").contains(planted), "{error:?}");
    }
}

#[tokio::test]
async fn wrong_settings_end_at_once() {
    let typed = |kind: &str, body: &str| {
        let kind = ("content-type".to_owned(), kind.to_owned());
        Act::Answer(200, vec![kind], body.to_owned())
    };
    let page = "<!doctype html><html><title>Chat</title></html>";
    let cases = [
        (typed("text/html; charset=utf-8", page), "OPENAI_BASE_URL"),
        (Act::Answer(200, vec![], page.to_owned()), "OPENAI_BASE_URL"),
        (typed("text/plain", "Ollama is running"), "OPENAI_BASE_URL"),
        (Act::Answer(404, vec![], page.to_owned()), "OPENAI_BASE_URL"),
        (
            Act::Answer(404, vec![], "<html>Models".to_owned()),
            "OPENAI_BASE_URL",
        ),
        (Act::Answer(400, vec![], page.to_owned()), "OPENAI_BASE_URL"),
        (Act::Answer(501, vec![], page.to_owned()), "OPENAI_BASE_URL"),
        (
            Act::json(
                200,
                &json!({"error": "Unexpected endpoint or method. (POST /chat/completions)"}),
            ),
            "OPENAI_BASE_URL",
        ),
        (Act::json(200, &json!({"models": ["m"]})), "OPENAI_BASE_URL"),
        (Act::json(200, &json!("ok")), "OPENAI_BASE_URL"),
        (
            Act::refuse(401, "no auth credentials found"),
            "OPENAI_API_KEY",
        ),
        (
            Act::refuse(400, "API key not valid. Please pass a valid API key."),
            "OPENAI_API_KEY",
        ),
        (Act::refuse(400, "Model Not Exist"), "--model"),
        (Act::refuse(400, "m is not a valid model ID"), "--model"),
        (
            Act::refuse(404, "model \"m\" not found, try pulling it first"),
            "--model",
        ),
        (Act::refuse(422, "Unknown model: m"), "--model"),
        (
            Act::refuse(400, "The provided model identifier is invalid."),
            "--model",
        ),
        (
            Act::refuse(400, "Client sent an HTTP request to an HTTPS server."),
            "OPENAI_BASE_URL",
        ),
        (
            Act::json(
                200,
                &json!({"base_resp": {"status_code": 1004, "status_msg": "login fail"}, "choices": null}),
            ),
            "OPENAI_API_KEY",
        ),
        (
            Act::json(
                200,
                &json!({"error_code": 110, "error_msg": "Incorrect API key"}),
            ),
            "OPENAI_API_KEY",
        ),
        (
            Act::refuse(403, "Your team doesn't have any credits yet."),
            "credit",
        ),
        (
            Act::refuse(400, "You have reached your API usage limits."),
            "credit",
        ),
    ];
    for (act, setting) in cases {
        let server = Server::new(vec![act]).await;
        let model = Retry::new(Box::new(client(&server, false)), None);
        let error = model.complete(&request()).await.unwrap_err();
        let ModelError::Fatal {
            hint: Some(hint), ..
        } = &error
        else {
            panic!("{error:?}")
        };
        assert!(hint.contains(setting) && !hint.contains('\n'), "{hint}");
        assert_eq!(server.requests().len(), 1, "{error}");
    }
    let server = Server::new(vec![typed("text/html", page)]).await;
    let error = client(&server, true)
        .complete(&request())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("web page"), "{error}");
}

#[tokio::test]
async fn hints_in_bodies_are_honored() {
    let quota = json!([{"error": {"code": 429, "message": "You exceeded your current quota.\nPlease retry in 34.074824224s.", "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]}}]);
    for (status, body, expected) in [
        (429, quota, 34.0),
        (
            429,
            json!({"error": {"message": "Please try again in 1m26.5s."}}),
            86.5,
        ),
        (
            503,
            json!({"error": {"message": "Overloaded. Please retry after 5 seconds"}}),
            5.0,
        ),
        (529, json!({"message": "x", "retry_after": 7}), 7.0),
    ] {
        let error = answer_to(Act::json(status, &body)).await.unwrap_err();
        assert!(
            matches!(error, ModelError::Transient { after: Some(after), .. } if after == expected),
            "{body}: {error:?}"
        );
    }
}

#[tokio::test]
async fn message_is_found_in_any_form() {
    for body in [
        json!({"error": {"message": "no luck"}}),
        json!({"error": "no luck"}),
        json!({"detail": {"error": "no luck"}}),
        json!({"detail": [{"msg": "no luck"}]}),
        json!({"errors": [{"message": "no luck"}]}),
        json!([{"error": {"message": "no luck"}}]),
        json!({"error": {"errors": ["no luck"]}}),
        json!({"error_msg": "no luck", "error_code": 18}),
        json!({"Message": "no luck"}),
        json!({"errorCode": 18, "errorMessage": "no luck"}),
    ] {
        let error = answer_to(Act::json(400, &body)).await.unwrap_err();
        assert!(
            error.to_string().ends_with("answered 400: no luck"),
            "{body}: {error}"
        );
        assert!(matches!(error, ModelError::Refused { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn unreadable_output_is_transient() {
    for text in [
        "unexpected tokens remaining in message header: Some(\"to=functions.search\")",
        "error parsing tool call: raw='{', err=unexpected end of JSON input",
        "Failed to generate tool_calls. Please adjust your prompt.",
        "The model output is not valid JSON.",
    ] {
        let error = answer_to(Act::refuse(400, text)).await.unwrap_err();
        assert!(matches!(error, ModelError::Transient { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn refusal_for_low_limit_is_a_cut_reply() {
    let text = "Could not finish the message because max_tokens or model output limit was reached. Please try again with higher max_tokens.";
    let reply = answer_to(Act::refuse(400, text)).await.unwrap();
    assert_eq!(reply.finish, Finish::Length);
}

#[tokio::test]
async fn failed_choice_is_transient() {
    let message = json!({"role": "assistant", "content": ""});
    let failed = json!({"code": 502, "message": "Upstream provider failed"});
    let choice = |extra: Value| {
        let mut choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        for (key, value) in extra.as_object().unwrap() {
            choice[key] = value.clone();
        }
        json!({"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 3}})
    };
    for body in [
        choice(json!({"finish_reason": "error", "error": failed})),
        choice(json!({"finish_reason": "error"})),
        choice(json!({"error": failed})),
        choice(json!({"finish_reason": "network_error"})),
        choice(json!({"finish_reason": "function_call_filter: MALFORMED_FUNCTION_CALL"})),
        json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}),
        json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": 0}}),
        json!({"choices": null}),
    ] {
        let error = answer_to(Act::json(200, &body)).await.unwrap_err();
        assert!(
            matches!(error, ModelError::Transient { .. }),
            "{body}: {error:?}"
        );
    }
    let error = streamed(&[
        delta(json!({"content": "half"})),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "error", "error": failed}]}),
    ])
    .await
    .unwrap_err();
    assert!(matches!(error, ModelError::Transient { .. }), "{error:?}");
}

#[tokio::test]
async fn temporary_failures_are_transient() {
    let acts: Vec<(&str, Act)> = vec![
        ("500", Act::refuse(500, "boom")),
        (
            "no route to a host",
            Act::refuse(500, "dial tcp 10.0.0.5:443: connect: no route to host"),
        ),
        (
            "503 without JSON",
            Act::Answer(503, vec![], "upstream".to_owned()),
        ),
        ("529", Act::refuse(529, "overloaded")),
        ("424", Act::refuse(424, "generation failed")),
        ("busy", Act::refuse(400, "The server is busy, sorry")),
        ("nothing", Act::Answer(200, vec![], String::new())),
        (
            "half JSON",
            Act::Answer(200, vec![], "{\"choices\": [".to_owned()),
        ),
        ("no choice", Act::json(200, &json!({"choices": []}))),
        (
            "error with 200",
            Act::json(200, &json!({"error": {"message": "upstream", "code": 502}})),
        ),
        ("hang up", Act::HangUp),
        (
            "page of a proxy",
            Act::Answer(
                500,
                vec![],
                "<html><style>body { max-width: 9px; font-size: 1px }</style>the request exceeds the size of the context</html>".to_owned(),
            ),
        ),
    ];
    for (name, act) in acts {
        let error = answer_to(act).await.unwrap_err();
        assert!(
            matches!(error, ModelError::Transient { .. }),
            "{name}: {error:?}"
        );
    }
    let server = Server::new(vec![]).await;
    let mut offline_settings = settings(&server, false);
    offline_settings.base_url = "http://me:password@127.0.0.1:1/v1?code=hidden".to_owned();
    let error = OpenAi::new(offline_settings)
        .unwrap()
        .complete(&request())
        .await
        .unwrap_err();
    assert!(
        matches!(&error, ModelError::Unreachable { message, hint } if message.ends_with(": connection refused") && hint.contains("port 1,")),
        "{error:?}"
    );
    let shown = format!("{error:?}");
    assert!(
        !shown.contains("password") && !shown.contains("hidden"),
        "{shown}"
    );
}

#[tokio::test]
async fn retry_waits_as_server_asks() {
    let limited = |headers: &[(&str, &str)]| {
        let headers = headers
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        Act::Answer(
            429,
            headers,
            "{\"error\": {\"message\": \"slow down\"}}".to_owned(),
        )
    };
    let server = Server::new(vec![
        limited(&[("retry-after", "0.01")]),
        limited(&[("retry-after-ms", "20")]),
        limited(&[
            ("retry-after", "Sat, 21 Nov 2026 22:00:00 GMT"),
            ("date", "Sat, 21 Nov 2026 22:00:00 GMT"),
        ]),
        Act::refuse(500, "boom"),
        Act::json(
            200,
            &build_completion(json!({"content": "at last"}), "stop"),
        ),
    ])
    .await;
    let waits = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&waits);
    let mut retry = Retry::new(
        Box::new(client(&server, true)),
        Some(Box::new(move |wait| log.lock().unwrap().push(wait.clone()))),
    );
    retry.sleep = Box::new(|_| Box::pin(async {}));
    let reply = retry.complete(&request()).await.unwrap();
    assert_eq!(reply.content, "at last");
    assert_eq!(server.requests().len(), 5, "only Retry may repeat calls");
    assert_eq!(reply.failed_tries, 4);
    let waits = waits.lock().unwrap();
    assert!(
        waits[0].seconds >= 0.01 && waits[1].seconds >= 0.02,
        "{waits:?}"
    );
    assert!(waits[0].message.contains("slow down"));
}

#[tokio::test]
async fn probe_ends_only_on_certain_failures() {
    let page = ("content-type".to_owned(), "text/html".to_owned());
    let page = || Act::Answer(200, vec![page.clone()], "<html></html>".to_owned());
    let denied = || Act::refuse(401, "no such key");
    let fine = [
        vec![Act::json(200, &json!({"data": []}))],
        vec![Act::refuse(404, "Not Found")],
        vec![Act::refuse(500, "boom")],
        vec![Act::Answer(200, vec![], "Ollama is running".to_owned())],
        vec![Act::HangUp],
        // The key may call models, but not list them.
        vec![denied(), Act::refuse(400, "messages is empty")],
    ];
    for script in fine {
        let count = script.len();
        let server = Server::new(script).await;
        assert_eq!(client(&server, false).probe().await, Ok(()));
        let requests = server.requests();
        assert_eq!(requests.len(), count);
        assert_eq!(requests[0].path, "/v1/models");
    }
    for script in [vec![page()], vec![denied(), denied()]] {
        let server = Server::new(script).await;
        let error = client(&server, false).probe().await.unwrap_err();
        assert!(
            matches!(error, ModelError::Fatal { hint: Some(_), .. }),
            "{error:?}"
        );
    }
}
