//! The lines that `plugin.py` writes.

use serde::Deserialize;

use super::report::{Phase, WarningLine};

#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// pytest got as far as starting a session: its options and the first conftest files were good.
    Session {},
    /// A module, a package or a conftest file that could not be collected.
    CollectionError {
        id: String,
        failure: RawFailure,
    },
    CollectionSkipped {
        id: String,
        reason: String,
    },
    /// Which of the ids asked for are not among what was collected.
    Asked {
        missing: Vec<String>,
    },
    /// Left out by `-k` or `-m`.
    Deselected {
        ids: Vec<String>,
    },
    /// What is going to run, in that order.
    Collected {
        ids: Vec<String>,
    },
    Start {
        id: String,
    },
    Phase(Box<RawPhase>),
    Executed {
        id: String,
        files: Vec<String>,
    },
    End {
        id: String,
    },
    /// The time for the tests that come after the first ones was over; pytest was ended in the midst of this one.
    Limit {
        id: Option<String>,
    },
    InternalError {
        text: String,
    },
    /// Those of the repository's own code.
    Warnings {
        warnings: Vec<WarningLine>,
    },
    /// What decides how tests come out was replaced while they ran.
    Tampered {
        what: String,
    },
    /// Modules that were imported while tests ran, with where they come from.
    Imported {
        modules: Vec<(String, String)>,
    },
    Finish {},
}

#[derive(Debug, Deserialize)]
pub struct RawPhase {
    pub id: String,
    pub when: Phase,
    /// `passed`, `failed`, `skipped` (also for xfailed), or what plugins make of it, e.g. `rerun`.
    pub outcome: String,
    /// Marked as expected to fail.
    pub xfail: bool,
    /// Strictly expected to fail, and passed.
    pub unexpected: bool,
    pub seconds: f64,
    pub failure: Option<RawFailure>,
    /// What was captured, of a failure; why, of a test that was skipped.
    pub captured: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub struct RawFailure {
    pub exception: String,
    /// Names of the exception's class and its bases.
    pub kinds: Vec<String>,
    pub message: String,
    /// The exception's `name` attribute (Python 3.10 and later fill it for names and attributes).
    pub name: Option<String>,
    pub cause: Option<String>,
    pub frames: Vec<RawFrame>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct RawFrame {
    pub base: Base,
    pub file: String,
    pub line: u32,
    pub function: String,
    pub code: String,
    /// It set `__tracebackhide__`: a helper that speaks for its caller.
    pub hidden: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Base {
    Workspace,
    External,
}

/// Reads a report as far as it goes: a process that died may leave its last line cut short, or write none.
pub fn read(report: &[u8]) -> Vec<Event> {
    report
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| line.ends_with(b"\n"))
        .map_while(|line| serde_json::from_str(&String::from_utf8_lossy(line)).ok())
        .collect()
}
