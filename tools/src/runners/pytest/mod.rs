//! pytest, by a plugin of ours.

mod command;
mod run;

pub use run::run;
