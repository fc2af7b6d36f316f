//! Runs accepted tests on the releases of a repository and, by bisection, on its commits.
//!
//! A commit either fails for the reason for which the tests were accepted, or passes twice. In every other case nothing
//! is known about it: the tests cannot be applied, its environment cannot be built, the tests cannot be imported, or they
//! fail for another reason. Such commits are skipped, and never count as passing.

mod answer;
mod bisection;
mod investigation;
mod judge;
mod placement;
mod prober;
mod releases;
mod report;
mod repository_history;
mod version;

pub use answer::{Answer, Point, Verdict};
pub use investigation::{HistoryEvent, HistoryOptions, Part, Watcher, investigate};
pub use prober::AcceptedTests;
pub use report::{Change, Entry, HistoryReport};
