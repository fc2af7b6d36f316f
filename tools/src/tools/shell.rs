//! `shell`: runs one command line, for approaches that work as in a terminal.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use super::line_numbers::{count, cut};
use super::run_python::{Limit, ProgramResult, describe_end};
use crate::outcomes::text::without_repeats;
use crate::outcomes::with_relative_paths;
use crate::process::{self, Command};
use crate::tool::{Context, Reply, Result, Tool, ToolError};

/// Maximum bytes of output that are kept, before repeated lines are removed.
const MAX_OUTPUT_BYTES: usize = 64_000;
/// Characters shown: half from the beginning, half from the end.
const MAX_SHOWN_CHARS: usize = 6_000;
/// Maximum characters of a line that is shown whole.
const WIDTH: usize = 1_000;

/// A tool that runs a command line.
pub struct Shell;

/// Arguments of `shell`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellArgs {
    /// A command line for bash (sh where there is no bash).
    command: String,
    /// Seconds after which it is ended. Default: 120.
    timeout: Option<u64>,
}

impl Tool for Shell {
    type Args = ShellArgs;
    type Data = ProgramResult;
    const NAME: &'static str = "shell";
    const TITLE: &'static str = "Run a shell command";
    const DESCRIPTION: &'static str = "Runs a command line in the root folder of the repository and shows what it prints. \
        Each call is a new shell: the folder and variables of an earlier call are gone, and what was left running \
        in the background is ended. There is no terminal and no network. Of long output the beginning and the end are \
        shown, and repeated lines once. So that equal runs read the same, paths below the root are shown relative to it, and \
        `...` stands for memory addresses, names of temporary folders, durations (`in 0.12s`) and the times in lines of logs.";
    const LOW_LEVEL: bool = true;
    const SECONDS: u64 = 120;
    const RUNS_CODE: bool = true;

    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>> {
        let config = context.workspace.config();
        process::make_home(&config.scratch)?;
        let root = context.workspace.root().to_owned();
        let shell = ["/bin/bash", "/usr/bin/bash", "/bin/sh"]
            .into_iter()
            .find(|path| Path::new(path).exists())
            .ok_or_else(|| ToolError::refused("There is no shell in this sandbox."))?;
        let mut command = Command::python(config, vec!["-c".into(), args.command.into()], &root);
        command.program = shell.into();
        command.max_output_bytes = MAX_OUTPUT_BYTES;
        command.env.insert("PYTHONUNBUFFERED".into(), "1".into());
        command.env.insert("PAGER".into(), "cat".into());
        let limit = Limit::new(context, args.timeout, Self::SECONDS);
        let finished = process::run(&command, limit.at)?;
        let mut ran = ProgramResult::new(&finished, |text| with_relative_paths(&text, &root));
        ran.stdout = fitted(&without_repeats(&ran.stdout));
        let text = describe_end(ran.stdout.clone(), &finished, &limit);
        Ok(Reply::new(text, ran))
    }
}

/// Returns how many of the lines fit into half of the shown characters.
fn fitting<'a>(lines: impl Iterator<Item = &'a String>) -> usize {
    let mut room = MAX_SHOWN_CHARS / 2;
    let fits = lines.take_while(|line| {
        let length = line.chars().count() + 1;
        let fits = length <= room;
        room = room.saturating_sub(length);
        fits
    });
    fits.count()
}

/// Shows as many whole lines from the beginning and from the end as fit.
fn fitted(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| cut(line, WIDTH)).collect();
    let all: usize = lines.iter().map(|line| line.chars().count() + 1).sum();
    if all <= MAX_SHOWN_CHARS {
        return lines.join("\n");
    }
    let head = fitting(lines.iter());
    let tail = fitting(lines[head..].iter().rev());
    let left_out = &lines[head..lines.len() - tail];
    // Not even all lines of very long output were kept.
    let at_least = match left_out
        .iter()
        .any(|line| line.ends_with("bytes left out ...]"))
    {
        true => "more than ",
        false => "",
    };
    let note = format!(
        "[... {at_least}{} left out; `grep`, `head` or `sed -n` shows less at a time ...]",
        count(left_out.len(), "line")
    );
    let mut out = lines[..head].to_vec();
    out.push(note);
    out.extend_from_slice(&lines[lines.len() - tail..]);
    out.join("\n")
}

#[cfg(test)]
mod tests;
