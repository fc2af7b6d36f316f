//! Checks the invariants of docs/ARCHITECTURE.md. Each check is also tested against code that violates it.

mod crates;
mod cycles;
mod files;
mod reads;
mod uses;

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// A source file: its path relative to the workspace root, and its text.
pub(crate) struct Source {
    pub path: String,
    pub text: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Source {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    fn under(&self, folders: &[&str]) -> bool {
        folders.iter().any(|f| self.path.starts_with(f))
    }

    pub(crate) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs")
            || self.path.contains("/tests/")
            || self.path.starts_with("tests/")
    }
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Reads all Rust sources of the workspace.
pub(crate) fn sources() -> Vec<Source> {
    let mut files = Vec::new();
    let mut folders: Vec<PathBuf> = [
        "src",
        "tests",
        "benches",
        "tools",
        "agent-prompts",
        "sandboxes",
        "evals",
        "config",
        "models",
        "agent",
        "comparisons",
        "server",
    ]
    .iter()
    .map(|name| root().join(name))
    .collect();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for path in entries.map(|e| e.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let relative_path = path
                    .strip_prefix(root())
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                files.push(Source {
                    path: relative_path,
                    text: std::fs::read_to_string(&path).unwrap(),
                });
            }
        }
    }
    assert!(files.len() > 50, "no sources found");
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

pub(crate) fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}
