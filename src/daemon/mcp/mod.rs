//! MCP for other agents, on stdio and over streamable HTTP: testwright's own services as tools, and the raw tools of a
//! session, for whoever opens one.

mod cases;
mod check_patch;
mod check_test;
mod client;
mod cov;
mod open_sessions;
mod place;
mod progress;
mod raw_tools;
mod service_tool;
mod services;
mod session_tools;
mod verify;
mod write_failing_test;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::api::{ApiState, LONGEST_REQUEST};
use crate::stop_signal::stopped;

pub use client::McpClient;
pub use open_sessions::{OpenSessions, SessionLimits};
pub use raw_tools::RawTools;

/// A connection of HTTP on which nothing goes to and fro for so long has ended.
const KEEP_ALIVE: Duration = Duration::from_secs(2 * 60 * 60);

/// What every client works with.
pub struct McpParts {
    pub api: ApiState,
    pub sessions: Arc<OpenSessions>,
}

/// Streamable HTTP at `/mcp`.
pub fn router(parts: Arc<McpParts>) -> Router<ApiState> {
    let hosts: Vec<String> = parts.api.access.hosts().map(str::to_owned).collect();
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .with_max_request_body_bytes(LONGEST_REQUEST);
    let (token, stop) = (config.cancellation_token.clone(), parts.api.stop.clone());
    tokio::spawn(async move {
        stopped(stop).await;
        token.cancel();
    });
    let mut connections = LocalSessionManager::default();
    connections.session_config.keep_alive = Some(KEEP_ALIVE);
    let client = move || McpClient::of_http(parts.clone());
    let service = StreamableHttpService::new(client, Arc::new(connections), config);
    Router::new()
        .route_service("/mcp", service)
        .layer(middleware::from_fn(end_of_session))
}

/// What ends a connection has ended it: clients take "202 Accepted" for a failure.
async fn end_of_session(request: Request, next: Next) -> Response {
    let is_end = request.method() == Method::DELETE;
    let mut response = next.run(request).await;
    if is_end && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}
