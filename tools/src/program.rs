//! `toolbox`: the tools for one workspace, as an MCP server on stdio.
//!
//! ```text
//! toolbox serve --config JSON            serves until stdin closes
//! toolbox call NAME JSON --config JSON   makes one call: prints the text, or the data with --data
//! toolbox test                           runs tests: a request as JSON on stdin, the answer as JSON on stdout
//! toolbox cases                          runs given test files: one line of JSON in, one line out for each
//! toolbox peek                           searches for new code: a request on stdin, the findings on stdout
//! toolbox confine --config JSON -- PROGRAM ARGUMENT…   runs a program that cannot reach the toolbox
//! toolbox --version
//! ```
//!
//! Exit codes: 0 done, whatever the tests did; 1 refused by the tool; 2 invalid usage or request; 3 internal failure.

use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::config::Config;
use crate::process::confinement;
use crate::test_run::{make_folders, side_by_side};
use crate::tool::ToolError;
use crate::workspace::Workspace;
use crate::{cases, leakage, process, server, test_run};

/// Name of an executable that acts as the toolbox, whatever else it can be.
pub const NAME: &str = "toolbox";

/// Returns whether this process was started by that name.
pub fn is_invoked() -> bool {
    let program = std::env::args_os().next().unwrap_or_default();
    Path::new(&program).file_name() == Some(NAME.as_ref())
}

const USAGE: &str = "usage: toolbox serve --config JSON
       toolbox call NAME JSON --config JSON [--data]
       toolbox test < REQUEST
       toolbox cases < REQUESTS
       toolbox peek < REQUEST
       toolbox confine --config JSON -- PROGRAM ARGUMENT...
       toolbox --version";

enum ProgramFailure {
    Usage(String),
    Tool(ToolError),
}

impl From<ToolError> for ProgramFailure {
    fn from(error: ToolError) -> Self {
        ProgramFailure::Tool(error)
    }
}

/// Runs the toolbox. The exit status is 0, 1 (call refused), 2 (invalid arguments) or 3 (toolbox failed).
pub fn main() -> ExitCode {
    confinement::make_undumpable();
    let result = run(std::env::args().skip(1).collect());
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(ProgramFailure::Usage(what)) => {
            eprintln!("toolbox: {what}\n{USAGE}");
            ExitCode::from(2)
        }
        Err(ProgramFailure::Tool(ToolError::Refused(text))) => {
            eprintln!("{text}");
            ExitCode::from(1)
        }
        Err(ProgramFailure::Tool(error @ (ToolError::Broken(_) | ToolError::Cancelled))) => {
            eprintln!("toolbox: {error}");
            ExitCode::from(3)
        }
    }
}

fn run(mut args: Vec<String>) -> Result<(), ProgramFailure> {
    let config = option(&mut args, "--config")?;
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--version" | "-V"] => print(&format!("toolbox {}", env!("CARGO_PKG_VERSION"))),
        ["serve"] => {
            side_by_side::enable(NAME);
            let workspace = open(config)?;
            Ok(server::serve(workspace)?)
        }
        ["peek"] => {
            let findings = leakage::find(Path::new("/"), &read_request()?);
            print(&json(&findings)?)
        }
        ["test"] => {
            let request: test_run::Request = read_request()?;
            make_folders(&request.config)?;
            confinement::confine_programs(&request.config);
            let answer = test_run::perform(request);
            process::end_everything();
            let answer = answer.map_err(|error| match error {
                ToolError::Refused(what) => ProgramFailure::Usage(what),
                broken => ProgramFailure::Tool(broken),
            })?;
            print(&json(&answer)?)
        }
        ["cases"] => {
            let mut requests = std::io::stdin().lock();
            let mut first = String::new();
            requests.read_line(&mut first).map_err(ToolError::from)?;
            let settings: cases::Settings = parse(&first, "the settings cannot be read")?;
            make_folders(&settings.config)?;
            confinement::confine_programs(&settings.config);
            let served = cases::serve(settings, requests, std::io::stdout());
            process::end_everything();
            Ok(served?)
        }
        ["confine", "--", program, arguments @ ..] => {
            let config = read(config)?;
            make_folders(&config)?;
            let error = confinement::become_program(&config, program, arguments);
            Err(ToolError::Broken(format!("could not start {program}: {error}")).into())
        }
        ["call", name, arguments, flags @ ..] if matches!(flags, [] | ["--data"]) => {
            let arguments = parse(arguments, "the arguments are not JSON")?;
            let tool = server::find(name)?;
            side_by_side::enable(NAME);
            let mut workspace = open(config)?;
            let time = Duration::from_secs(tool.seconds());
            let answer =
                server::with_visible_text(server::call(tool, &mut workspace, arguments, time))?;
            process::end_everything();
            print(&match flags {
                [] => answer.text,
                _ => format!("{:#}", answer.data),
            })
        }
        _ => Err(ProgramFailure::Usage("unknown command".to_owned())),
    }
}

fn read(config: Option<String>) -> Result<Config, ProgramFailure> {
    let json = config.ok_or_else(|| ProgramFailure::Usage("--config is missing".to_owned()))?;
    parse(&json, "the configuration cannot be read")
}

fn parse<T: DeserializeOwned>(json: &str, failure: &str) -> Result<T, ProgramFailure> {
    serde_json::from_str(json).map_err(|e| ProgramFailure::Usage(format!("{failure}: {e}")))
}

fn read_request<T: DeserializeOwned>() -> Result<T, ProgramFailure> {
    let request = serde_json::from_reader(std::io::stdin().lock());
    request.map_err(|e| ProgramFailure::Usage(format!("the request cannot be read: {e}")))
}

fn open(config: Option<String>) -> Result<Workspace, ProgramFailure> {
    let config = read(config)?;
    make_folders(&config)?;
    confinement::confine_programs(&config);
    process::adopt_orphans().map_err(ToolError::from)?;
    Ok(Workspace::open(config)?)
}

fn option(args: &mut Vec<String>, name: &str) -> Result<Option<String>, ProgramFailure> {
    let Some(at) = args.iter().position(|a| a == name) else {
        return Ok(None);
    };
    if at + 1 == args.len() {
        return Err(ProgramFailure::Usage(format!("{name} needs a value")));
    }
    args.remove(at);
    Ok(Some(args.remove(at)))
}

fn json(value: &impl serde::Serialize) -> Result<String, ProgramFailure> {
    serde_json::to_string(value).map_err(|e| ToolError::Broken(e.to_string()).into())
}

fn print(text: &str) -> Result<(), ProgramFailure> {
    writeln!(std::io::stdout(), "{text}").map_err(|e| ToolError::from(e).into())
}
