//! The crate's integration tests, in one program.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod security;
