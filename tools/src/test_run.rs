//! One run of tests for a grader: a request in, what happened and which lines ran out. `toolbox test` reads a
//! [`Request`] as JSON from stdin and writes an [`Answer`] as JSON to stdout; nothing is kept between two runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::pytest::report::Report;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub config: Config,
    /// Node ids, files or folders, relative to the workspace.
    pub ids: Vec<String>,
    /// When the run has to be over; what ran until then is reported.
    pub seconds: u64,
    /// `PYTHONHASHSEED`.
    #[serde(default)]
    pub hash_seed: u32,
    /// The last test first.
    #[serde(default)]
    pub reversed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Measure>,
}

/// What is to be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// A folder that holds the package `coverage` (coverage.py) for the interpreter of the environment. It is not
    /// part of the environment, so that nothing that the tests see changes.
    pub package: PathBuf,
    /// Python files, relative to the workspace. Those that do not exist are left out.
    pub files: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub report: Report,
    /// `None` where none was asked for.
    pub coverage: Option<Coverage>,
}

/// Lines that ran, as coverage.py's data has them: never read from what it prints.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// By path relative to the workspace; every file that was asked for and is there.
    pub files: BTreeMap<String, Lines>,
    /// Why there are no figures, or why they are too small (a test ended the process): then nothing may be
    /// concluded from a line that is not among `executed`.
    pub problem: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// First lines of the statements that can run, ascending.
    pub statements: Vec<u32>,
    /// Those of them that ran.
    pub executed: Vec<u32>,
    /// Those of them that ran since the first test began, fixtures included: not those that ran only while tests were
    /// collected and modules imported.
    #[serde(default)]
    pub called: Vec<u32>,
}
