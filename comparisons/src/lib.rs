//! Comparing approaches, models and predictions.
//!
//! - [`compare`]: runs approaches on a dataset and reports on them.
//! - [`grading`]: grades predictions with the harness.
//! - [`check`]: checks predictions with the gate, without golden patches.
//! - [`clover`]: asks models CLOVER's problems and grades the answers.
//! - [`inspect`]: a run or a comparison as text.
//! - [`selection`]: tables of patches that tests were tried on.
//! - [`record_file`]: an append-only file of JSON records that several processes write.

#![warn(missing_docs)]

pub mod compare;

pub mod check;
pub mod clover;
pub mod grading;
pub mod inspect;
mod model_work;
pub mod record_file;
pub mod selection;
