//! Evaluation: datasets of issues with a repository at a base commit.
//!
//! Nothing here knows what an agent, an approach or a model is.

pub mod dataset;

pub use dataset::{Dataset, DatasetError, Instance};
