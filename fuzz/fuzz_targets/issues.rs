//! Issues: their text, the rule-based extraction from it, and their URLs.
#![no_main]

use testwright_agent::rule_based::{Snippet, extract};
use testwright_fuzz::{block_on, bounded_target, tools};
use testwright_models::{Message, Model, Request};

bounded_target!(fixed: 32 << 20, per_byte: 512, |data: &[u8]| {
    let (issue, address) = testwright_agent::issues::read_bytes(data);
    if let Err(error) = address {
        assert!(!error.render().is_empty());
    }
    let Ok(issue) = issue else {
        return;
    };
    let text = issue.text();
    assert!(!text.contains(['\r', '\0']));
    // A Latin-1 character takes two bytes in UTF-8.
    assert!(text.len() <= 2 * data.len() + 2000);
    let parts = extract::extract(&text);
    let held = parts.prose().len();
    assert!(held <= 3 * text.len() + 100, "{held} bytes of prose in {} bytes", text.len());
    let _ = testwright_agent::gate::best_sentence(&text, &issue.title);
    let request = Request {
        messages: vec![Message::User { content: format!("<issue>\n{text}\n</issue>") }],
        tools: tools().to_vec(),
        parallel_calls: true,
        temperature: None,
        max_tokens: None,
    };
    let _ = block_on(Snippet.complete(&request));
});
