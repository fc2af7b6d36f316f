//! The loop: ask the model, carry out what it calls, write it down, until the gate accepts a test or a budget
//! ends. [`drive`] is the loop itself; [`Run`] is what a step needs.
//!
//! Invariants: budgets are checked before they are spent; messages are append-only; every step is on disk
//! before the next begins; the way a run ended is data ([`Outcome`]). A run that goes on after a crash plays its
//! recorded events through the same code, so no state has to be saved apart from the trajectory.

pub mod budget;
mod compaction;
mod drive;
mod failures;
pub mod outcome;
mod past;
mod progress;
mod run;
mod submit;

pub use budget::{Budget, Limits, Spent};
pub(crate) use drive::prompt;
pub use drive::{Hook, Manner, NoHook, OnSubmit, drive};
pub use outcome::{Limit, Outcome};
pub use past::{Difference, Past};
pub use progress::{Progress, Silent, StepView};
pub use run::{Run, RunParts};
pub use submit::Scrutiny;
