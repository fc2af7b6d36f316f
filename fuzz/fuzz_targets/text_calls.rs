//! Tool calls that a model writes as text. Every parsed call must name an existing tool, and remarks on the others must
//! be short enough to send back.
#![no_main]

use testwright_fuzz::{bounded_target, tools};
use testwright_models::text_calls;

bounded_target!(fixed: 32 << 20, per_byte: 512, |data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for whole in [true, false] {
        let found = text_calls::read(text, tools(), whole);
        assert!(found.content.len() <= text.len());
        for (name, _) in &found.calls {
            assert!(tools().iter().any(|tool| tool.name == *name), "{name}");
        }
        for malformed in &found.malformed {
            assert!(malformed.problem.len() < 2000 && malformed.text.len() < 5000);
        }
        let length: usize = found.malformed.iter().map(|m| m.problem.len()).sum();
        assert!(length < 1 << 20, "{length} bytes are said about {} bytes", text.len());
    }
});
