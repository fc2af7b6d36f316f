//! `run_python`: runs a snippet with the interpreter of the environment.

mod tracebacks;
mod warnings;

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::line_numbers::end_line;
use crate::outcomes::normalize;
use crate::process::{self, Command, ExitReason, ProcessOutput};
use crate::tool::{Context, Reply, Result, Tool};

/// Maximum bytes kept of each stream.
const MAX_OUTPUT_BYTES: usize = 10_000;

/// A tool that runs a snippet of Python.
pub struct RunPython;

/// Arguments of `run_python`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunPythonArgs {
    /// The code; it prints what you want to see.
    #[schemars(extend("plain" = true))]
    code: String,
    /// Maximum seconds. Default: 60.
    #[schemars(extend("unlisted" = true))]
    timeout: Option<u64>,
}

/// The end and the output of a program, for programs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProgramResult {
    /// `null` if a signal or the deadline ended it.
    exit_code: Option<i32>,
    timed_out: bool,
    /// Standard output, cut in the middle if it is long.
    pub stdout: String,
    stderr: String,
}

impl Tool for RunPython {
    type Args = RunPythonArgs;
    type Data = ProgramResult;
    const NAME: &'static str = "run_python";
    const TITLE: &'static str = "Run Python";
    const DESCRIPTION: &'static str = "Run Python in the repository and show what it prints.";
    const SECONDS: u64 = 60;
    const RUNS_CODE: bool = true;

    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>> {
        let config = context.workspace.config();
        let folder = config.private().join("snippet");
        std::fs::create_dir_all(&folder)?;
        process::make_home(&config.scratch)?;
        let snippet = folder.join("snippet.py");
        std::fs::write(&snippet, &args.code)?;
        let root = context.workspace.root().to_owned();
        // The streams are merged, to keep the order of writing.
        let mut command = Command::python(config, vec![snippet.clone().into()], &root);
        command.max_output_bytes = MAX_OUTPUT_BYTES;
        let env = &mut command.env;
        let path = match env.get("PYTHONPATH") {
            Some(path) => format!("{}:{path}", root.display()),
            None => root.display().to_string(),
        };
        env.insert("PYTHONPATH".into(), path);
        // Unbuffered, so that output before the deadline is not lost.
        env.insert("PYTHONUNBUFFERED".into(), "1".into());
        let limit = Limit::new(context, args.timeout, Self::SECONDS);
        let finished = process::run(&command, limit.at)?;
        let clean = |text: String| {
            normalize(
                &text.replace(&snippet.display().to_string(), "snippet.py"),
                &root,
            )
        };
        let ran = ProgramResult::new(&finished, clean);
        let text = tracebacks::folded(&warnings::folded(&ran.stdout, &args.code));
        Ok(Reply::new(describe_end(text, &finished, &limit), ran))
    }
}

/// The time limit of a program.
pub struct Limit {
    /// The time when the program is killed.
    pub at: Instant,
    seconds: u64,
    /// Whether a longer `timeout` would have allowed more time.
    by_argument: bool,
}

impl Limit {
    /// Returns the limit of a call: `requested_seconds` or `default` seconds, but not beyond the call's deadline.
    pub fn new(context: &Context<'_>, requested_seconds: Option<u64>, default: u64) -> Self {
        let seconds = requested_seconds.unwrap_or(default).max(1);
        let remaining_time = context.left();
        let by_argument = Duration::from_secs(seconds) < remaining_time;
        Limit {
            at: context.deadline_after(Duration::from_secs(seconds)),
            // Rounded up, to hide the time that has already passed.
            seconds: if by_argument {
                seconds
            } else {
                (remaining_time.as_millis().div_ceil(1000)) as u64
            },
            by_argument,
        }
    }
}

impl ProgramResult {
    /// Creates the data about a finished program. `clean` is applied to the text of each stream.
    pub fn new(finished: &ProcessOutput, clean: impl Fn(String) -> String) -> Self {
        ProgramResult {
            exit_code: finished.exit_code(),
            timed_out: finished.timed_out(),
            stdout: clean(finished.stdout.text()),
            stderr: clean(finished.stderr.text()),
        }
    }
}

/// Returns the output of a program, and how it ended if it did not succeed.
pub fn describe_end(mut text: String, finished: &ProcessOutput, limit: &Limit) -> String {
    end_line(&mut text);
    match finished.ended {
        ExitReason::Exit(0) if text.is_empty() => {
            text.push_str("It ended well and printed nothing.")
        }
        ExitReason::Exit(0) => {}
        ExitReason::Exit(code) => text.push_str(&format!("(exit status {code})")),
        ExitReason::Signal(signal) => text.push_str(&format!("(ended by signal {signal})")),
        ExitReason::Deadline => {
            let more = if limit.by_argument {
                "; give a longer `timeout` if it needs more"
            } else {
                ""
            };
            let printed = if text.is_empty() {
                "it had printed nothing by then"
            } else {
                "this is what it had printed by then"
            };
            text.push_str(&format!(
                "(ended by the deadline after {} s; {printed}{more})",
                limit.seconds
            ));
        }
    }
    text.trim_end().to_owned()
}
