//! `sample`: counts the lines of a file. Added to a copy of the project as `tools/src/tools/sample.rs` by `tests/it/samples.rs`.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tool::{Answer, Context, Effect, Tool, ToolError};

pub struct Sample;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The file to count.
    path: String,
}

impl Tool for Sample {
    type Args = Args;
    const NAME: &'static str = "sample";
    const DESCRIPTION: &'static str = "Counts the lines of a file.";
    const EFFECT: Effect = Effect::Reads;

    fn call(&self, context: &mut Context<'_>, args: Args) -> Result<Answer, ToolError> {
        let path = context.workspace.resolve_file(&args.path)?;
        let lines = context.workspace.read_text(&path)?.lines().count();
        Ok(Answer::text(format!("{} has {lines} lines.", args.path)))
    }
}
