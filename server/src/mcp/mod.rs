//! MCP for other agents, on stdio and over streamable HTTP: testwright's own services as tools, and the raw tools of a
//! session.

mod cases;
mod check_patch;
mod check_test;
mod client;
mod cov;
mod event_text;
mod http;
mod message;
mod open_sessions;
mod progress;
mod raw_tools;
mod revise_test;
mod service_tool;
mod services;
mod session_end;
mod session_tools;
mod stdio;
mod verify;
mod write_failing_test;

use std::sync::Arc;

use super::api::ApiState;

pub use client::McpClient;
pub use http::router;
pub use open_sessions::{OpenSessions, SessionLimits};
pub use raw_tools::RawTools;
pub use stdio::serve_stdio;

/// State that all clients share.
pub struct McpParts {
    /// State of the API.
    pub api: ApiState,
    /// Open sessions of all clients.
    pub sessions: Arc<OpenSessions>,
}
