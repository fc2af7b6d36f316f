use super::*;

#[tokio::test]
async fn many_hostile_calls_get_unique_ids() {
    // This never ended when there were only a thousand ids.
    let call = json!({"function": {"name": "search", "arguments": "{}"}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": vec![call; 2_500]});
    let reply = answer_to(Act::json(200, &build_completion(message, "tool_calls"))).await;
    let reply = reply.unwrap();
    let ids: std::collections::HashSet<&str> = reply.calls.iter().map(|c| c.id.as_str()).collect();
    assert_eq!((reply.calls.len(), ids.len()), (2_500, 2_500));
}

#[tokio::test]
async fn hostile_token_counts_do_not_overflow() {
    let mut body = build_completion(json!({"role": "assistant", "content": "x"}), "stop");
    body["usage"] = json!({"prompt_tokens": 1e19, "completion_tokens": 1e30, "cache_read_input_tokens": 1.2e19});
    let usage = answer_to(Act::json(200, &body)).await.unwrap().usage;
    let mut sum = usage;
    sum += usage;
    assert_eq!(
        (usage.prompt_tokens, sum.completion_tokens),
        (u64::MAX, u64::MAX)
    );
}

#[tokio::test]
async fn hostile_byte_order_mark_is_removed() {
    let chunk = json!({"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [
        {"index": 0, "delta": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]});
    let body = format!("\u{feff}data: {chunk}\n\ndata: [DONE]\n\n");
    let kind = ("content-type".to_owned(), "text/event-stream".to_owned());
    let server = Server::new(vec![Act::Answer(200, vec![kind], body)]).await;
    let reply = client(&server, true).complete(&request()).await;
    assert_eq!(reply.unwrap().content, "x");
}

/// Returns the error for an endless reply, for a client that would try eight times, and the MiB that were
/// sent.
async fn flooded(stream: bool, kind: &'static str, piece: &[u8]) -> (ModelError, usize) {
    const MAX_MEMORY: usize = 160 << 20;
    let floods = (0..8).map(|_| Act::Flood(kind, piece.to_vec(), MAX_MEMORY));
    let server = Server::new(floods.collect()).await;
    let model = Retry::new(Box::new(client(&server, stream)), None);
    let error = model.complete(&request()).await.unwrap_err();
    assert_eq!(server.requests().len(), 1, "{error}");
    (error, server.flooded() >> 20)
}

#[tokio::test]
async fn endless_hostile_reply_is_not_retried() {
    let json = "application/json";
    let events = "text/event-stream";
    let padding = "x".repeat(4_000);
    let event = &format!("data: {{\"choices\": [], \"padding\": \"{padding}\"}}\n\n");
    let part = &format!("data: {padding}\n");
    let comment = &format!(": {padding}\r\n");
    for (stream, kind, piece, expected, max_sent) in [
        (false, json, "[", "a reply of more than 16 MiB", 32),
        (true, json, " ", "a reply of more than 16 MiB", 32),
        (true, events, "data: ", "an event of more than 16 MiB", 32),
        (true, events, part, "an event of more than 16 MiB", 32),
        (true, events, comment, "an event of more than 16 MiB", 32),
        (true, events, event, "a stream of more than 64 MiB", 96),
        (
            true,
            "text/plain",
            event,
            "a stream of more than 64 MiB",
            96,
        ),
    ] {
        let (error, sent) = flooded(stream, kind, piece.as_bytes()).await;
        let ModelError::Fatal { message, hint } = error else {
            panic!("{piece:?}: {error}");
        };
        assert!(message.contains(expected), "{piece:?}: {message}");
        assert!(
            hint.unwrap()
                .contains("check the base URL http://127.0.0.1")
        );
        assert!(sent < max_sent, "{piece:?}: {sent} MiB were sent");
    }
}
