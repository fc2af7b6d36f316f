//! Tests of the toolbox and the test runners on small Python projects, with a real interpreter.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cover;
mod coverage;
mod other_runners;
mod project;
mod runner;
mod security;
mod security_collected;
mod security_events;
mod security_names;
mod security_patches;
mod security_sources;
mod toolbox;
