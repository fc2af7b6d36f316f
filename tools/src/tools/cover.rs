//! `cover`: shows which wanted lines still do not run, and which line decided that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contribution::named_or_contributed;
use super::line_numbers::{end_line, listed};
use super::run_pytest::deadline;
use crate::coverage::{Coverage, Measure};
use crate::outcomes::report::TestReport;
use crate::outcomes::text;
use crate::python::{DecidingLine, Module};
use crate::runners::{self, Options};
use crate::tool::{Context, Reply, Result, Tool, ToolError};

/// Maximum number of missed ranges that are shown.
const MAX_SHOWN: usize = 40;

/// A tool that runs tests and shows which wanted lines they miss.
pub struct Cover;

/// Arguments of `cover`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoverArgs {
    /// Node ids or files. Default: what you added or changed.
    #[serde(default)]
    #[schemars(example = ["tests/test_module.py::test_empty"])]
    tests: Vec<String>,
}

/// Result data for programs.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct CoverResult {
    /// Outcomes of the tests.
    pub report: TestReport,
    /// Wanted statements that ran, by file.
    pub hit: BTreeMap<String, Vec<u32>>,
    /// Wanted statements that did not run, by file and line.
    pub missed: Vec<MissedLines>,
    /// The reason why more lines may have run.
    pub problem: Option<String>,
}

/// Consecutive wanted statements that did not run for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissedLines {
    /// Path relative to the workspace.
    pub file: String,
    /// First line, from 1.
    pub first: u32,
    /// Last line, inclusive.
    pub last: u32,
    /// The line that decided it, and its effect.
    pub by: Option<String>,
}

impl Tool for Cover {
    type Args = CoverArgs;
    type Data = CoverResult;
    const NAME: &'static str = "cover";
    const TITLE: &'static str = "Run tests for wanted lines";
    const DESCRIPTION: &'static str =
        "Run tests and see which of the wanted lines they still miss, and by which condition.";
    const SECONDS: u64 = 300;
    const RUNS_CODE: bool = true;
    const NEEDS_WANTED_LINES: bool = true;

    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>> {
        let Some(wanted_lines) = context.workspace.config().wanted.clone() else {
            return Err(ToolError::refused("There are no wanted lines in this run."));
        };
        let ids = named_or_contributed(context.workspace, &args.tests)?;
        let mut options = Options::with_deadline(deadline(context, None));
        options.whole_values.clone_from(&ids);
        let measure = Measure {
            package: wanted_lines.package,
            files: wanted_lines.lines.keys().cloned().collect(),
            ..Measure::default()
        };
        let checkout = context.workspace.checkout();
        let ran = runners::run_in(checkout, &ids, &options, Some(&measure), None)?;
        let coverage = ran.coverage.unwrap_or_default();
        let mut covered = CoverResult {
            problem: coverage.problem.clone(),
            report: ran.report,
            ..CoverResult::default()
        };
        for (file, lines) in &wanted_lines.lines {
            let source = context.workspace.read_text(Path::new(file))?;
            covered.add(file, &Module::parse(source), lines, &coverage);
        }
        Ok(Reply::new(covered.text(), covered))
    }
}

impl CoverResult {
    fn add(
        &mut self,
        file: &str,
        module: &Module,
        target_lines: &BTreeSet<u32>,
        coverage: &Coverage,
    ) {
        let ran = coverage.files.get(file).cloned().unwrap_or_default();
        let executed: BTreeSet<usize> = ran.executed.iter().map(|line| *line as usize).collect();
        let is_run = |line: &u32| ran.executed.binary_search(line).is_ok();
        let is_statement = |line: &&u32| {
            // If no run finished, the statements of the file are unknown.
            ran.statements.is_empty() || ran.statements.binary_search(line).is_ok()
        };
        let mut previous = None;
        for line in target_lines.iter().filter(is_statement) {
            if is_run(line) {
                self.hit.entry(file.to_owned()).or_default().push(*line);
                previous = None;
                continue;
            }
            let by = module.deciding_line(*line as usize, &executed);
            let by = by.map(|by| described(&by));
            match self.missed.last_mut() {
                Some(last) if previous == Some(file) && last.by == by => last.last = *line,
                _ => self.missed.push(MissedLines {
                    file: file.to_owned(),
                    first: *line,
                    last: *line,
                    by,
                }),
            }
            previous = Some(file);
        }
    }

    fn text(&self) -> String {
        let mut out = text::text(&self.report);
        end_line(&mut out);
        if let Some(problem) = &self.problem {
            out.push_str(&format!("More lines may have run: {problem}.\n"));
        }
        if self.missed.is_empty() {
            out.push_str("All wanted lines run.\n");
            return out;
        }
        let hit: usize = self.hit.values().map(Vec::len).sum();
        out.push_str(&format!("Wanted lines that run: {hit}. Still missed:\n"));
        out + &listed(&self.missed, MAX_SHOWN, |more| format!("… {more} more."))
    }
}

/// Formats as `a.py:3–6: line 2 `if x` was never true`.
impl std::fmt::Display for MissedLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let by = self.by.as_deref().unwrap_or("nothing around it ran");
        match self.first == self.last {
            true => write!(f, "{}:{}: {by}", self.file, self.first),
            false => write!(f, "{}:{}–{}: {by}", self.file, self.first, self.last),
        }
    }
}

fn described(by: &DecidingLine) -> String {
    format!("line {} `{}` {}", by.line, by.code, by.what)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::coverage::CoveredLines;

    #[test]
    fn missed_lines_name_their_deciding_line() {
        let source = "def f(x):\n    if x:\n        y = 1\n        z = (\n            2)\n        return y + z\n    return 0\n";
        let ran = CoveredLines {
            statements: vec![1, 2, 3, 4, 6, 7],
            executed: vec![1, 2, 7],
            ..CoveredLines::default()
        };
        let coverage = Coverage {
            files: [("a.py".to_owned(), ran)].into(),
            ..Coverage::default()
        };
        let mut covered = CoverResult::default();
        covered.add(
            "a.py",
            &Module::parse(source),
            &(2..=7).collect(),
            &coverage,
        );
        assert_eq!(covered.hit["a.py"], [2, 7]);
        let [missed] = covered.missed.as_slice() else {
            panic!("{:?}", covered.missed)
        };
        assert_eq!((missed.first, missed.last), (3, 6));
        assert_eq!(missed.by.as_deref(), Some("line 2 `if x` was never true"));
    }
}
