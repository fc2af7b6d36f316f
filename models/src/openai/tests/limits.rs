//! Limits in tokens that a service names, and that hold for the rest of the run.

use super::*;

fn ok() -> Act {
    Act::json(200, &build_completion(json!({"content": "ok"}), "stop"))
}

fn long_request(length: usize) -> Request {
    let mut request = request();
    request.messages.push(Message::User {
        content: "x ".repeat(length / 2),
    });
    request
}

#[tokio::test]
async fn completion_limit_fits_beside_prompt() {
    let text = "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 8192 tokens and your request has 4012 input tokens (8192 > 8192 - 4012).";
    let server = Server::new(vec![Act::refuse(400, text), ok(), ok()]).await;
    let mut settings = settings(&server, false);
    settings.max_tokens = Some(8_192);
    let model = OpenAi::new(settings).unwrap();
    for _ in 0..2 {
        model.complete(&long_request(16_000)).await.unwrap();
    }
    let seen = server.requests();
    let limits: Vec<u64> = seen
        .iter()
        .map(|seen| seen.body["max_tokens"].as_u64().unwrap())
        .collect();
    assert_eq!(limits[..2], [8_192, 4_180]);
    assert!(limits[2] < 8_192, "the limit is kept: {limits:?}");
}

#[tokio::test]
async fn largest_completion_is_kept() {
    for text in [
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 16384]",
        "max_tokens: 100000 > 16384, which is the maximum allowed number of output tokens",
    ] {
        let server = Server::new(vec![Act::refuse(400, text), ok(), ok()]).await;
        let mut settings = settings(&server, false);
        settings.max_tokens = Some(100_000);
        let model = OpenAi::new(settings).unwrap();
        for _ in 0..2 {
            model.complete(&request()).await.unwrap();
        }
        let seen = server.requests();
        for seen in &seen[1..] {
            assert_eq!(seen.body["max_tokens"], json!(16_384), "{text}");
        }
        assert_eq!(seen.len(), 3);
    }
}

#[tokio::test]
async fn known_limit_saves_requests() {
    let text = "The input (9000 tokens) is longer than the model's context length (8192 tokens).";
    let server = Server::new(vec![Act::refuse(400, text), ok()]).await;
    let model = client(&server, false);
    for _ in 0..3 {
        let error = model.complete(&long_request(36_000)).await.unwrap_err();
        assert!(matches!(error, ModelError::ContextFull(_)), "{error:?}");
    }
    // The longest prompt that may still fit is tried.
    assert!(server.requests().len() <= 3);
    let error = model.complete(&long_request(72_000)).await.unwrap_err();
    let ModelError::ContextFull(message) = error else {
        panic!("{error:?}")
    };
    assert!(message.contains("allows 8192"), "{message}");
}

#[tokio::test]
async fn any_wording_of_overflow_is_recognized() {
    for (status, body) in [
        (
            400,
            json!({"object": "error", "message": "The input (263000 tokens) is longer than the model's context length (262144 tokens).", "code": 400}),
        ),
        (
            400,
            json!({"error": {"message": "Invalid request: Your request exceeded model token limit: 131072"}}),
        ),
        (
            422,
            json!({"error": {"message": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 512 `max_new_tokens`"}}),
        ),
        (
            500,
            json!({"error": {"message": "input is too large to process. increase the physical batch size"}}),
        ),
        (
            400,
            json!({"message": "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000."}),
        ),
        (
            400,
            json!({"detail": {"error": "Requested input length 9000 exceeds maximum input length 8192"}}),
        ),
        (
            400,
            json!({"message": "max_tokens must be at least 1, got -45."}),
        ),
        (
            400,
            json!({"error": {"message": "Provider returned error", "metadata": {"raw": "{\"error\": {\"message\": \"prompt is too long: 210000 tokens > 200000 maximum\"}}"}}}),
        ),
        (
            400,
            json!({"error": {"code": 400, "message": "failed", "n_prompt_tokens": 9000, "n_ctx": 4096, "type": "exceed_context_size_error"}}),
        ),
    ] {
        let error = answer_to(Act::json(status, &body)).await.unwrap_err();
        assert!(
            matches!(error, ModelError::ContextFull(_)),
            "{body}: {error:?}"
        );
    }
    let plain = Act::Answer(
        400,
        vec![],
        "the prompt exceeds the maximum of 4096 tokens".to_owned(),
    );
    let error = answer_to(plain).await.unwrap_err();
    assert!(matches!(error, ModelError::ContextFull(_)), "{error:?}");
}
