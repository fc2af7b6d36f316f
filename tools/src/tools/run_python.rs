//! `run_python`: runs a snippet with the interpreter of the environment.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::process::{self, Command, Ended, Finished};
use crate::pytest::stable;
use crate::tool::{Answer, Context, Tool, ToolError};

/// Bytes kept of each stream.
const KEEP: usize = 10_000;

pub struct RunPython;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Python code; print what you want to see.
    code: String,
    /// Seconds after which it is ended. Default: 60.
    #[serde(default)]
    timeout: Option<u64>,
}

/// How a program ended and what it printed, for programs.
#[derive(Debug, Serialize)]
pub struct Ran {
    /// `null` where a signal or the deadline ended it.
    exit_code: Option<i32>,
    timed_out: bool,
    stdout: String,
    stderr: String,
}

impl Tool for RunPython {
    type Args = Args;
    const NAME: &'static str = "run_python";
    const DESCRIPTION: &'static str = "Runs a Python snippet in the repository, with its environment, and shows what it \
        prints. To try things out: nothing of it becomes part of the patch.";
    const SECONDS: u64 = 60;

    fn call(&self, context: &mut Context<'_>, args: Args) -> Result<Answer, ToolError> {
        let config = context.workspace.config();
        let folder = config.scratch.join("snippet");
        std::fs::create_dir_all(&folder)?;
        process::make_home(&config.scratch)?;
        let snippet = folder.join("snippet.py");
        std::fs::write(&snippet, &args.code)?;
        let root = context.workspace.root().to_owned();
        let mut env = process::environment(config);
        let path = match env.get("PYTHONPATH") {
            Some(path) => format!("{}:{path}", root.display()),
            None => root.display().to_string(),
        };
        env.insert("PYTHONPATH".into(), path);
        // What is printed before the deadline must not be lost in a buffer.
        env.insert("PYTHONUNBUFFERED".into(), "1".into());
        let command = Command {
            program: config.python.clone(),
            args: vec![snippet.clone().into()],
            directory: root.clone(),
            env,
            stdin: Vec::new(),
            merge: false,
            keep: KEEP,
        };
        let finished = process::run(&command, deadline(context, args.timeout, 60))?;
        let clean = |text: String| {
            stable(
                &text.replace(&snippet.display().to_string(), "snippet.py"),
                &root,
            )
        };
        answer(&finished, clean)
    }
}

pub fn deadline(context: &Context<'_>, asked: Option<u64>, default: u64) -> Instant {
    let seconds = asked.unwrap_or(default).max(1);
    context
        .deadline
        .min(Instant::now() + Duration::from_secs(seconds))
}

/// What a program printed, then how it ended if not well.
pub fn answer(finished: &Finished, clean: impl Fn(String) -> String) -> Result<Answer, ToolError> {
    let ran = Ran {
        exit_code: finished.exit_code(),
        timed_out: finished.timed_out(),
        stdout: clean(finished.stdout.text()),
        stderr: clean(finished.stderr.text()),
    };
    let mut text = ran.stdout.clone();
    if !ran.stderr.is_empty() {
        if !text.is_empty() {
            end_line(&mut text);
            text.push_str("--- stderr ---\n");
        }
        text.push_str(&ran.stderr);
    }
    end_line(&mut text);
    match finished.ended {
        Ended::Exit(0) if text.is_empty() => text.push_str("It ended well and printed nothing."),
        Ended::Exit(0) => {}
        Ended::Exit(code) => text.push_str(&format!("(exit status {code})")),
        Ended::Signal(signal) => text.push_str(&format!("(ended by signal {signal})")),
        Ended::Deadline => {
            text.push_str("(ended by the deadline; this is what it had printed by then)")
        }
    }
    Answer::with_data(text.trim_end(), &ran)
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}
