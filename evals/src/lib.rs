//! Evaluation of tests: datasets of issues (each with a repository at a base commit), predictions for them, and their grading.
//!
//! This crate does not depend on agents, approaches or models: the harness reads predictions.

#![warn(missing_docs)]

// The sample results name this crate, in its own tests as in other programs.
#[cfg(test)]
extern crate self as testwright_evals;

pub mod cases;
pub mod clover;
pub mod dataset;
pub mod document;
pub mod folder;
pub mod harness;
mod large_stack;
pub mod machine;
pub mod merge;
pub mod mine;
pub mod predictions;
mod records;
pub mod report;
pub mod result;
pub mod selection;
pub mod statistics;
pub mod untrusted_text;
pub mod verdict;
pub mod verify;

pub use dataset::{Dataset, Instance};
pub use records::{PARQUET, ParquetFileError, Problem, RecordsError, parquet_main};
pub use result::InstanceResult;
