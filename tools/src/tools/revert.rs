//! `revert`: restores files to their state at the base commit.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use super::editing::{EditAction, EditResult};
use crate::tool::{Context, Reply, Result, Tool, ToolError};
use crate::workspace::{Change, forward, is_at_or_below};

/// A tool that restores files to the base commit.
pub struct Revert;

/// Arguments of `revert`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RevertArgs {
    /// Default: all that you changed.
    #[schemars(example = "tests/test_module.py")]
    pub(super) path: Option<String>,
}

impl Tool for Revert {
    type Args = RevertArgs;
    type Data = EditResult;
    const NAME: &'static str = "revert";
    const TITLE: &'static str = "Revert files";
    const IS_IDEMPOTENT: bool = true;
    const DESCRIPTION: &'static str = "Put files back as they were.";

    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>> {
        let workspace = &mut *context.workspace;
        let mut changes = workspace.changes()?;
        if let Some(path) = &args.path {
            let plain_path = path.trim_start_matches("./").trim_end_matches('/');
            // A link is named by its own path, not by its target.
            let relative = match changes.iter().any(|c| c.path == plain_path) {
                true => plain_path.to_owned(),
                false => forward(&workspace.resolve(path)?),
            };
            let all: Vec<String> = changes.iter().map(|c| c.path.clone()).collect();
            changes.retain(|change| is_at_or_below(&change.path, &relative));
            if changes.is_empty() {
                let rest = match all.is_empty() {
                    true => "; so is everything else".to_owned(),
                    false => format!(". What differs: {}", all.join(", ")),
                };
                let text = format!("`{relative}` is as it was at the start{rest}.\n");
                return Ok(Reply::new(text, EditResult::default()));
            }
        }
        if changes.is_empty() {
            let text = "Nothing differs from the start.\n";
            return Ok(Reply::new(text, EditResult::default()));
        }
        let mut out = String::new();
        let mut edited = EditResult::default();
        for changed in &changes {
            let (what, action) = match changed.change {
                Change::Added => ("removed (it was new)", EditAction::Removed),
                Change::Modified => ("restored", EditAction::Restored),
                Change::Deleted => ("written again (it was deleted)", EditAction::Restored),
            };
            match workspace.restore(Path::new(&changed.path)) {
                Ok(()) => {
                    out.push_str(&format!("{}: {what}\n", changed.path));
                    edited.add(&changed.path, action, None);
                }
                Err(ToolError::Refused(text)) => out.push_str(&format!("{text}\n")),
                Err(broken) => return Err(broken),
            }
        }
        Ok(Reply::new(out, edited))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use serde_json::json;

    use crate::testing::Fixture;

    #[test]
    fn one_or_all_files_are_reverted() {
        let mut f = Fixture::new(&[("a.py", b"a\n"), ("b.py", b"b\n"), ("t/c.py", b"c\n")]);
        assert_eq!(
            f.text("revert", json!({})),
            "Nothing differs from the start.\n"
        );
        let root = f.workspace.root().to_path_buf();
        std::fs::write(root.join("a.py"), "changed\n").unwrap();
        std::fs::remove_file(root.join("b.py")).unwrap();
        std::fs::create_dir(root.join("new")).unwrap();
        std::fs::write(root.join("new/d.py"), "d\n").unwrap();
        f.shows(
            "revert",
            json!({"path": "t/c.py"}),
            "What differs: a.py, b.py, new/d.py",
        );
        assert_eq!(
            f.text("revert", json!({"path": "./a.py"})),
            "a.py: restored\n"
        );
        assert_eq!(
            f.text("revert", json!({})),
            "b.py: written again (it was deleted)\nnew/d.py: removed (it was new)\n"
        );
        assert_eq!(
            (f.read("a.py"), f.read("b.py")),
            ("a\n".to_owned(), "b\n".to_owned())
        );
        assert!(!root.join("new").exists());
        assert!(f.workspace.changes().unwrap().is_empty());
    }
}
