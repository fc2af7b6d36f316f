//! testwright: from an issue and a Python repository to a test that fails on the old code for the
//! reason that the issue states.

pub mod agent;
pub mod approaches;
pub mod artifacts;
pub mod backends;
pub mod cli;
pub mod clover;
pub mod compare;
pub mod daemon;
mod disk_usage;
pub mod error;
pub mod formats;
pub mod gate;
pub mod grading;
mod hex;
pub mod inspect;
pub mod issues;
pub mod job;
pub mod model;
mod own_prompts;
mod record_file;
pub mod retrieval;
pub mod rule_based;
pub mod session;
pub mod settings;
pub mod setup;
pub mod stop_signal;
pub mod store;
pub mod trajectory;
