//! Tests of the toolbox and the test runners on small Python projects, with a real interpreter.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cover;
mod coverage;
mod hostile;
mod hostile_events;
mod hostile_names;
mod hostile_patches;
mod hostile_sources;
mod other_runners;
mod project;
mod runner;
mod toolbox;
