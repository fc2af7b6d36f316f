//! The command line of testwright. It turns an issue of a Python repository into a test that fails on the old code for
//! the reason the issue states.

pub mod cli;
