//! CLOVER's three tasks (Xu et al. 2025, arXiv 2502.08806), generated from any Python repository.
//!
//! - I: fill the blank of an assertion.
//! - II: write a test that calls a given class or function.
//! - III: write a test that covers given blocks.
//!
//! Problems come from the repository's own tests, so each has a golden answer, which is verified before the problem is
//! accepted. All random choices use a seed: the same commits give the same problems, byte for byte. This module does
//! not depend on models; answers are texts.

pub mod answer;
pub mod blanks;
pub mod blocks;
pub mod build;
pub mod context;
pub mod evaluation;
pub mod extract;
pub mod folder;
pub mod forbidden_names;
pub mod hidden_tests;
pub mod manifest;
pub mod problem;
pub mod rejections;
pub mod report;
pub mod repository;
pub mod selection;
pub mod targets;

pub use problem::{Budget, Problem, Question, Task};

/// Version of the generator; changes whenever the same repository would give different problems or contexts.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/2");
