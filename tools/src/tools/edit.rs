//! `edit`: a piece of a file's text replaced by another.

use schemars::JsonSchema;
use serde::Deserialize;

use super::create_file::{self, CreateFile};
use super::editing;
use super::replacement::replace_text;
use crate::python::Module;
use crate::python::edit::Lines;
use crate::tool::{Answer, Context, Tool, ToolError};
use crate::workspace::{forward, unified};

/// Lines of the change that are shown; a longer one was sent just now.
const SHOWN: usize = 12;

pub struct Edit;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    #[schemars(example = "tests/test_module.py")]
    /// The file.
    path: String,
    /// Text that occurs once; empty for a new file.
    #[serde(default)]
    old: String,
    /// What comes instead.
    #[schemars(extend("plain" = true))]
    new: String,
    /// Where `old` begins, if it occurs more than once.
    #[serde(default)]
    #[schemars(extend("unlisted" = true))]
    line: Option<usize>,
}

impl Tool for Edit {
    type Args = Args;
    const NAME: &'static str = "edit";
    const DESCRIPTION: &'static str = "Change any text file, or make one.";

    fn call(&self, context: &mut Context<'_>, args: Args) -> Result<Answer, ToolError> {
        let new = context.workspace.resolve(&args.path)?;
        if args.old.is_empty() && !context.workspace.root().join(&new).exists() {
            let made = create_file::Args::new(args.path, args.new);
            return Tool::call(&CreateFile, context, made);
        }
        let workspace = &mut *context.workspace;
        let relative = workspace.resolve_file(&args.path)?;
        let shown = forward(&relative);
        if args.old.is_empty() {
            return Err(ToolError::refused(
                "`old` is empty, and the file exists already: give the text to replace.",
            ));
        }
        let (before, ends) = Lines::split(&workspace.read_text(&relative)?);
        let (old, _) = Lines::split(&args.old);
        let (new, _) = Lines::split(&args.new);
        let after = replace_text(&shown, &before, &old, &new, args.line)?;
        if after == before {
            return Ok(Answer::text(format!(
                "{shown} is as it was: `old` and `new` are the same.\n"
            )));
        }
        let is_python = shown.ends_with(".py");
        if is_python {
            let (old, new) = (
                Module::parse(before.as_str()),
                Module::parse(after.as_str()),
            );
            editing::check(workspace, &shown, Some(&old), &new)?;
        }
        workspace.write_text(&relative, &ends.join(&after))?;
        let hunks = unified(&before, &after, is_python);
        let lines: Vec<&str> = hunks.lines().collect();
        let mut out = format!("Edited {shown}.\n");
        let end = if lines.len() > SHOWN { 1 } else { lines.len() };
        for line in &lines[..end] {
            out.push_str(line);
            out.push('\n');
        }
        Ok(Answer::text(out))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use serde_json::json;

    use crate::testing::Fixture;

    const FILE: &str = "import a\r\n\r\ndef test_a():\r\n    assert a.f() == 0\r\n";

    #[test]
    fn a_small_change_is_made_and_shown() {
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
    fn without_old_text_a_new_file_is_made() {
        let mut f = Fixture::new(&[("a.txt", b"a\n")]);
        let made = f.text("edit", json!({"path": "roots/b.txt", "new": "b"}));
        assert_eq!(made, "Made roots/b.txt, 1 line.\n");
        assert_eq!(f.read("roots/b.txt"), "b\n");
        let refused = f.refusal("edit", json!({"path": "a.txt", "new": "b"}));
        assert!(refused.contains("exists already"), "{refused}");
        assert_eq!(f.read("a.txt"), "a\n");
    }

    #[test]
    fn refusals_leave_the_file() {
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
