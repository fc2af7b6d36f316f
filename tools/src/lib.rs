//! The typed tools that a model works with, and the analysis of Python code behind them.
//!
//! One file a tool (under `tools/`), one list of them ([`registry`]), one program that serves
//! them inside a sandbox (`toolbox`, see [`server`]). The code analysis ([`python`]) is a
//! library in its own right: the grader uses it too. Nothing here knows what a sandbox,
//! a model or an approach is, and nothing here opens a network connection.

pub mod cases;
pub mod config;
pub mod coverage;
mod error;
pub mod leakage;
mod metadata;
pub mod outcomes;
pub mod process;
pub mod program;
pub mod python;
pub mod registry;
pub mod runners;
pub mod server;
pub mod test_run;
#[cfg(test)]
mod testing;
pub mod tool;
pub mod tools;
mod visible;
pub mod workspace;

/// SHA-256 of the sources and of the versions of all that they use: a toolbox of the same digest does the same.
pub const DIGEST: &str = env!("TOOLBOX_DIGEST");

pub use visible::visible;
