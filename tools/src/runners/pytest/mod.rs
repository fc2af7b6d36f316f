//! Runs pytest with a recording plugin.

mod command;
mod fork_server;
mod run;

pub(crate) use command::FORKING;
pub use fork_server::enable as enable_warm_runs;
pub(crate) use fork_server::{Control, Module, anonymous_file};
pub(super) use run::run;
