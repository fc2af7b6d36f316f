//! Tests across crates, in one binary. Unit tests are beside their module; tests of one crate are in its folder
//! `tests/it`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

/// User-visible behaviour: the commands, the server, approaches, attacks. Add a new test to the file of its command or
/// subject.
mod product;
/// Rules for the repository itself: layers, lists, generated pages, the guide, deployment files, dependencies.
mod repository;
/// Shared code: a temporary folder for the program, a mock HTTP server, the base image.
mod support;
