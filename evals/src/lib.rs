//! Evaluation: datasets of issues with a repository at a base commit, predictions for them, and how they are graded.
//!
//! Nothing here knows what an agent, an approach or a model is: the harness reads predictions.

// The made-up results are used by tests in here and by programs outside.
#[cfg(test)]
extern crate self as testwright_evals;

pub mod cases;
pub mod clover;
pub mod dataset;
pub mod document;
pub mod folder;
pub mod foreign_text;
pub mod harness;
pub mod mine;
pub mod predictions;
mod records;
pub mod report;
pub mod result;
pub mod selection;
pub mod statistics;
pub mod verdict;
pub mod verify;

pub use dataset::{Dataset, Instance};
pub use records::{PARQUET, ParquetFileError, Problem, RecordsError, parquet_main};
pub use result::InstanceResult;
