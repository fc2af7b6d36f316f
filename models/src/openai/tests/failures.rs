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
            hint: Some(given),
        } = &error
        else {
            panic!("{status} {message}: {error:?}")
        };
        assert!(given.contains(hint), "{message}: {given}");
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
async fn temporary_failures_are_transient() {
    let html = || {
        Act::Answer(
            200,
            vec![("content-type".to_owned(), "text/html".to_owned())],
            "<html>busy</html>".to_owned(),
        )
    };
    let acts: Vec<(&str, Act)> = vec![
        ("500", Act::refuse(500, "boom")),
        (
            "503 without JSON",
            Act::Answer(503, vec![], "upstream".to_owned()),
        ),
        ("529", Act::refuse(529, "overloaded")),
        ("garbage", html()),
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
    ];
    for (name, act) in acts {
        let error = answer_to(act).await.unwrap_err();
        assert!(
            matches!(error, ModelError::Transient { .. }),
            "{name}: {error:?}"
        );
    }
    let server = Server::new(vec![]).await;
    let mut gone = settings(&server, false);
    gone.base_url = "http://me:password@127.0.0.1:1/v1?code=hidden".to_owned();
    let error = OpenAi::new(gone)
        .unwrap()
        .complete(&request())
        .await
        .unwrap_err();
    assert!(
        matches!(&error, ModelError::Transient { message, .. } if message.contains("no connection") && !message.contains("password") && !message.contains("hidden")),
        "{error:?}"
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
        Act::json(200, &whole(json!({"content": "at last"}), "stop")),
    ])
    .await;
    let waits = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&waits);
    let retry = Retry::new(
        Box::new(client(&server, true)),
        RetrySettings {
            first: Duration::from_millis(1),
            ..RetrySettings::default()
        },
    )
    .on_wait(move |wait| log.lock().unwrap().push(wait.clone()));
    let reply = retry.complete(&request()).await.unwrap();
    assert_eq!(reply.content, "at last");
    assert_eq!(server.requests().len(), 5, "only Retry may repeat calls");
    assert_eq!(retry.failed_calls(), 4);
    let waits = waits.lock().unwrap();
    assert!(
        waits[0].seconds >= 0.01 && waits[1].seconds >= 0.02,
        "{waits:?}"
    );
    assert!(waits[0].message.contains("slow down"));
}

#[test]
fn retry_after_forms_are_parsed() {
    let headers = |pairs: &[(&'static str, &str)]| {
        pairs
            .iter()
            .map(|(k, v)| {
                (
                    reqwest::header::HeaderName::from_static(k),
                    v.parse().unwrap(),
                )
            })
            .collect::<reqwest::header::HeaderMap>()
    };
    let now = httpdate::parse_http_date("Sat, 21 Nov 2026 22:00:00 GMT").unwrap();
    type Pairs = &'static [(&'static str, &'static str)];
    let cases: [(Pairs, Option<f64>); 7] = [
        (&[("retry-after", "7")], Some(7.0)),
        (
            &[("retry-after", "Sat, 21 Nov 2026 22:01:30 GMT")],
            Some(90.0),
        ),
        (
            &[("retry-after", "Sat, 21 Nov 2026 21:00:00 GMT")],
            Some(0.0),
        ),
        (
            &[
                ("retry-after", "Sat, 21 Nov 2026 22:01:30 GMT"),
                ("date", "Sat, 21 Nov 2026 22:01:00 GMT"),
            ],
            Some(30.0),
        ),
        (&[("retry-after", "soon")], None),
        (&[("retry-after", "-4")], None),
        (&[], None),
    ];
    for (pairs, seconds) in cases {
        assert_eq!(
            endpoint::retry_after(&headers(pairs), now),
            seconds,
            "{pairs:?}"
        );
    }
}
