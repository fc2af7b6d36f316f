//! The command line of testwright: from an issue and a Python repository to a test that fails on the old code for
//! the reason that the issue states.

pub mod cli;
