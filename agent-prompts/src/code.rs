//! Code of the repository, as fields of prompts.

use serde::Serialize;

/// A file of the repository, or the beginning of one.
#[derive(Debug, Clone, Serialize)]
pub struct CodeFile {
    /// Path relative to the repository.
    pub path: String,
    /// Contents, possibly truncated.
    pub text: String,
}

/// A test file that a model should change.
#[derive(Debug, Clone, Serialize)]
pub struct TestFile {
    /// Path relative to the repository.
    pub path: String,
    /// Current text; empty for a new file.
    pub text: String,
    /// Whether the old code lacks the file.
    pub is_new: bool,
    /// Whether `text` is truncated.
    pub is_cut: bool,
}

/// Lines of a file that a test should run.
#[derive(Debug, Clone, Serialize)]
pub struct CodeBlock {
    /// Path relative to the repository.
    pub path: String,
    /// Number of the first line, counted from 1.
    pub first: u32,
    /// Number of the last line, included.
    pub last: u32,
    /// Source of these lines.
    pub source: String,
}
