//! `edit`: replaces text or a function in a file, creates a file, or restores one. Together with `insert_function`, an
//! agent needs no other editing tool; that matters because schemas are sent with every call.

use schemars::JsonSchema;
use serde::Deserialize;

use super::create_file::{self, CreateFile};
use super::editing::{self, EditAction, EditResult};
use super::replacement::replace_text;
use super::revert::{self, Revert};
use super::rewrite_function::{self, RewriteFunction};
use crate::python::Module;
use crate::python::edit::LineEnding;
use crate::tool::{Context, Reply, Result, Tool, ToolError};
use crate::workspace::{forward, unified};

/// Maximum lines of the change that are shown; the model has just sent a longer change itself.
const MAX_SHOWN_LINES: usize = 12;

/// A tool that replaces text or a function, or creates or restores a file.
pub struct Edit;

/// Arguments of `edit`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditArgs {
    #[schemars(example = "tests/test_module.py")]
    /// The file.
    path: String,
    /// Occurs once; not for a new file.
    old: Option<String>,
    /// `Class.method`, replaced whole; its decorators stay unless `new` has some. Empty `new`: delete.
    function: Option<String>,
    /// The replacement text.
    #[schemars(extend("plain" = true))]
    new: Option<String>,
    /// The line at which `old` begins, if it occurs more than once.
    #[schemars(extend("unlisted" = true))]
    line: Option<usize>,
}

impl Tool for Edit {
    type Args = EditArgs;
    type Data = EditResult;
    const NAME: &'static str = "edit";
    const TITLE: &'static str = "Edit a file";
    const DESCRIPTION: &'static str = "Change or make a text file. `path` alone: put it back.";

    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>> {
        let old = args.old.filter(|old| !old.is_empty());
        let Some(new) = args.new else {
            if old.is_some() || args.function.is_some() {
                return Err(ToolError::refused("Say by `new` what comes instead."));
            }
            return Tool::call(&Revert, context, revert::RevertArgs::new(args.path));
        };
        let old = match (old, args.function) {
            (Some(_), Some(_)) => {
                return Err(ToolError::refused(
                    "Give either `old` or `function`, not both.",
                ));
            }
            (None, Some(name)) => {
                let rewritten = rewrite_function::RewriteFunctionArgs::new(args.path, name, new);
                return Tool::call(&RewriteFunction, context, rewritten);
            }
            (old, None) => old.unwrap_or_default(),
        };
        let resolved = context.workspace.resolve(&args.path)?;
        if old.is_empty() && !context.workspace.root().join(&resolved).exists() {
            let create_args = create_file::CreateFileArgs::new(args.path, new);
            return Tool::call(&CreateFile, context, create_args);
        }
        let workspace = &mut *context.workspace;
        let relative = workspace.resolve_file(&args.path)?;
        let display_path = forward(&relative);
        if old.is_empty() {
            return Err(ToolError::refused(
                "`old` is empty, and the file exists already: give the text to replace.",
            ));
        }
        let before = workspace.read_text(&relative)?;
        let (old, _) = LineEnding::split(&old);
        let (new, _) = LineEnding::split(&new);
        let after = replace_text(&display_path, &before, &old, &new, args.line)?;
        if after == before {
            let text = format!("{display_path} is as it was: `old` and `new` are the same.\n");
            return Ok(Reply::new(text, EditResult::default()));
        }
        let is_python = display_path.ends_with(".py");
        if is_python {
            let (old, new) = (
                Module::parse(before.as_str()),
                Module::parse(after.as_str()),
            );
            editing::check(workspace, &display_path, Some(&old), &new)?;
        }
        workspace.write_text(&relative, &after)?;
        let hunks = unified(&before, &after, is_python);
        let lines: Vec<&str> = hunks.lines().collect();
        let mut out = format!("Edited {display_path}.\n");
        let end = if lines.len() > MAX_SHOWN_LINES {
            1
        } else {
            lines.len()
        };
        for line in &lines[..end] {
            out.push_str(line);
            out.push('\n');
        }
        let data = EditResult::one(&display_path, EditAction::Modified, None);
        Ok(Reply::new(out, data))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use serde_json::json;

    use crate::testing::Fixture;

    const FILE: &str = "import a\r\n\r\ndef test_a():\r\n    assert a.f() == 0\r\n";

    #[test]
    fn small_change_is_made_and_shown() {
        let mut f = Fixture::new(&[
            ("tests/test_a.py", FILE.as_bytes()),
            ("tests/roots/index.rst", b"Title\n=====\n"),
        ]);
        let text = f.text(
            "edit",
            json!({"path": "tests/test_a.py", "old": "== 0", "new": "== 1"}),
        );
        assert_eq!(
            text,
            "Edited tests/test_a.py.\n@@ -1,4 +1,4 @@\n import a\n \n def test_a():\n-    assert a.f() == 0\n+    assert a.f() == 1\n"
        );
        assert_eq!(f.read("tests/test_a.py"), FILE.replace("== 0", "== 1"));
        f.text(
            "edit",
            json!({"path": "tests/roots/index.rst", "old": "Title\n=====", "new": "Other\n====="}),
        );
        assert_eq!(f.read("tests/roots/index.rst"), "Other\n=====\n");
    }

    #[test]
    fn missing_old_text_creates_file() {
        let mut f = Fixture::new(&[("a.txt", b"a\n")]);
        let answer = f.text("edit", json!({"path": "roots/b.txt", "new": "b"}));
        assert_eq!(answer, "Made roots/b.txt, 1 line.\n");
        assert_eq!(f.read("roots/b.txt"), "b\n");
        let refused = f.refusal("edit", json!({"path": "a.txt", "new": "b"}));
        assert!(refused.contains("exists already"), "{refused}");
        assert_eq!(f.read("a.txt"), "a\n");
    }

    #[test]
    fn function_is_replaced_and_file_restored() {
        let file = "import a\n\n\n@a.mark\ndef test_a():\n    assert a.f() == 0\n";
        let mut f = Fixture::new(&[("tests/test_a.py", file.as_bytes())]);
        let edit = |what: serde_json::Value| {
            let mut edit = json!({"path": "tests/test_a.py"});
            let fields = what.as_object().unwrap().clone();
            edit.as_object_mut().unwrap().extend(fields);
            edit
        };
        let code = "import b\n\ndef test_a():\n    assert b.f()\n";
        let text = f.text("edit", edit(json!({"function": "test_a", "new": code})));
        assert_eq!(
            text,
            "Rewritten in tests/test_a.py, lines 6-7.\nImports added: import b\nIts decorators stay: @a.mark\n"
        );
        assert_eq!(
            f.read("tests/test_a.py"),
            "import a\nimport b\n\n\n@a.mark\ndef test_a():\n    assert b.f()\n"
        );
        let both = edit(json!({"function": "test_a", "old": "b.f()", "new": "x"}));
        f.refuses("edit", both, "not both");
        let nothing = edit(json!({"function": "test_a"}));
        f.refuses("edit", nothing, "`new`");
        let text = f.text("edit", edit(json!({})));
        assert!(text.contains("tests/test_a.py"), "{text}");
        assert_eq!(f.read("tests/test_a.py"), file);
        let answer = f.text("edit", edit(json!({"function": "test_a", "new": ""})));
        assert_eq!(answer, "Deleted `test_a` from tests/test_a.py.\n");
    }

    #[test]
    fn refusals_leave_file_unchanged() {
        let mut f = Fixture::new(&[("tests/test_a.py", FILE.as_bytes())]);
        let mut refuse = |old: &str, new: &str| {
            f.refusal(
                "edit",
                json!({"path": "tests/test_a.py", "old": old, "new": new}),
            )
        };
        assert!(refuse("", "x").contains("`old` is empty"));
        assert!(refuse("a.f()", "a.f(").contains("would not parse"));
        assert!(refuse("a.f()", "b.f()").contains("`b` in"));
        assert!(refuse("a", "b").contains(" times in `tests/test_a.py`"));
        assert_eq!(f.read("tests/test_a.py"), FILE);
    }
}
