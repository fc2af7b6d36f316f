//! Runs pytest with a recording plugin.

mod command;
mod run;
mod warm;

pub(crate) use command::FORKING;
pub(super) use run::run;
pub use warm::enable as enable_warm_runs;
pub(crate) use warm::{Control, Module, anonymous_file};
