//! Runs pytest with a recording plugin.

mod command;
mod fork_server;
mod run;

pub(crate) use command::FORKING;
pub use fork_server::enable as enable_warm_runs;
pub(crate) use fork_server::{Control, MAX_IMPORT_BYTES, MODULE_SYNTAX, Module};
pub(super) use run::run;
