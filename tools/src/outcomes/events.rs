//! Events that `plugin.py` records, one JSON line each.

use serde::Deserialize;

use super::report::{Phase, WarningLine};

/// An event of a test run.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum PluginEvent {
    /// pytest started a session: its options and the first conftest files are valid.
    Session {},
    /// A module, a package or a conftest file that could not be collected.
    CollectionError {
        /// Node id of the file or package; a conftest file's path.
        id: String,
        /// The exception that prevented the collection.
        failure: RawFailure,
    },
    /// A module that was skipped during collection.
    CollectionSkipped {
        /// Node id of the module.
        id: String,
        /// Reason of the skip, cut; may be empty.
        reason: String,
    },
    /// The requested ids that were not collected.
    Asked {
        /// Ids, files and folders as they were requested.
        missing: Vec<String>,
    },
    /// Tests left out by `-k` or `-m`.
    Deselected {
        /// Node ids of the tests.
        ids: Vec<String>,
    },
    /// The tests that will run, in order.
    Collected {
        /// Node ids of the tests.
        ids: Vec<String>,
    },
    /// The collected tests with their places, if nothing was to run.
    Items {
        /// The tests, in order.
        items: Vec<CollectedItem>,
    },
    /// A test started.
    Start {
        /// Node id of the test.
        id: String,
    },
    /// A phase of a test ended.
    Phase(Box<RawPhase>),
    /// pytest reported a phase, so it counts.
    Logged {
        /// Node id of the test.
        id: String,
        /// The reported phase.
        when: Phase,
        /// The outcome of the phase, or `rerun` if the test runs again.
        outcome: String,
    },
    /// The files that a traced test ran.
    Executed {
        /// Node id of the test.
        id: String,
        /// Files of the repository of which a function ran, relative to the workspace.
        files: Vec<String>,
    },
    /// A test ended, after its teardown.
    End {
        /// Node id of the test.
        id: String,
    },
    /// The time for the tests after the first ones was over; pytest was ended during this one.
    Limit {
        /// Node id of the running test; `None` between two tests.
        id: Option<String>,
    },
    /// An error of pytest or a plugin, not of a test.
    InternalError {
        /// Description of the error, cut.
        text: String,
        /// Whether the recorder itself raised it.
        #[serde(default)]
        own: bool,
    },
    /// Warnings from the repository's own code.
    Warnings {
        /// Distinct warnings with their counts.
        warnings: Vec<WarningLine>,
    },
    /// A test replaced code that decides outcomes.
    Tampered {
        /// The replaced code.
        what: String,
    },
    /// Modules that were imported while tests ran, with their origins.
    Imported {
        /// Names and origins of the modules.
        modules: Vec<(String, String)>,
    },
    /// The session ended. No event may follow.
    Finish {},
}

/// A collected test, as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CollectedItem {
    /// Node id.
    pub id: String,
    /// File that defines it, relative to the workspace; empty if unknown.
    pub file: String,
    /// Line in that file, from 1; 0 if unknown.
    pub line: usize,
}

/// A phase of a test, as recorded.
#[derive(Debug, Deserialize)]
pub struct RawPhase {
    pub id: String,
    pub when: Phase,
    /// `passed`, `failed`, `skipped` (also for xfailed), or a plugin's own word, e.g. `rerun`.
    pub outcome: String,
    /// Whether the test is marked as expected to fail.
    pub xfail: bool,
    /// Whether the test was strictly expected to fail, but passed.
    pub unexpected: bool,
    pub seconds: f64,
    pub failure: Option<RawFailure>,
    /// Captured output of a failure, or the reason for a skip.
    pub captured: String,
    /// Whether pytest reported the phase.
    #[serde(skip)]
    pub logged: bool,
}

/// An exception with its traceback, as recorded.
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

/// A frame of a traceback, as recorded.
#[derive(Debug, Clone, Deserialize)]
pub struct RawFrame {
    pub base: Base,
    pub file: String,
    pub line: u32,
    pub function: String,
    pub code: String,
    /// Whether the frame sets `__tracebackhide__`, as helpers do that report at their caller.
    pub hidden: bool,
}

/// Folder that the path of a frame is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Base {
    Workspace,
    External,
}

/// Reads the complete lines of a report. If the process died, the last line may be cut short or missing.
pub fn read(report: &[u8]) -> Vec<PluginEvent> {
    report
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| line.ends_with(b"\n"))
        .map_while(|line| serde_json::from_str(&String::from_utf8_lossy(line)).ok())
        .collect()
}
