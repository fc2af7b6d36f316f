//! Everything that is tested across module boundaries, in one binary.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod action;
mod architecture;
#[path = "../../sandboxes/tests/it/base_image.rs"]
mod base_image;
mod cases;
mod clover;
mod compare;
mod cover;
mod daemon;
mod deployment;
mod diagnostics;
mod drafts;
mod eval;
mod first_requests;
mod guide;
mod hostile;
mod issues;
mod lists;
mod manual;
mod messages;
mod mine;
mod pipelines;
mod program;
mod review;
mod runs;
mod samples;
mod select;
mod server;
mod supply_chain;
