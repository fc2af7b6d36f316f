//! Test files that are run as they are given, one after the other, in one checkout: `toolbox cases`.
//!
//! The first line of stdin holds [`Settings`], every further one a [`CaseRequest`], which is answered by a line on stdout
//! before the next one is read. What a run leaves behind is taken away before the next one: processes, files, and what it
//! wrote into the temporary folders. Where the code was changed, which cannot be put back here, the answer says so
//! ([`CaseAnswer::is_clean`]), and the sandbox is of no further use.

mod fork_server;
mod session;
mod snapshot;

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::coverage::{Coverage, Statements};
use crate::outcomes::report::Report;
use crate::tool::ToolError;

use session::CaseSession;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub config: Config,
    /// A folder of this sandbox alone, which is emptied after each run, but for the folders of the configuration.
    pub temporary: Option<PathBuf>,
    /// Runs are forked from a process that has loaded what they load.
    pub warm: bool,
    /// Holds coverage.py: lines can be measured.
    pub coverage: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum CaseRequest {
    Run(CaseRun),
    /// Which lines of these files are statements; answered by [`StatementsAnswer`].
    Statements {
        files: Vec<String>,
    },
}

/// One test file, run once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseRun {
    /// Relative to the workspace.
    pub path: String,
    pub source: String,
    /// Below the file, e.g. `Class::test_x`; none: all.
    pub tests: Vec<String>,
    pub milliseconds: u64,
    /// `PYTHONHASHSEED`.
    pub hash_seed: u32,
    /// Which lines of the workspace's Python files run.
    pub measured: bool,
    /// And in which test.
    pub contexts: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseAnswer {
    /// Why the file was not put in its place: nothing ran.
    pub refused: Option<String>,
    pub report: Report,
    /// pytest reported the end of the run, and nothing after it.
    pub is_whole: bool,
    /// Raw lines: see [`crate::coverage::WholeMeasure`].
    pub coverage: Option<Coverage>,
    /// A part of what records the run that the file names: its report is not to be trusted.
    pub names_recorder: Option<String>,
    /// The workspace is as it was before.
    pub is_clean: bool,
    /// The process was forked.
    pub was_warm: bool,
}

impl CaseAnswer {
    fn refused(why: String) -> CaseAnswer {
        CaseAnswer {
            refused: Some(why),
            report: Report::default(),
            is_whole: false,
            coverage: None,
            names_recorder: None,
            is_clean: true,
            was_warm: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatementsAnswer {
    pub files: BTreeMap<String, Statements>,
}

/// Answers requests until there are no more. An error ends it.
pub fn serve(
    settings: Settings,
    requests: impl BufRead,
    mut answers: impl Write,
) -> Result<(), ToolError> {
    let mut session = CaseSession::open(settings)?;
    for line in requests.lines() {
        let request = serde_json::from_str(&line?)
            .map_err(|e| ToolError::Refused(format!("the request cannot be read: {e}")))?;
        let mut answer = match request {
            CaseRequest::Run(run) => match session.run(&run) {
                Err(ToolError::Refused(why)) => encoded(&CaseAnswer::refused(why))?,
                ran => encoded(&ran?)?,
            },
            CaseRequest::Statements { files } => {
                let files = session.statements(&files)?;
                encoded(&StatementsAnswer { files })?
            }
        };
        answer.push(b'\n');
        answers.write_all(&answer)?;
        answers.flush()?;
    }
    Ok(())
}

fn encoded(answer: &impl Serialize) -> Result<Vec<u8>, ToolError> {
    serde_json::to_vec(answer).map_err(|e| ToolError::Broken(e.to_string()))
}
