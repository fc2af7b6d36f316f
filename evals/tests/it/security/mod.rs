//! Untrusted input: datasets, predictions, and results folders.

mod dataset;
mod files;
mod predictions;
mod results;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testwright_evals::Dataset;

/// Sequences forbidden in names and messages: they move the cursor, change colours, reverse the reading direction, or
/// are invisible.
const UNSEEN: [&str; 8] = [
    "\u{1b}[2J",
    "\u{9b}31m",
    "\r",
    "\u{8}",
    "\0",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
];

fn instance(id: &str) -> Value {
    json!({
        "instance_id": id, "repo": "acme/slugs", "base_commit": "0123abc", "problem_statement": "It fails",
    })
}

fn with(key: &str, value: impl Into<Value>) -> Value {
    let mut instance = instance("acme__slugs-1");
    instance[key] = value.into();
    instance
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    fn dataset(&self, instances: &[Value]) -> Result<Dataset, String> {
        let lines: Vec<String> = instances.iter().map(Value::to_string).collect();
        let path = self.file("dataset.jsonl", lines.join("\n"));
        Dataset::read(&path).map_err(|error| error.to_string())
    }
}

/// Asserts that a message can be displayed: one line of readable length without invisible characters.
#[track_caller]
fn is_fit_to_be_shown(message: &str) {
    assert!(message.len() < 8_000, "{} bytes", message.len());
    assert!(!message.chars().any(char::is_control), "{message:?}");
    for unseen in UNSEEN {
        assert!(!message.contains(unseen), "{message:?}");
    }
}
