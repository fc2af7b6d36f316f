//! Files designed to exhaust memory or take excessive time.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::*;

fn message(folder: &Folder, content: impl AsRef<[u8]>) -> String {
    let path = folder.file("dataset.jsonl", content);
    let message = Dataset::read(&path).unwrap_err().to_string();
    is_fit_to_be_shown(&message);
    message
}

#[test]
fn deep_nesting_is_refused() {
    let folder = Folder::new();
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = open.repeat(200_000) + &close.repeat(200_000);
        for text in [deep.clone(), format!("[{deep}]"), open.repeat(200_000)] {
            assert!(message(&folder, text).contains("invalid JSON"));
        }
    }
}

#[test]
fn record_size_is_limited() {
    let folder = Folder::new();
    let long = format!("{{\"hints_text\": \"{}\"}}", "x".repeat(65 << 20));
    for text in [long.clone(), format!("[{long}]")] {
        let message = message(&folder, text);
        assert!(message.contains("line 1: "), "{message}");
        assert!(message.contains("64 MiB"), "{message}");
    }
}

/// Returns the processor time of this thread, which does not depend on other processes.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

/// The cost of each value must not depend on the number of values before it.
#[test]
fn parsing_time_is_linear_in_values() {
    let folder = Folder::new();
    let took = |values: usize| {
        let text = format!("[{}0]", "0,".repeat(values));
        let path = folder.file("dataset.jsonl", text);
        let time = || {
            let begun = processor_time();
            assert!(Dataset::read(&path).is_err());
            processor_time() - begun
        };
        (0..3).map(|_| time()).min().unwrap_or(Duration::MAX)
    };
    let (some, more) = (took(5_000), took(40_000));
    assert!(more < some * 24, "{some:?}, then {more:?}");
}

#[test]
fn messages_quote_little_of_a_file() {
    let folder = Folder::new();
    for text in [
        format!("{{\"{}\": ", "\u{1b}[2J".repeat(100_000)),
        "[0 \u{202e}".to_owned(),
        "[0 \u{9b}".to_owned(),
        with("FAIL_TO_PASS", format!("['{}", "\u{1b}".repeat(100_000))).to_string(),
        with("version", json!([["\u{202e}"]])).to_string(),
        format!("{{\"{}\": 1}}", "instance_id\u{202e}"),
    ] {
        message(&folder, text);
    }
}
