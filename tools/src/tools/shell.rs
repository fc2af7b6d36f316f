//! `shell`: one command line, for approaches that work as one does in a terminal.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use super::run_python::{answer, deadline};
use crate::process::{self, Command};
use crate::pytest::stable;
use crate::tool::{Answer, Context, Tool, ToolError};

const KEEP: usize = 16_000;

pub struct Shell;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// A command line for bash (sh where there is no bash).
    command: String,
    /// Seconds after which it is ended. Default: 120.
    #[serde(default)]
    timeout: Option<u64>,
}

impl Tool for Shell {
    type Args = Args;
    const NAME: &'static str = "shell";
    const DESCRIPTION: &'static str = "Runs a command line in the root folder of the repository and shows what it prints. \
        Each call is a new shell: the folder and variables of an earlier call are gone, and what was left running \
        in the background is ended. There is no terminal and no network.";
    const SECONDS: u64 = 120;

    fn call(&self, context: &mut Context<'_>, args: Args) -> Result<Answer, ToolError> {
        let config = context.workspace.config();
        process::make_home(&config.scratch)?;
        let root = context.workspace.root().to_owned();
        let shell = ["/bin/bash", "/usr/bin/bash", "/bin/sh"]
            .into_iter()
            .find(|path| Path::new(path).exists())
            .ok_or_else(|| ToolError::refused("There is no shell in this sandbox."))?;
        let mut env = process::environment(config);
        env.insert("PYTHONUNBUFFERED".into(), "1".into());
        env.insert("PAGER".into(), "cat".into());
        let command = Command {
            program: shell.into(),
            args: vec!["-c".into(), args.command.into()],
            directory: root.clone(),
            env,
            stdin: Vec::new(),
            merge: true,
            keep: KEEP,
        };
        let finished = process::run(&command, deadline(context, args.timeout, 120))?;
        answer(&finished, |text| stable(&text, &root))
    }
}
