//! Integration tests of the sandboxes, in one binary.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[cfg(target_os = "linux")]
mod amendments;
mod base_image;
mod conformance;
mod coverage;
mod docker;
#[cfg(target_os = "linux")]
mod dockerfile;
#[cfg(target_os = "linux")]
mod environment;
#[cfg(target_os = "linux")]
mod eviction;
#[cfg(target_os = "linux")]
mod idle;
#[cfg(target_os = "linux")]
mod image_pulls;
#[cfg(target_os = "linux")]
mod index_server;
mod install;
#[cfg(target_os = "linux")]
mod local;
#[cfg(target_os = "linux")]
mod place;
#[cfg(target_os = "linux")]
mod security;
#[cfg(target_os = "linux")]
mod sharing;
mod smoke_test;
