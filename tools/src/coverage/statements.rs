//! Finds which lines of files are statements (see `statements.py`). This is separate from any run, since many runs of
//! the same code need it only once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::error::{Result, ToolError};
use crate::process::{self, Command};

const PROGRAM: &str = include_str!("statements.py");
/// Time limit for all files together.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum bytes of printed output.
const MAX_OUTPUT_LEN: usize = 256 << 20;

/// The statements of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statements {
    /// First lines of the statements.
    pub statements: BTreeSet<u32>,
    /// The first line of the statement, for each of its other lines.
    pub first: BTreeMap<u32, u32>,
}

impl Statements {
    /// Returns the statements that these lines belong to.
    pub fn statements_of(&self, lines: &[u32]) -> BTreeSet<u32> {
        let first = |line: &u32| *self.first.get(line).unwrap_or(line);
        let first_lines = lines.iter().map(first);
        first_lines
            .filter(|line| self.statements.contains(line))
            .collect()
    }
}

/// Returns the statements of Python files in the workspace; files that cannot be parsed are left out. `package` is the
/// folder of coverage.py.
///
/// # Errors
///
/// Fails if Python cannot be run, or its answer cannot be read.
pub fn statements(
    config: &Config,
    package: &Path,
    files: &[String],
) -> Result<BTreeMap<String, Statements>> {
    if files.is_empty() {
        return Ok(BTreeMap::new());
    }
    let private = config.private().join("coverage");
    std::fs::create_dir_all(&private)?;
    let program = private.join("statements.py");
    std::fs::write(&program, PROGRAM)?;
    let args = vec!["-I".into(), program.into(), package.into()];
    let mut command = Command::python(config, args, &config.workspace);
    command.stdin = serde_json::to_vec(files).map_err(|e| ToolError::Broken(e.to_string()))?;
    command.merge = false;
    command.max_output_bytes = MAX_OUTPUT_LEN;
    let ran = process::run(&command, Instant::now() + TIMEOUT)?;
    serde_json::from_str(&ran.stdout.text()).map_err(|e| {
        let stderr = ran.stderr.text();
        let last = stderr.lines().last().unwrap_or_default().to_owned();
        ToolError::Broken(format!(
            "could not read which lines are statements: {e}; {last}"
        ))
    })
}
