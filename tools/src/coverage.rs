//! Measures which lines of some files run while a program runs, by coverage.py or by marks in the code (see
//! `coverage/driver.py`). It reads line data, never printed output, and ignores the repository's coverage
//! configuration.

mod statements;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::config::Config;
use crate::error::{Result, ToolError};
use crate::outcomes;
use crate::process::{self, Command, ExitReason};
use crate::workspace::read_itself;

pub use statements::{Statements, statements};

const DRIVER_PROGRAM: &str = include_str!("coverage/driver.py");
const MARKS_PROGRAM: &str = include_str!("coverage/marks.py");
const ALL_FILES_PROGRAM: &str = include_str!("coverage/all_files.py");

/// The files and lines to measure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// A folder that holds the package `coverage` (coverage.py) for the interpreter of the environment. It is not
    /// part of the environment, so the tests see no difference.
    pub package: PathBuf,
    /// Python files, relative to the workspace. Files that do not exist are left out.
    pub files: Vec<String>,
    /// Whether to count how often lines run since the first test. Before Python 3.12, the counts replace the normal
    /// measurement ([`counts_are_cheap`]).
    #[serde(default)]
    pub counted: bool,
    /// First lines of statements, by file. Measuring stops at the start of a test, once all of them have run. The
    /// result says nothing about other lines. If empty, measuring continues to the end.
    ///
    /// If every file has some, CPython 3.8 to 3.11 measures them without a trace function, which would slow down the
    /// whole program. Lines that start to run since the first test then count as called (see `coverage/marks.py`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub until: BTreeMap<String, BTreeSet<u32>>,
    /// Measures all Python files below the workspace instead of `files`, as raw lines: see [`WholeMeasure`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<WholeMeasure>,
}

/// Measures all Python files below the workspace. [`CoveredLines::executed`] then holds lines as Python reported them, which
/// need not be the first lines of their statements. [`CoveredLines::statements`] is empty: see [`mod@statements`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WholeMeasure {
    /// Whether to fill [`Coverage::contexts`].
    pub contexts: bool,
}

/// Returns whether this Python version (`X.Y`) can count lines cheaply, without losing other measurements.
pub fn counts_are_cheap(python_version: &str) -> bool {
    let minor = python_version.strip_prefix("3.");
    minor.is_some_and(|minor| minor.parse().is_ok_and(|minor: u32| minor >= 12))
}

/// Lines that ran, read from coverage.py's data, never from its printed output.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// Lines by path relative to the workspace; every requested file that exists.
    pub files: BTreeMap<String, CoveredLines>,
    /// The reason why figures are missing or too small (e.g. a test ended the process). Then nothing may be
    /// concluded from a line that is not among `executed`.
    pub problem: Option<String>,
    /// Number of incompletely measured Python processes that tests started and that ran one of the files. Either they
    /// were ended before their lines were written, or they prevented the measurement.
    #[serde(default)]
    pub lost: u32,
    /// Lines that ran between the start of a test and the start of the next one, by node id and file. Lines run by
    /// processes that tests started are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub contexts: BTreeMap<String, BTreeMap<String, Vec<u32>>>,
}

/// Lines of one file, from 1: its statements, and which of them ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoveredLines {
    /// First lines of the statements that can run, ascending.
    pub statements: Vec<u32>,
    /// Statements that ran, by first line.
    pub executed: Vec<u32>,
    /// Statements that ran since the first test began, fixtures included. Statements that ran only during collection
    /// or module import are left out.
    #[serde(default)]
    pub called: Vec<u32>,
    /// Execution counts of lines since the first test began. Empty unless counts were requested.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<u32, u64>,
}

/// Accumulates what several programs, one after the other, run of the files.
pub(crate) struct Measurement {
    /// Folder of the package `coverage`.
    package: PathBuf,
    /// Absolute paths of the files, by requested path.
    files: BTreeMap<String, PathBuf>,
    driver: PathBuf,
    /// The hook that measures the processes that the program starts.
    hook: PathBuf,
    result: PathBuf,
    /// Measured lines by requested path.
    lines: BTreeMap<String, MeasuredLines>,
    counted: bool,
    until: BTreeMap<String, BTreeSet<u32>>,
    /// The workspace, if all of it is measured.
    whole: Option<(PathBuf, WholeMeasure)>,
    contexts: BTreeMap<String, BTreeMap<String, Vec<u32>>>,
    problems: Vec<String>,
    lost: u32,
}

/// Lines of one file: see [`CoveredLines`].
#[derive(Default)]
struct MeasuredLines {
    statements: BTreeSet<u32>,
    executed: BTreeSet<u32>,
    called: BTreeSet<u32>,
    counts: BTreeMap<u32, u64>,
}

#[derive(Deserialize)]
struct DriverReport {
    files: BTreeMap<String, CoveredLines>,
    problems: Vec<String>,
    #[serde(default)]
    contexts: BTreeMap<String, BTreeMap<String, Vec<u32>>>,
}

impl Measurement {
    /// Prepares a measurement. `root` is the workspace with links resolved.
    pub(crate) fn new(measure: &Measure, root: &Path, config: &Config) -> Result<Self> {
        let folder = config.scratch.join("coverage");
        process::recreate_folder(&folder)?;
        let private = config.private().join("coverage");
        std::fs::create_dir_all(&private)?;
        let driver = private.join("driver.py");
        std::fs::write(&driver, DRIVER_PROGRAM)?;
        std::fs::write(private.join("marks.py"), MARKS_PROGRAM)?;
        std::fs::write(private.join("all_files.py"), ALL_FILES_PROGRAM)?;
        let hook = outcomes::write_hook(&private.join("children"))?;
        let files = (measure.files.iter())
            .filter_map(|name| {
                let path = std::fs::canonicalize(root.join(name)).ok()?;
                path.is_file().then(|| (name.clone(), path))
            })
            .collect();
        Ok(Measurement {
            package: measure.package.clone(),
            files,
            driver,
            hook,
            result: folder.join("result.json"),
            lines: BTreeMap::new(),
            counted: measure.counted,
            until: measure.until.clone(),
            whole: measure.whole.clone().map(|whole| (root.to_owned(), whole)),
            contexts: BTreeMap::new(),
            problems: Vec::new(),
            lost: 0,
        })
    }

    fn is_idle(&self) -> bool {
        self.files.is_empty() && self.whole.is_none()
    }

    /// Sets a Python command up to be measured; its arguments begin with `-m` or with the path of a file.
    pub(crate) fn instrument(&self, command: &mut Command) -> Result<()> {
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

    /// Adds the data of the program that has just ended, and of the processes that it started.
    pub(crate) fn add(&mut self, ended: ExitReason) -> Result<()> {
        if self.is_idle() {
            return Ok(());
        }
        match take_file(&self.result)? {
            Some(bytes) => {
                for problem in self.add_report(&bytes)? {
                    self.add_problem(problem);
                }
            }
            None => {
                self.add_problem(format!("{ended} before its coverage was written"));
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

    /// Lists the data files `RESULT.PID.child`, one for each process that the program started.
    fn children(&self) -> Result<Vec<PathBuf>> {
        let Some(folder) = self.result.parent() else {
            return Ok(Vec::new());
        };
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with("result.json.") && name.ends_with(".child") {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }

    /// Adds the lines of a report and returns its problems.
    fn add_report(&mut self, bytes: &[u8]) -> Result<Vec<String>> {
        let report: DriverReport = serde_json::from_slice(bytes)
            .map_err(|e| ToolError::Broken(format!("could not read the measured lines: {e}")))?;
        self.contexts.extend(report.contexts);
        for (name, lines) in report.files {
            let measured = self.lines.entry(name).or_default();
            measured.statements.extend(lines.statements);
            measured.executed.extend(lines.executed);
            measured.called.extend(lines.called);
            for (line, times) in lines.counts {
                *measured.counts.entry(line).or_default() += times;
            }
        }
        Ok(report.problems)
    }

    fn add_problem(&mut self, problem: String) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Returns what all programs ran.
    pub(crate) fn finish(mut self) -> Coverage {
        if self.whole.is_none() {
            self.lines.retain(|name, _| self.files.contains_key(name));
            for name in self.files.into_keys() {
                self.lines.entry(name).or_default();
            }
        }
        let covered = |lines: MeasuredLines| CoveredLines {
            statements: lines.statements.into_iter().collect(),
            executed: lines.executed.into_iter().collect(),
            called: lines.called.into_iter().collect(),
            counts: lines.counts,
        };
        let files = self.lines.into_iter();
        Coverage {
            files: files.map(|(name, lines)| (name, covered(lines))).collect(),
            problem: (!self.problems.is_empty()).then(|| self.problems.join("; ")),
            lost: self.lost,
            contexts: self.contexts,
        }
    }
}

/// Maximum bytes read from a program's data file.
const MAX_DATA_LEN: u64 = 64 << 20;

/// Reads a file and removes it; `None` if it does not exist. The content is untrusted, so a link, a pipe and an
/// oversized file count as missing.
fn take_file(path: &Path) -> Result<Option<Vec<u8>>> {
    let Ok(Ok(bytes)) = read_itself(path, MAX_DATA_LEN) else {
        return Ok(None);
    };
    std::fs::remove_file(path)?;
    Ok(Some(bytes))
}

/// Formats consecutive lines as ranges: `3-5`, `9`.
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
    fn ranges_join_consecutive_lines() {
        assert_eq!(ranges([3, 4, 5, 9, 11, 12]).join(","), "3-5,9,11-12");
        assert_eq!(ranges([]).join(","), "");
    }
}
