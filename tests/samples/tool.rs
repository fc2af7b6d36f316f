//! The tool `sample`, which counts the lines of a file.
//!
//! `tests/it/repository/samples.rs` adds this file to a copy of the project as `tools/src/tools/sample.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Context, Effect, Reply, Tool, ToolError};

/// The tool.
pub struct Sample;

/// Arguments of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SampleArgs {
    /// The file to count.
    path: String,
}

/// Result of the tool.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Data {
    lines: usize,
}

impl Tool for Sample {
    type Args = SampleArgs;
    type Data = Data;
    const NAME: &'static str = "sample";
    const DESCRIPTION: &'static str = "Counts the lines of a file.";
    const EFFECT: Effect = Effect::Reads;

    fn call(&self, context: &mut Context<'_>, args: SampleArgs) -> Result<Reply<Data>, ToolError> {
        let path = context.workspace.resolve_file(&args.path)?;
        let lines = context.workspace.read_text(&path)?.lines().count();
        let text = format!("{} has {lines} lines.", args.path);
        Ok(Reply::new(text, Data { lines }))
    }
}
