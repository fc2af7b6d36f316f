//! Sandboxes in which tools run, and the environments that are built in them.
//!
//! In a running [`Sandbox`], files go in and out, and processes have byte streams to the host. It can be forked for a
//! trial and saved as a starting point.
//!
//! A [`Backend`] creates sandboxes: [`docker`] (any Docker-compatible engine) and [`local`] (Linux namespaces, or
//! Landlock and seccomp). An [`environment`] is built from a [`recipe`] through this trait alone, so every backend
//! builds in the same way. This crate knows nothing of tools, models or graders.

#![warn(missing_docs)]

pub mod coverage;
pub mod docker;
pub mod egress;
pub mod environment;
pub mod error;
pub mod hex;
pub mod http_client;
pub mod local;
pub mod mutex;
mod pattern;
pub mod plain_file;
pub mod private;
pub mod programs;
pub mod recipe;
pub mod repository;
pub mod sandbox;
pub mod starting;
pub mod system_calls;
pub mod uv;

pub use error::{SandboxError, Shortage};
pub use pattern::Pattern;
pub use sandbox::{
    Backend, Command, ImageBuild, Limits, Paths, Process, Sandbox, SandboxInfo, SandboxSource, Spec,
};
