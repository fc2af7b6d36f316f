//! Runs the code of an issue on the old code, statement by statement, and reads what each did.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use super::steps::Step;

/// Seconds that one statement may take.
const SECONDS: u32 = 20;
const SCRIPT: &str = include_str!("probe.py");
const MARK: &str = "@@probe ";

/// What came of the steps.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Probe {
    /// Top-level packages of the repository.
    pub packages: Vec<String>,
    /// Names that could not be found anywhere.
    pub missing: Vec<String>,
    /// The package whose symbols stand for undefined names.
    #[serde(default)]
    pub symbolic: Option<String>,
    /// Names that were not defined, each with the line that binds it.
    pub added: Vec<(String, String)>,
    pub statements: Vec<Statement>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Statement {
    pub step: usize,
    /// As it ran, mended where it had to be.
    pub source: String,
    /// Python's own name for it (`Expr`, `Assign` …); `Print` for a call of `print` with one argument.
    pub kind: String,
    /// What a `Print` prints.
    pub shown: Option<String>,
    /// The last statement of its step.
    pub last: bool,
    pub reads: Vec<String>,
    pub writes: Vec<String>,
    /// Module and name of what it reads from a star import.
    pub stars: Vec<(String, String)>,
    /// Names that it uses, with the files of the repository that define them.
    pub homes: Vec<(String, String)>,
    /// Why it does not parse.
    pub syntax: Option<String>,
    pub raised: Option<Raising>,
    pub in_repr: bool,
    pub slow: bool,
    pub value: Option<String>,
    #[serde(rename = "type")]
    pub kind_of_value: String,
    pub none: bool,
    pub printed: String,
    pub warned: Vec<(String, String)>,
    /// One for each text that was asked about.
    pub checks: Vec<Check>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Raising {
    #[serde(rename = "type")]
    pub exception: String,
    pub message: String,
    /// Raised by the statement itself, not by something that it called.
    pub own: bool,
    /// For want of the network, or of a file that only the author of the issue has.
    #[serde(default)]
    pub outside: bool,
    /// File and function of the repository's frames, outermost first.
    pub frames: Vec<(String, String)>,
    pub bases: Vec<String>,
}

/// How a text of the issue stands to what came.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Check {
    /// In which form they are the same: `repr`, `str`, `pretty`, `printed`.
    pub same: Option<String>,
    pub exact: bool,
    /// The lines are the same but for blanks at their ends and before all of them.
    pub lines: bool,
    pub evaluates: bool,
    pub equal: Option<bool>,
    /// The type of the text's value.
    pub kind: String,
    /// The text names an exception's class.
    pub exception: bool,
}

/// The script for `run_python`. `imports` binds names that are known by now.
pub fn script(steps: &[Step], wanted: &[String], imports: &BTreeMap<String, String>) -> String {
    let steps: Vec<_> = steps
        .iter()
        .map(|step| {
            let texts: Vec<&str> = step.outputs.iter().map(|s| s.text.as_str()).chain(wanted.iter().map(String::as_str)).collect();
            json!({"source": step.source, "prompt": step.prompt, "number": step.number, "texts": texts})
        })
        .collect();
    let case = json!({"steps": steps, "imports": imports, "seconds": SECONDS}).to_string();
    // A string in JSON is one in Python.
    let literal = serde_json::Value::String(case);
    format!("import json\nCASE = json.loads({literal})\n{SCRIPT}")
}

/// Reads the answer of `run_python`.
pub fn read(answer: &str) -> Option<Probe> {
    let line = answer.lines().rev().find_map(|l| l.strip_prefix(MARK))?;
    serde_json::from_str(line).ok()
}
