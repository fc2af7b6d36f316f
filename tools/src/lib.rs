//! The typed tools that a model works with, and the analysis of Python code behind them.
//!
//! Each tool has one file (under `tools/`), one list names them all ([`registry`]), and one program serves
//! them inside a sandbox (`toolbox`, see [`server`]). The code analysis ([`python`]) is a library in its
//! own right: the grader uses it too. This crate knows nothing about sandboxes, models or approaches, and
//! it opens no network connection.

#![warn(missing_docs)]

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
mod similarity;
pub mod split_mix;
pub mod test_run;
#[cfg(test)]
mod testing;
pub mod tool;
pub mod tools;
mod visible;
pub mod workspace;

/// SHA-256 of the sources and of the versions of all dependencies: toolboxes with the same digest behave the same.
pub const DIGEST: &str = env!("TOOLBOX_DIGEST");

pub use visible::visible;
