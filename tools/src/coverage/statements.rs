//! Which lines of files are statements (see `statements.py`), apart from any run: many runs of the same code need it once.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::error::ToolError;
use crate::process::{self, Command};

const PROGRAM: &str = include_str!("statements.py");
/// What it may take for all files together.
const TIME: Duration = Duration::from_secs(600);
/// Bytes of what it prints.
const MAX_OUTPUT_LEN: usize = 256 << 20;

/// The statements of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statements {
    /// Their first lines.
    pub statements: BTreeSet<u32>,
    /// For the other lines of statements the first one.
    pub first: BTreeMap<u32, u32>,
}

impl Statements {
    /// The statements that these lines belong to.
    pub fn of_lines(&self, lines: &[u32]) -> BTreeSet<u32> {
        let first = |line: &u32| *self.first.get(line).unwrap_or(line);
        let found = lines.iter().map(first);
        found
            .filter(|line| self.statements.contains(line))
            .collect()
    }
}

/// The statements of Python files of the workspace, those left out that cannot be parsed. `package` holds coverage.py.
pub fn statements(
    config: &Config,
    package: &Path,
    files: &[String],
) -> Result<BTreeMap<String, Statements>, ToolError> {
    if files.is_empty() {
        return Ok(BTreeMap::new());
    }
    let private = config.private().join("coverage");
    std::fs::create_dir_all(&private)?;
    let program = private.join("statements.py");
    std::fs::write(&program, PROGRAM)?;
    let command = Command {
        program: config.python.clone(),
        args: vec![
            OsString::from("-I"),
            program.into(),
            package.as_os_str().to_owned(),
        ],
        directory: config.workspace.clone(),
        env: process::environment(config),
        stdin: serde_json::to_vec(files).map_err(|e| ToolError::Broken(e.to_string()))?,
        merge: false,
        keep: MAX_OUTPUT_LEN,
    };
    let ran = process::run(&command, Instant::now() + TIME)?;
    serde_json::from_str(&ran.stdout.text()).map_err(|e| {
        let said = ran.stderr.text();
        let last = said.lines().last().unwrap_or_default().to_owned();
        ToolError::Broken(format!("read which lines are statements: {e}; {last}"))
    })
}
