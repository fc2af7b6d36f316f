//! Which lines of some files run while a program runs, by coverage.py or by marks in the code (see `coverage/driver.py`):
//! line data, never what it prints. The repository's own coverage configuration plays no part.

mod statements;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::config::Config;
use crate::error::ToolError;
use crate::outcomes;
use crate::process::{self, Command, ExitReason};
use crate::workspace::read_itself;

pub use statements::{Statements, statements};

const DRIVER: &str = include_str!("coverage/driver.py");
const MARKS: &str = include_str!("coverage/marks.py");
const WHOLE: &str = include_str!("coverage/whole.py");

/// What is to be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// A folder that holds the package `coverage` (coverage.py) for the interpreter of the environment. It is not
    /// part of the environment, so that nothing that the tests see changes.
    pub package: PathBuf,
    /// Python files, relative to the workspace. Those that do not exist are left out.
    pub files: Vec<String>,
    /// How often lines run since the first test: besides whether they do from Python 3.12 on ([`counts_besides`]), instead
    /// of it before.
    #[serde(default)]
    pub counted: bool,
    /// First lines of statements, by file. Measuring ends, at the begin of a test, once all of them have run; of other
    /// lines nothing may be concluded. Without any it goes on to the end. Where every file has some, CPython 3.8 to 3.11
    /// measures them without a trace function, which makes the whole program slow there; those count as called that begin
    /// since the first test (see `coverage/marks.py`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub until: BTreeMap<String, BTreeSet<u32>>,
    /// All Python files below the workspace instead of `files`, as raw lines: see [`WholeMeasure`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<WholeMeasure>,
}

/// All Python files below the workspace. [`Lines::executed`] are then the lines that Python told of, which need not be the
/// first of their statements, and [`Lines::statements`] is empty: see [`statements`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WholeMeasure {
    /// Fill [`Coverage::contexts`].
    pub contexts: bool,
}

/// Whether counting takes nothing away from what else is measured, and costs little: on this version of Python, `X.Y`.
pub fn counts_besides(python_version: &str) -> bool {
    let minor = python_version.strip_prefix("3.");
    minor.is_some_and(|minor| minor.parse().is_ok_and(|minor: u32| minor >= 12))
}

/// Lines that ran, as coverage.py's data has them: never read from what it prints.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// By path relative to the workspace; every file that was asked for and is there.
    pub files: BTreeMap<String, Lines>,
    /// Why there are no figures, or why they are too small (a test ended the process): then nothing may be
    /// concluded from a line that is not among `executed`.
    pub problem: Option<String>,
    /// Python processes that tests started, that ran one of the files and of which not all is known: they were ended before
    /// their lines were written, or kept them from being measured.
    #[serde(default)]
    pub lost: u32,
    /// By node id and file: lines that ran since that test began and before the next one did. Without those of processes that
    /// tests started.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub contexts: BTreeMap<String, BTreeMap<String, Vec<u32>>>,
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
    /// How often lines ran since the first test began; there only where that was asked for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<u32, u64>,
}

/// What several programs, one after the other, run of the files.
pub(crate) struct Measurement {
    /// Holds the package `coverage`.
    package: PathBuf,
    /// Where files are, by the path that was asked for.
    files: BTreeMap<String, PathBuf>,
    driver: PathBuf,
    /// Has the processes measured that the program starts.
    hook: PathBuf,
    result: PathBuf,
    statements: BTreeMap<String, BTreeSet<u32>>,
    executed: BTreeMap<String, BTreeSet<u32>>,
    called: BTreeMap<String, BTreeSet<u32>>,
    counts: BTreeMap<String, BTreeMap<u32, u64>>,
    counted: bool,
    until: BTreeMap<String, BTreeSet<u32>>,
    /// The workspace, where all of it is measured.
    whole: Option<(PathBuf, WholeMeasure)>,
    contexts: BTreeMap<String, BTreeMap<String, Vec<u32>>>,
    problems: Vec<String>,
    lost: u32,
}

#[derive(Deserialize)]
struct DriverReport {
    files: BTreeMap<String, Lines>,
    problems: Vec<String>,
    #[serde(default)]
    contexts: BTreeMap<String, BTreeMap<String, Vec<u32>>>,
}

impl Measurement {
    /// `root` is the workspace, links resolved.
    pub fn new(asked: &Measure, root: &Path, config: &Config) -> Result<Self, ToolError> {
        let folder = config.scratch.join("coverage");
        process::make_anew(&folder)?;
        let private = config.private().join("coverage");
        std::fs::create_dir_all(&private)?;
        let driver = private.join("driver.py");
        std::fs::write(&driver, DRIVER)?;
        std::fs::write(private.join("marks.py"), MARKS)?;
        std::fs::write(private.join("whole.py"), WHOLE)?;
        let hook = outcomes::write_hook(&private.join("children"))?;
        let files = (asked.files.iter())
            .filter_map(|name| {
                let path = std::fs::canonicalize(root.join(name)).ok()?;
                path.is_file().then(|| (name.clone(), path))
            })
            .collect();
        Ok(Measurement {
            package: asked.package.clone(),
            files,
            driver,
            hook,
            result: folder.join("result.json"),
            statements: BTreeMap::new(),
            executed: BTreeMap::new(),
            called: BTreeMap::new(),
            counts: BTreeMap::new(),
            counted: asked.counted,
            until: asked.until.clone(),
            whole: asked.whole.clone().map(|whole| (root.to_owned(), whole)),
            contexts: BTreeMap::new(),
            problems: Vec::new(),
            lost: 0,
        })
    }

    fn is_idle(&self) -> bool {
        self.files.is_empty() && self.whole.is_none()
    }

    /// Has a Python program measured; its arguments begin with `-m` or with the path of a file.
    pub fn of(&self, command: &mut Command) -> Result<(), ToolError> {
        if self.is_idle() {
            return Ok(());
        }
        match std::fs::remove_file(&self.result) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.into()),
            _ => {}
        }
        command.args.insert(0, OsString::from(&self.driver));
        let whole = self.whole.as_ref();
        let settings = json!({
            "root": whole.map(|(root, _)| root),
            "contexts": whole.is_some_and(|(_, whole)| whole.contexts),
            "package": self.package,
            "files": self.files,
            "result": self.result,
            "driver": self.driver,
            "children": self.hook,
            "counted": self.counted,
            "until": self.until,
        });
        command
            .env
            .insert("TESTWRIGHT_COVERAGE".to_owned(), settings.to_string());
        Ok(())
    }

    /// Adds what the program left that has just ended, and what the processes left that it started.
    pub fn add(&mut self, ended: ExitReason) -> Result<(), ToolError> {
        if self.is_idle() {
            return Ok(());
        }
        match take_file(&self.result)? {
            Some(bytes) => {
                for problem in self.add_report(&bytes)? {
                    self.problem(problem);
                }
            }
            None => {
                let how = match ended {
                    ExitReason::Deadline => "the deadline came".to_owned(),
                    ExitReason::Signal(signal) => {
                        format!("the process was ended by signal {signal}")
                    }
                    ExitReason::Exit(status) => {
                        format!("the process ended with exit status {status}")
                    }
                };
                self.problem(format!("{how} before its coverage was written"));
            }
        }
        for child in self.children()? {
            match take_file(&child)? {
                Some(bytes) if !bytes.is_empty() => {
                    let of_child = self.add_report(&bytes)?;
                    self.lost += u32::from(!of_child.is_empty());
                }
                _ => self.lost += 1,
            }
        }
        Ok(())
    }

    /// `RESULT.PID.child`, one for each process that the program started.
    fn children(&self) -> Result<Vec<PathBuf>, ToolError> {
        let (Some(folder), Some(name)) = (self.result.parent(), self.result.file_name()) else {
            return Ok(Vec::new());
        };
        let prefix = format!("{}.", name.to_string_lossy());
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(&prefix) && name.ends_with(".child") {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    }

    /// Adds the lines, and gives the problems.
    fn add_report(&mut self, bytes: &[u8]) -> Result<Vec<String>, ToolError> {
        let found: DriverReport = serde_json::from_slice(bytes)
            .map_err(|e| ToolError::Broken(format!("what was measured cannot be read: {e}")))?;
        self.contexts.extend(found.contexts);
        for (name, lines) in found.files {
            let statements = self.statements.entry(name.clone()).or_default();
            statements.extend(lines.statements);
            let called = self.called.entry(name.clone()).or_default();
            called.extend(lines.called);
            let counts = self.counts.entry(name.clone()).or_default();
            for (line, times) in lines.counts {
                *counts.entry(line).or_default() += times;
            }
            self.executed
                .entry(name)
                .or_default()
                .extend(lines.executed);
        }
        Ok(found.problems)
    }

    fn problem(&mut self, problem: String) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// What all of them ran.
    pub fn finish(mut self) -> Coverage {
        let lines = |found: Option<BTreeSet<u32>>| found.unwrap_or_default().into_iter().collect();
        let names: Vec<String> = match self.whole {
            Some(_) => self.executed.keys().cloned().collect(),
            None => std::mem::take(&mut self.files).into_keys().collect(),
        };
        let files = names.into_iter().map(|name| {
            let of_file = Lines {
                statements: lines(self.statements.remove(&name)),
                executed: lines(self.executed.remove(&name)),
                called: lines(self.called.remove(&name)),
                counts: self.counts.remove(&name).unwrap_or_default(),
            };
            (name, of_file)
        });
        let files = files.collect();
        let problem = (!self.problems.is_empty()).then(|| self.problems.join("; "));
        Coverage {
            files,
            problem,
            lost: self.lost,
            contexts: self.contexts,
        }
    }
}

/// The most that is read of what a program left, in bytes.
const MAX_DATA_LEN: u64 = 64 << 20;

/// The content of a file, which goes away; `None` where there is none. It was written by a program that may have been
/// any: a link, a pipe and what is too large count as none.
fn take_file(path: &Path) -> Result<Option<Vec<u8>>, ToolError> {
    let Ok(Ok(bytes)) = read_itself(path, MAX_DATA_LEN) else {
        return Ok(None);
    };
    std::fs::remove_file(path)?;
    Ok(Some(bytes))
}

/// Lines in a row as one range: `3-5`, `9`.
pub fn ranges(lines: impl IntoIterator<Item = u32>) -> Vec<String> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for line in lines {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == line => *last = line,
            _ => ranges.push((line, line)),
        }
    }
    let range = |(first, last): (u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.into_iter().map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn lines_in_a_row_are_one_range() {
        assert_eq!(ranges([3, 4, 5, 9, 11, 12]).join(","), "3-5,9,11-12");
        assert_eq!(ranges([]).join(","), "");
    }
}
