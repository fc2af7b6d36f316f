//! `restore`: writes a recorded state of the workspace into a sandbox, for the host. `changes` records it.

use std::collections::BTreeSet;
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::changes::{FileContent, LINK};
use crate::tool::{Audience, Context, Reply, Result, Tool, refusal};

/// A tool that writes a recorded state into the workspace, for the host.
pub struct Restore;

/// Arguments of `restore`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreArgs {
    files: Vec<FileContent>,
}

impl Tool for Restore {
    type Args = RestoreArgs;
    type Data = Value;
    const NAME: &'static str = "restore";
    const DESCRIPTION: &'static str = "Brings the workspace into a recorded state: exactly these files differ from the base \
        commit afterwards.";
    const AUDIENCE: Audience = Audience::Host;

    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>> {
        let mut entries = Vec::new();
        for file in args.files {
            let content = file
                .content
                .map(|text| BASE64_STANDARD.decode(text))
                .transpose()
                .map_err(|e| refusal!("The content of {} is not Base64: {e}.", file.path))?;
            entries.push((file.path, content, file.mode));
        }
        let names: BTreeSet<&str> = entries.iter().map(|(path, ..)| path.as_str()).collect();
        for change in context.workspace.changes()? {
            if !names.contains(change.path.as_str()) {
                context.workspace.restore(Path::new(&change.path))?;
            }
        }
        for (path, content, mode) in &entries {
            if *mode == Some(LINK) {
                if let Some(target) = content {
                    context.workspace.link(Path::new(path), target)?;
                }
                continue;
            }
            let relative = context.workspace.resolve(path)?;
            match content {
                Some(bytes) => context.workspace.write_as(&relative, bytes, *mode)?,
                None if context.workspace.root().join(&relative).exists() => {
                    context.workspace.remove(&relative)?;
                }
                None => {}
            }
        }
        let text = format!("{} files restored.", entries.len());
        Ok(Reply::new(text, Value::Null))
    }
}
