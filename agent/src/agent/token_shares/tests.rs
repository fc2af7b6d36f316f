use serde_json::json;

use super::*;
use testwright_models::{ToolCall, ToolResult};

#[test]
fn prompt_parts_share_provider_count() {
    let request = Request {
        messages: vec![
            Message::System {
                content: "x".repeat(100),
            },
            Message::User {
                content: "x".repeat(200),
            },
            Message::Assistant {
                content: String::new(),
                calls: vec![ToolCall::new("1", "search", json!({}))],
                extra: Default::default(),
            },
            Message::Tool(ToolResult {
                id: "1".into(),
                content: "x".repeat(698),
            }),
        ],
        tools: Vec::new(),
        parallel_calls: true,
        temperature: None,
        max_tokens: None,
    };
    let usage = Usage {
        prompt_tokens: 501,
        completion_tokens: 7,
        ..Usage::default()
    };
    let mut shares = TokenShares::new();
    add_shares(&mut shares, &request, &usage, true);
    assert_eq!(shares["replies"], 7);
    assert_eq!(shares["system prompt"], 51);
    assert_eq!(shares["answers of search"], 349);
    assert_eq!(shares.values().sum::<u64>(), 508);
    add_shares(&mut shares, &request, &usage, false);
    assert_eq!(shares["review"], 508);
}
