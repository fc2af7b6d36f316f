//! Places where tools run, and the environments that are built in them.
//!
//! A [`Sandbox`] is a running place: files go in and out, processes run in it with byte streams to
//! the host, it can be forked for a trial and saved as a starting point. A [`Backend`] makes them:
//! [`docker`] (any Docker-compatible engine) and [`local`] (Linux namespaces, or Landlock and seccomp).
//! An [`environment`] is built from a [`recipe`] with nothing but this trait, so every backend builds the
//! same way. Nothing here knows what a tool, a model or a grader is.

pub mod coverage;
pub mod docker;
pub mod egress;
pub mod environment;
pub mod error;
pub mod hex;
pub mod http_client;
pub mod local;
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
pub use sandbox::{
    Backend, Command, Limits, Paths, Process, Sandbox, SandboxInfo, SandboxSource, Spec,
};
