//! `changes`: reads the workspace's state out of the sandbox, for the host; `restore` writes it into one.

use std::collections::BTreeSet;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::tool::{Audience, Context, MAX_DATA_LEN, NoArguments, Reply, Result, Tool};
use crate::workspace::{Change, FileChange};

/// Maximum number of left-out files that are named.
const MAX_NAMES: usize = 100;

/// git's mode of a symbolic link.
pub const LINK: u32 = 0o120_000;

/// A file that differs from the base commit.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileContent {
    /// Path relative to the workspace.
    pub path: String,
    /// Content in Base64; `null` for a deleted file. For a link, its target.
    pub content: Option<String>,
    /// Mode as git records it: 33188 (100644), 33261 (100755) or 40960 (120000, a link).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

impl FileContent {
    /// Encodes the current content of a changed file.
    pub fn from_change(change: FileChange) -> FileContent {
        FileContent {
            path: change.path,
            content: change.now.map(|bytes| BASE64_STANDARD.encode(bytes)),
            mode: change.mode,
        }
    }
}

/// A tool that returns the changed files with their content, for the host.
pub struct Changes;

impl Tool for Changes {
    type Args = NoArguments;
    type Data = Value;
    const NAME: &'static str = "changes";
    const DESCRIPTION: &'static str = "The files that differ from the base commit, with their content. If that is too much, the largest files are only named.";
    const AUDIENCE: Audience = Audience::Host;

    fn call(&self, context: &mut Context<'_>, _: Self::Args) -> Result<Reply<Self::Data>> {
        let changes = context.workspace.changes()?;
        let all = changes.len();
        // The deletion of a large file can be reported.
        let is_included = |c: &FileChange| c.oversized.is_none() || c.change == Change::Deleted;
        let (mut changes, oversized): (Vec<_>, Vec<_>) = changes.into_iter().partition(is_included);
        let mut left_out: Vec<String> = oversized.into_iter().map(|c| c.path).collect();
        left_out.extend(without_the_largest(&mut changes));
        left_out.truncate(MAX_NAMES);
        let files: Vec<FileContent> = changes.into_iter().map(FileContent::from_change).collect();
        let mut data = json!({ "files": files });
        if !left_out.is_empty() {
            data["left_out"] = json!(left_out);
        }
        let text = format!("{all} files differ from the base commit.");
        Ok(Reply::new(text, data))
    }
}

/// Removes the largest files if all together are too large. Returns some of their names, largest file first.
fn without_the_largest(changes: &mut Vec<FileChange>) -> Vec<String> {
    // The size in Base64, with the JSON around it.
    let weight = |change: &FileChange| {
        let content = change.now.as_ref().map_or(0, Vec::len);
        content.div_ceil(3) * 4 + change.path.len() * 2 + 80
    };
    let mut total: usize = changes.iter().map(weight).sum();
    if total <= MAX_DATA_LEN {
        return Vec::new();
    }
    let mut by_weight: Vec<(usize, String)> = changes
        .iter()
        .map(|c| (weight(c), c.path.clone()))
        .collect();
    by_weight.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    // Leaves room for the names.
    let max_total = MAX_DATA_LEN / 2;
    let mut left_out = Vec::new();
    for (weight, path) in by_weight {
        if total <= max_total {
            break;
        }
        total -= weight;
        left_out.push(path);
    }
    let omitted_paths: BTreeSet<&String> = left_out.iter().collect();
    changes.retain(|change| !omitted_paths.contains(&change.path));
    left_out
}
