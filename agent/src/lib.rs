//! Turns an issue into a submitted test.
//!
//! A run, in reading order:
//!
//! - [`issues`]: reads an issue from a URL, a file or standard input.
//! - [`backends`]: lists the kinds of sandbox and connects to one.
//! - [`setup`]: builds the environment and starts sandboxes.
//! - [`environment_repair`]: lets a model amend a recipe that cannot be built.
//! - [`session`]: talks to the toolbox in a sandbox.
//! - [`approaches`]: lists the ways to write a test; [`formats`], [`retrieval`] and [`rule_based`] serve them.
//! - [`agent`]: the loop of model calls and tool calls.
//! - [`gate`]: decides whether a submitted test is accepted.
//! - [`check`]: checks a given test with the gate.
//! - [`history`]: runs accepted tests on releases and earlier and later commits.
//! - [`outcome`]: the outcome of a run.
//! - [`trajectory`]: records a run, so that it can be read, resumed and replayed.
//! - [`job`]: carries out one run from start to end.
//! - [`custom_prompts`]: reads custom prompts, which replace built-in ones.

#![warn(missing_docs)]

pub mod issues;

pub mod backends;
pub mod environment_repair;
pub mod session;
pub mod setup;

pub mod approaches;
pub mod formats;
pub mod retrieval;
pub mod rule_based;

pub mod agent;
pub mod check;
pub mod confidence;
pub mod gate;
pub mod history;
pub mod outcome;
pub mod trajectory;

pub mod custom_prompts;
pub mod job;
