//! Runs given test files unchanged, one after the other, in one checkout: `toolbox cases`.
//!
//! The first line of stdin holds [`Settings`], every further line a [`CaseRequest`]. Each request is answered by one
//! line on stdout before the next one is read. After each run, its processes, its files and its temporary files are
//! removed. If a run changed the code, the change cannot be reverted here: the answer says so
//! ([`CaseAnswer::is_clean`]), and the sandbox must not be used again.

mod fork_server;
mod session;
mod snapshot;

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::coverage::{Coverage, Statements};
use crate::outcomes::report::TestReport;
use crate::tool::{Result, ToolError, refusal};

use session::CaseSession;

/// Settings of `toolbox cases`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Checkout of the code under test, and how to run its tests.
    pub config: Config,
    /// A folder that only this sandbox uses. It is emptied after each run, except for the folders of the configuration.
    pub temporary: Option<PathBuf>,
    /// Whether to fork runs from a process that has already loaded their imports.
    pub warm: bool,
    /// Folder of coverage.py; without it, lines cannot be measured.
    pub coverage: Option<PathBuf>,
}

/// A request to `toolbox cases`: one line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum CaseRequest {
    /// Runs one test file; answered by [`CaseAnswer`].
    Run(CaseRun),
    /// Asks which lines of these files are statements; answered by [`StatementsAnswer`].
    Statements {
        /// Paths relative to the workspace.
        files: Vec<String>,
    },
}

/// One test file to run once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseRun {
    /// Path relative to the workspace.
    pub path: String,
    /// Content of the file during the run.
    pub source: String,
    /// Test names inside the file, e.g. `Class::test_x`. If empty, all tests run.
    pub tests: Vec<String>,
    /// Time limit of the run, in milliseconds.
    pub milliseconds: u64,
    /// Value of `PYTHONHASHSEED`.
    pub hash_seed: u32,
    /// Whether to measure which lines of the workspace's Python files run.
    pub measured: bool,
    /// Whether to also record which test ran each line.
    pub contexts: bool,
}

/// The result of one [`CaseRun`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseAnswer {
    /// The reason why the file could not be put in place; then nothing ran.
    pub refused: Option<String>,
    /// Outcomes of the tests; empty if nothing ran.
    pub report: TestReport,
    /// Whether pytest reported the end of the run, and nothing after it.
    pub is_whole: bool,
    /// Raw lines: see [`crate::coverage::WholeMeasure`].
    pub coverage: Option<Coverage>,
    /// The recording code that the test file names, if any; then its report must not be trusted.
    pub names_recorder: Option<String>,
    /// Whether the workspace is unchanged.
    pub is_clean: bool,
    /// Whether the process was forked from a warm one.
    pub was_warm: bool,
}

/// The answer to [`CaseRequest::Statements`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatementsAnswer {
    /// Statements of the files, by path.
    pub files: BTreeMap<String, Statements>,
}

/// Answers requests until there are no more.
///
/// # Errors
///
/// Fails if the checkout cannot be opened, a request is not valid, or an answer cannot be written.
pub fn serve(settings: Settings, requests: impl BufRead, mut answers: impl Write) -> Result<()> {
    let mut session = CaseSession::open(settings)?;
    for line in requests.lines() {
        let request = serde_json::from_str(&line?)
            .map_err(|e| refusal!("the request cannot be read: {e}"))?;
        let mut answer = match request {
            CaseRequest::Run(run) => match session.run(&run) {
                Err(ToolError::Refused(why)) => encode(&CaseAnswer {
                    refused: Some(why),
                    is_clean: true,
                    ..CaseAnswer::default()
                })?,
                ran => encode(&ran?)?,
            },
            CaseRequest::Statements { files } => {
                let files = session.statements(&files)?;
                encode(&StatementsAnswer { files })?
            }
        };
        answer.push(b'\n');
        answers.write_all(&answer)?;
        answers.flush()?;
    }
    Ok(())
}

fn encode(answer: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(answer).map_err(|e| ToolError::Broken(e.to_string()))
}
