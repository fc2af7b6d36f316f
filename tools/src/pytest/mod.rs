//! Running pytest and reading what happened, from a structured report that our plugin writes to a
//! file outside the tested tree: printed text cannot forge an outcome.

mod assemble;
mod classify;
mod command;
mod events;
pub mod report;
mod run;
mod stable;
pub mod text;

pub use assemble::{covers, file_of, join};
pub use run::{Options, run, run_measured};
pub use stable::stable;
