//! Tests across crates, in one binary. Tests of one module are beside it, those of one crate in its own folder `tests/it`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

/// What users run and see: the commands, the server, approaches, attacks. A new test goes into the file of its command or
/// subject.
mod product;
/// What holds for the repository itself: layers, lists, generated pages, the guide, deployment files, dependencies.
mod repository;
/// What the others share: the program in a folder of its own, a server that plays another's part, the base image.
mod support;
