//! `show_patch`: shows the differences from the base commit as a diff.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::line_numbers::{count, cut, listed};
use crate::tool::{Context, Effect, Reply, Result, Tool};
use crate::workspace::{forward, is_at_or_below};

/// Maximum lines of a patch that are shown.
const SHOWN: usize = 300;
const WIDTH: usize = 300;
/// Maximum bytes of a patch for programs.
const MAX_PATCH: usize = 1 << 20;
/// Maximum number of large files that are named.
const MAX_LARGE_FILES: usize = 10;

/// A tool that shows the changes as a diff.
pub struct ShowPatch;

/// Arguments of `show_patch`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowPatchArgs {
    /// A file or folder.
    #[schemars(example = "tests/test_module.py")]
    path: Option<String>,
}

/// The changes as a patch.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ShownPatch {
    /// Files that differ from the start.
    files: Vec<String>,
    /// Patch for `git apply`; `null` if it is larger than 1 MiB.
    patch: Option<String>,
}

impl Tool for ShowPatch {
    type Args = ShowPatchArgs;
    type Data = ShownPatch;
    const NAME: &'static str = "show_patch";
    const TITLE: &'static str = "Show the changes";
    const DESCRIPTION: &'static str = "Show what you changed as a diff.";
    const EFFECT: Effect = Effect::Reads;

    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>> {
        let workspace = &mut *context.workspace;
        let mut changes = workspace.changes()?;
        if let Some(path) = &args.path {
            let relative = forward(&workspace.resolve(path)?);
            changes.retain(|change| is_at_or_below(&change.path, &relative));
        }
        if changes.is_empty() {
            let data = ShownPatch {
                patch: Some(String::new()),
                ..ShownPatch::default()
            };
            return Ok(Reply::new("Nothing differs from the start.\n", data));
        }
        let patch = workspace.patch(&changes);
        let lines: Vec<String> = patch.lines().map(|line| cut(line, WIDTH)).collect();
        let paths: Vec<&str> = changes.iter().map(|c| c.path.as_str()).collect();
        let mut out = listed(&lines, SHOWN, |more| {
            let (lines, paths) = (count(more, "line"), paths.join(", "));
            format!("… {lines} more. Changed files: {paths}. Give `path` to see one.")
        });
        let large_files = changes.iter().filter_map(|c| Some((&c.path, c.oversized?)));
        for (path, size) in large_files.take(MAX_LARGE_FILES) {
            let size = size.div_ceil(1 << 10);
            out.push_str(&format!(
                "{path} differs too, and is too large to be shown ({size} KiB).\n"
            ));
        }
        let data = ShownPatch {
            files: changes.into_iter().map(|change| change.path).collect(),
            patch: (patch.len() <= MAX_PATCH).then_some(patch),
        };
        Ok(Reply::new(out, data))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use serde_json::json;

    use crate::testing::Fixture;

    #[test]
    fn diff_shows_all_files_or_one() {
        let mut f = Fixture::new(&[("a.py", b"a\n"), ("b.py", b"b\n")]);
        assert_eq!(
            f.text("show_patch", json!({})),
            "Nothing differs from the start.\n"
        );
        let root = f.workspace.root().to_path_buf();
        std::fs::write(root.join("a.py"), "x\n").unwrap();
        std::fs::write(root.join("b.py"), "y\n".repeat(400)).unwrap();
        let one = f.text("show_patch", json!({"path": "a.py"}));
        assert!(one.starts_with("diff --git a/a.py b/a.py\nindex "), "{one}");
        assert!(
            one.ends_with("--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+x\n"),
            "{one}"
        );
        f.shows(
            "show_patch",
            json!({}),
            "lines more. Changed files: a.py, b.py.",
        );
    }
}
