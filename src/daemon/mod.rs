//! What testwright serves to other programs: the HTTP API, and the tools over MCP.

pub mod access;
pub mod allow_list;
pub mod api;
pub mod authentication;
mod cell_worker;
pub mod client;
pub mod comparison;
pub mod embedded;
mod github;
mod http;
pub mod matrix;
pub mod mcp;
mod origin;
mod pages;
mod probe_http;
mod probes;
pub mod queue;
mod recovery;
mod registry;
pub mod request;
mod retention;
pub mod server;
mod telemetry;
mod trajectory_lines;
pub mod worker;
