//! Settings and errors, shared by all crates above the sandboxes.
//!
//! - [`settings`]: every setting, where it may be set, and what it was set to.
//! - [`error`]: the error of the command line and its exit codes.
//! - [`stop_signal`]: a flag that tells long work to stop.

pub mod settings;

pub mod error;
pub mod stop_signal;

pub use testwright_sandboxes::hex;
