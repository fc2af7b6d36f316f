//! The folder of a run: `trajectory.jsonl` (append-only, on disk before the next step), `run.json`,
//! `evidence.json` and `test.patch` (written atomically).

mod entries;
pub mod entry_view;
pub mod event;
mod failure;
mod folder;
mod usage_timeline;
mod writable;

pub use entries::{CALL, Change, Entry, EntryKind, entries, entries_of};
pub use event::{
    EnvironmentRepair, Event, FileState, NoReplyCause, Purpose, RecordedAnswer, Started,
};
pub use folder::{EventSink, Events, MAX_TRAJECTORY, RunFolder, TrajectoryError};
pub use usage_timeline::{UsagePoint, usage_timeline};
pub use writable::check_writable;
