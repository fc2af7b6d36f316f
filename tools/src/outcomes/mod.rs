//! Test outcomes. Programs and plugins record events outside the tested tree (see `record.py`), so printed text cannot
//! forge an outcome. The events become a report, which has the same form for every runner.

mod assemble;
mod classify;
mod events;
mod normalize;
pub mod report;
mod subprocess_trace;
pub mod text;

pub(crate) use assemble::last_line;
pub use assemble::{Session, USAGE_EXIT_CODE, covers, file_of, files_of, merge_reports, seconds};
pub use classify::Classifier;
pub use events::{CollectedItem, PluginEvent, read};
pub use normalize::{normalize, with_relative_paths};
pub use subprocess_trace::{HOOK, write_hook};

/// Names of the recording code. A test that names one of them targets the record, not the code under test.
pub const RECORDER_NAMES: &[&str] = &[
    "testwright_record",
    "testwright_pytest",
    "testwright_trace",
    "testwright_extensions",
    "testwright_collection_failure",
    "testwright_guard",
    "testwright_program",
    "testwright_process_state",
    "testwright_fork_server",
    "testwright_forking",
    "testwright_children",
    "testwright_test_begins",
    "testwright_result",
    "TESTWRIGHT_RECORD",
    "TESTWRIGHT_COVERAGE",
    "testwright_coverage",
];
