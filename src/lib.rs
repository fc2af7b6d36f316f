//! testwright: from an issue and a Python repository to a test that fails on the old code for the
//! reason that the issue states.

pub mod error;
pub mod issues;
pub mod model;
pub mod settings;
