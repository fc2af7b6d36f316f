//! `test_patch`: selects the changes that form a test patch. The host evaluates the patch in another sandbox, since
//! anything else in this one is untrusted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::changes::FileContent;
use super::submit::split_patch;
use crate::tool::{Audience, Context, NoArguments, Reply, Result, Tool};
use crate::tools::submission::{ChangedFile, Problem};

/// A tool that selects the changes of a test patch, for the host.
pub struct TestPatch;

/// The changes, sorted.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct SortedChanges {
    /// Every file that differs from the base commit.
    pub files: Vec<ChangedFile>,
    /// Problems of the patch that are visible without running tests.
    pub problems: Vec<Problem>,
    /// Files that a test patch may contain, for `restore`.
    pub kept: Vec<FileContent>,
}

impl Tool for TestPatch {
    type Args = NoArguments;
    type Data = SortedChanges;
    const NAME: &'static str = "test_patch";
    const DESCRIPTION: &'static str =
        "The changes that can be part of a test patch. Reverts the others and names them.";
    const AUDIENCE: Audience = Audience::Host;

    fn call(&self, context: &mut Context<'_>, _: Self::Args) -> Result<Reply<Self::Data>> {
        let parts = split_patch::split_patch(context.workspace)?;
        let sorted = SortedChanges {
            files: parts.files,
            problems: parts.problems,
            kept: parts
                .kept
                .into_iter()
                .map(FileContent::from_change)
                .collect(),
        };
        let text = format!("{} files are kept.", sorted.kept.len());
        Ok(Reply::new(text, sorted))
    }
}
