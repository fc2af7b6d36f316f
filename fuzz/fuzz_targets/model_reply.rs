//! Responses of a model server: complete, as a stream, or as an error. The first byte selects which. For any response,
//! ids must be unique, and the next request can contain the reply.
#![no_main]

use std::collections::HashSet;
use std::sync::LazyLock;

use testwright_fuzz::{block_on, bounded_target, tools};
use testwright_models::{Message, Request, openai};

bounded_target!(fixed: 32 << 20, per_byte: 512, |data: &[u8]| {
    let Some((kind, body)) = data.split_first() else {
        return;
    };
    let (status, content, stream) = match kind % 5 {
        0 => (200, "text/event-stream", true),
        1 => (200, "application/json", true),
        2 => (200, "application/json", false),
        3 => (429, "application/json", true),
        _ => (400, "text/plain", false),
    };
    let response = http::Response::builder()
        .status(status)
        .header("content-type", content)
        .body(body.to_vec())
        .expect("a response");
    static REQUEST: LazyLock<Request> = LazyLock::new(|| Request {
        messages: vec![Message::User { content: "issue".to_owned() }],
        tools: tools().to_vec(),
        parallel_calls: true,
        temperature: None,
        max_tokens: None,
    });
    let reply = match block_on(openai::read_response(response.into(), stream, &REQUEST)) {
        Ok(reply) => reply,
        Err(error) => {
            assert!(error.to_string().len() < 10_000, "the error is as long as the response");
            return;
        }
    };
    let ids = reply.calls.iter().map(|call| &call.id);
    let ids: Vec<_> = ids.chain(reply.malformed.iter().filter_map(|m| m.id.as_ref())).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    let record = serde_json::to_string(&reply).expect("a record of the reply");
    let again: testwright_models::Reply = serde_json::from_str(&record).expect("the reply of a record");
    assert_eq!((again.content, again.calls.len()), (reply.content, reply.calls.len()));
    let mut sum = reply.usage;
    sum += reply.usage;
});
