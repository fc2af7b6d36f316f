//! `create_file`: creates a file with its whole content.

use schemars::JsonSchema;
use serde::Deserialize;

use super::editing::{self, EditAction, EditResult};
use super::line_numbers::{count, end_line};
use crate::python::Module;
use crate::tool::{Context, Reply, Result, Tool, refusal};
use crate::workspace::forward;

/// A tool that creates a file.
pub struct CreateFile;

/// Arguments of `create_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateFileArgs {
    /// The file.
    #[schemars(example = "tests/test_new.py")]
    pub(super) path: String,
    /// The complete content.
    #[schemars(extend("plain" = true), example = "def test_one():\n    assert True\n")]
    pub(super) content: String,
}

impl Tool for CreateFile {
    type Args = CreateFileArgs;
    type Data = EditResult;
    const NAME: &'static str = "create_file";
    const TITLE: &'static str = "Create a file";
    const IS_DESTRUCTIVE: bool = false;
    const IS_IDEMPOTENT: bool = true;
    const DESCRIPTION: &'static str = "Make a new file.";

    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>> {
        let workspace = &mut *context.workspace;
        let relative = workspace.resolve(&args.path)?;
        let display_path = forward(&relative);
        if workspace.root().join(&relative).exists() {
            return Err(refusal!("`{display_path}` already exists."));
        }
        let mut content = args.content;
        end_line(&mut content);
        let lines = content.lines().count();
        let mut out = format!("Made {display_path}, {}.\n", count(lines, "line"));
        if display_path.ends_with(".py") {
            let module = Module::parse(content.as_str());
            editing::check_syntax(&display_path, None, &module)?;
            let undefined = editing::undefined(workspace, None, &module);
            if !undefined.is_empty() {
                let note = format!("It uses names that are defined nowhere:\n{undefined}");
                out.push_str(&note);
            }
        }
        workspace.write_text(&relative, &content)?;
        let lines = (lines > 0).then_some((1, lines));
        let data = EditResult::one(&display_path, EditAction::Created, lines);
        Ok(Reply::new(out, data))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use serde_json::json;

    use crate::testing::Fixture;

    #[test]
    fn only_new_parsable_files_are_created() {
        let mut f = Fixture::new(&[("a.py", b"x = 1\n"), ("b.py", b"import pytest\n")]);
        let answer = f.text(
            "create_file",
            json!({"path": "n/b.py", "content": "pytest\ny = 1"}),
        );
        assert_eq!(
            answer,
            "Made n/b.py, 2 lines.\nIt uses names that are defined nowhere:\n`pytest` in `pytest`: `import pytest`\n"
        );
        assert_eq!(f.read("n/b.py"), "pytest\ny = 1\n");
        f.refuses(
            "create_file",
            json!({"path": "a.py", "content": ""}),
            "exists",
        );
        f.refuses(
            "create_file",
            json!({"path": "c.py", "content": "def f(:\n"}),
            "Line 1",
        );
        f.refuses(
            "create_file",
            json!({"path": "../c.py", "content": ""}),
            "outside",
        );
        f.refuses(
            "create_file",
            json!({"path": "a.py/c.py", "content": ""}),
            "cannot be written",
        );
        assert!(!f.workspace.root().join("c.py").exists());
    }
}
