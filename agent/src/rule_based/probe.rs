//! Runs an issue's code on the old code, statement by statement, and reads the results.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use super::steps::Step;
use crate::outcome::DATA_MARK;

/// Time limit of one statement in seconds.
const SECONDS: u32 = 20;
const SCRIPT: &str = concat!(include_str!("probe/effects.py"), include_str!("probe.py"));

/// The results of the steps.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct Probe {
    /// Top-level packages of the repository.
    pub packages: Vec<String>,
    /// Names that were not found anywhere.
    pub missing: Vec<String>,
    /// Package whose symbols replace undefined names.
    #[serde(default)]
    pub symbolic: Option<String>,
    /// Undefined names, each with the line that binds it.
    pub added: Vec<(String, String)>,
    /// Line length for which black or ruff is configured.
    #[serde(default)]
    pub columns: Option<usize>,
    pub statements: Vec<Statement>,
}

/// Whether a statement changes more than the names that it binds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Effect {
    #[default]
    None,
    /// Possibly; the statement is there for its value.
    Possible,
    /// Certainly; nothing else explains the statement.
    Certain,
}

/// The function that a statement calls.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Subject {
    /// Class, if it is a method, and function; empty if there is no call.
    pub names: Vec<String>,
    pub keywords: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Statement {
    pub step: usize,
    /// Source as it ran, repaired if necessary.
    pub source: String,
    /// Python's name for it (`Expr`, `Assign` …); `Print` for a call of `print` with one argument.
    pub kind: String,
    /// Argument of a `Print`.
    pub shown: Option<String>,
    /// Whether it is the last statement of its step.
    pub last: bool,
    pub reads: Vec<String>,
    pub writes: Vec<String>,
    pub effect: Effect,
    /// Whether it does the same without the earlier statements whose effect is only possible.
    pub apart: bool,
    /// Index of the statement whose exception kept it from running, or from finding a name.
    pub blocked: Option<usize>,
    /// Lines that do the same with pytest's `monkeypatch`; may be empty.
    pub patched: Vec<String>,
    /// Parts of the process that it changed: `environ`, `folder`.
    pub leaks: Vec<String>,
    pub subject: Subject,
    /// Module and name of each read from a star import.
    pub stars: Vec<(String, String)>,
    /// Names that it uses, with the files of the repository that define them.
    pub homes: Vec<(String, String)>,
    /// Syntax error, if it does not parse.
    pub syntax: Option<String>,
    pub raised: Option<ProbedException>,
    pub in_repr: bool,
    pub slow: bool,
    pub value: Option<String>,
    #[serde(rename = "type")]
    pub kind_of_value: String,
    pub none: bool,
    /// Whether it prints, itself or as a `Print`.
    pub prints: bool,
    /// One check for each text that the whole block of code should print, after its last statement.
    pub printed_checks: Vec<Check>,
    /// One check for each expected text.
    pub checks: Vec<Check>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct ProbedException {
    #[serde(rename = "type")]
    pub exception: String,
    pub message: String,
    /// Whether the statement itself raised it, not a function that it called.
    pub own: bool,
    /// Whether the cause is a missing network, or a file that only the author of the issue has.
    #[serde(default)]
    pub outside: bool,
    /// File and function of the repository's frames, outermost first.
    pub frames: Vec<(String, String)>,
    pub bases: Vec<String>,
}

/// A comparison of a text in the issue with the actual result.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Check {
    /// Form in which both are equal: `repr`, `str`, `pretty`, `printed`.
    pub same: Option<String>,
    pub exact: bool,
    /// Whether the lines are equal except for trailing spaces and common indentation.
    pub lines: bool,
    /// Whether they are equal except for white space at the start and at the end.
    pub ends: bool,
    /// Whether they are equal except for spaces, and for white space at the start and at the end.
    pub spaces: bool,
    /// Whether the actual text starts or ends with a newline, which a block of an issue does not show.
    pub padded: bool,
    /// Whether the actual text contains it.
    pub part: bool,
    pub evaluates: bool,
    pub equal: Option<bool>,
    /// Type of the text's value.
    pub kind: String,
    /// Whether the text names an exception's class.
    pub exception: bool,
}

/// Returns the script for `run_python`. `imports` binds names that are known by now.
pub(super) fn script(
    steps: &[Step],
    exceptions: &[String],
    imports: &BTreeMap<String, String>,
) -> String {
    let steps: Vec<_> = steps
        .iter()
        .map(|step| {
            let texts: Vec<&str> = step.outputs.iter().map(|s| s.text.as_str()).chain(exceptions.iter().map(String::as_str)).collect();
            let printed: Vec<&str> = step.printed.iter().map(|s| s.text.as_str()).collect();
            let block = step.is_of_code().then_some(step.block);
            json!({"source": step.source, "prompt": step.prompt, "number": step.number, "texts": texts, "stated": !step.outputs.is_empty(),
                "block": block, "printed": printed})
        })
        .collect();
    let case = json!({"steps": steps, "imports": imports, "seconds": SECONDS}).to_string();
    // A JSON string is also a Python string.
    let literal = serde_json::Value::String(case);
    format!("import json\nCASE = json.loads({literal})\n{SCRIPT}")
}

/// Reads the answer of `run_python`.
pub(super) fn read(answer: &str) -> Option<Probe> {
    let line = answer
        .lines()
        .rev()
        .find_map(|l| l.strip_prefix(DATA_MARK))?;
    serde_json::from_str(line).ok()
}
