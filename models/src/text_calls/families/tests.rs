//! Every sample of every family is read, alone and after other text.

#![allow(clippy::unwrap_used)]

mod samples;
mod variants;

use serde_json::Value;

use crate::text_calls::tests::tools;
use crate::text_calls::{TextCalls, read};
use samples::SAMPLES;
use variants::VARIANTS;

fn calls_in(read: &TextCalls) -> Vec<(String, Value)> {
    let calls = read.calls.iter();
    calls
        .map(|(name, arguments)| (name.clone(), Value::Object(arguments.clone())))
        .collect()
}

#[test]
fn samples_of_every_family_are_read() {
    for (family, samples) in SAMPLES {
        assert!(!samples.is_empty(), "{family}");
        for sample in *samples {
            let expected: Vec<(String, Value)> = (sample.calls.iter())
                .map(|(name, json)| ((*name).to_owned(), serde_json::from_str(json).unwrap()))
                .collect();
            let text_calls = read(sample.text, &tools(), true);
            assert_eq!(text_calls.malformed, [], "{family}: {}", sample.text);
            assert_eq!(calls_in(&text_calls), expected, "{family}: {}", sample.text);
            let is_mark_left = ["<|", "<｜", "tool_call", "[TOOL", "```", "✿"]
                .iter()
                .any(|mark| text_calls.content.contains(mark));
            let has_thought = ["think", "THINK", "analysis", "scratch_pad"]
                .iter()
                .any(|word| sample.text.contains(word));
            let content = &text_calls.content;
            assert!(has_thought || !is_mark_left, "{family}: {content}");
        }
    }
}

#[test]
fn variants_of_families_are_read() {
    let expected = [("search".to_owned(), serde_json::json!({"pattern": "a"}))];
    for (family, text) in VARIANTS {
        let text_calls = read(text, &tools(), true);
        assert_eq!(text_calls.malformed, [], "{family}: {text}");
        assert_eq!(calls_in(&text_calls), expected, "{family}: {text}");
        for (end, _) in text.char_indices() {
            let cut = calls_in(&read(&text[..end], &tools(), false));
            assert!(cut.is_empty() || cut == expected, "{}", &text[..end]);
        }
    }
}

/// Truncation must not change the arguments of a call.
#[test]
fn truncated_samples_are_never_completed() {
    for sample in SAMPLES.iter().flat_map(|(_, samples)| *samples) {
        let all = calls_in(&read(sample.text, &tools(), true));
        for (end, _) in sample.text.char_indices() {
            let cut = read(&sample.text[..end], &tools(), false);
            for call in calls_in(&cut) {
                assert!(all.contains(&call), "{}: {call:?}", &sample.text[..end]);
            }
        }
    }
}
