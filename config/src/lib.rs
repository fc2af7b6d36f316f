//! Settings and errors, shared by all crates above the sandboxes.
//!
//! - [`settings`]: every setting, its sources and its value.
//! - [`error`]: the error of the command line and its exit codes.
//! - [`lock`]: locking a mutex, poisoned or not.
//! - [`stop_signal`]: a shutdown signal for long-running tasks.

#![warn(missing_docs)]

pub mod settings;

pub mod error;
pub mod stop_signal;

pub use testwright_sandboxes::hex;
pub use testwright_sandboxes::mutex as lock;
