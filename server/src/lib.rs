//! The testwright server: the HTTP API, web pages, the GitHub webhook, MCP tools, and workers for queued jobs.

#![warn(missing_docs)]

pub mod access;
pub mod allow_list;
pub mod api;
mod attempt;
pub mod authentication;
pub mod batch;
pub mod client;
pub mod comparison;
mod connections;
pub mod descriptors;
pub mod embedded;
pub mod fields;
mod github;
pub mod grading;
mod harnesses;
pub mod heartbeat;
mod http;
pub mod jobs;
mod json;
mod machine;
pub mod matrix;
pub mod mcp;
mod origin;
mod owner_limits;
mod pages;
mod prepared_cell;
mod probe_http;
mod probes;
mod problem;
pub mod request;
mod request_body;
pub mod reserved_owners;
mod response_headers;
mod retention;
pub mod run_files;
mod sandbox_limits;
mod sandbox_place;
pub mod server;
mod server_settings;
mod state;
mod store_sink;
mod telemetry;
pub mod worker;

pub mod artifacts;
pub mod disk_usage;
pub mod store;

pub use github::{draft_pull_request, expected_failure};
