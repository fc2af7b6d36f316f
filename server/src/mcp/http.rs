//! Streamable HTTP at `/mcp`: assigns requests to sessions and validates their messages.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, RequestId};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;

use super::message::{self, Unreadable};
use super::session_end::{SessionEnd, SessionEnder};
use super::{McpClient, McpParts, OpenSessions};
use crate::authentication::Caller;
use crate::fields::MAX_REQUEST_BYTES;
use crate::owner_limits::{OwnerLimits, OwnerPermit};
use crate::state::ApiState;
use testwright_config::lock::lock;
use testwright_config::stop_signal::stopped;

/// Time without messages after which a session ends.
const KEEP_ALIVE: Duration = Duration::from_secs(2 * 60 * 60);
/// Maximum clients of one owner: a quarter of all.
const MAX_CLIENTS_OF_OWNER: usize = 64;
const SESSION_ID: &str = "mcp-session-id";

/// Returns the route `/mcp`, for MCP clients over HTTP.
pub fn router(parts: Arc<McpParts>) -> Router<ApiState> {
    let hosts: Vec<String> = parts.api.access.hosts().map(str::to_owned).collect();
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .with_max_request_body_bytes(MAX_REQUEST_BYTES);
    let (token, stop) = (config.cancellation_token.clone(), parts.api.stop.clone());
    tokio::spawn(async move {
        stopped(stop).await;
        token.cancel();
    });
    let mut connections = LocalSessionManager::default();
    connections.session_config.keep_alive = Some(KEEP_ALIVE);
    let connections = Arc::new(connections);
    let sandboxes = parts.sessions.clone();
    let client = move || McpClient::of_http(parts.clone());
    let service = StreamableHttpService::new(client, connections.clone(), config);
    let sessions = Arc::new(HttpSessions {
        connections,
        sandboxes,
        clients: OwnerLimits::new(MAX_CLIENTS_OF_OWNER),
        open: Mutex::default(),
    });
    Router::new()
        .route_service("/mcp", service)
        .layer(middleware::from_fn_with_state(sessions, check))
}

/// The sessions of all clients, each with the owner of the token that started it.
struct HttpSessions {
    connections: Arc<LocalSessionManager>,
    sandboxes: Arc<OpenSessions>,
    clients: OwnerLimits,
    open: Mutex<HashMap<String, HttpSession>>,
}

struct HttpSession {
    owner: String,
    /// Guard that counts the client until the session is removed.
    _client: OwnerPermit,
    running: Arc<RunningIds>,
    /// Guard that ends the session when dropped.
    end: SessionEnder,
}

impl HttpSessions {
    /// Admits a client that starts a session.
    ///
    /// # Errors
    ///
    /// Fails with a message if there are too many sessions.
    async fn admit(&self, owner: &str) -> Result<OwnerPermit, String> {
        // Sessions can also end without a request, for example by timeout.
        let connections = self.connections.sessions.read().await;
        lock(&self.open).retain(|id, _| connections.contains_key(id.as_str()));
        drop(connections);
        if self.sandboxes.has_all_clients() {
            return Err("too many sessions are open: try again later".to_owned());
        }
        self.clients.try_acquire(owner).map_err(|_| {
            format!(
                "your tokens already have {MAX_CLIENTS_OF_OWNER} sessions, the maximum for one owner: end a session, or try \
                 again later"
            )
        })
    }

    fn add(&self, id: &str, owner: String, client: OwnerPermit) {
        let session = HttpSession {
            owner,
            _client: client,
            running: Arc::default(),
            end: SessionEnder::default(),
        };
        lock(&self.open).insert(id.to_owned(), session);
    }

    /// Returns the session's end and its running requests; `None` if there is no such session, or another owner has it.
    fn find(&self, id: &str, owner: &str) -> Option<(SessionEnd, Arc<RunningIds>)> {
        let open = lock(&self.open);
        let session = open.get(id).filter(|session| session.owner == owner)?;
        Some((session.end.watched(), session.running.clone()))
    }
}

/// Ids of the running requests of a session.
#[derive(Debug, Default)]
struct RunningIds(Mutex<HashSet<RequestId>>);

impl RunningIds {
    /// Registers a request; `None` if another request with this id is running.
    fn begin(self: Arc<Self>, id: &RequestId) -> Option<RunningId> {
        // Dropping a second guard for the id would remove the first one's entry.
        if !lock(&self.0).insert(id.clone()) {
            return None;
        }
        Some(RunningId(Arc::new(RunningIdGuard {
            id: id.clone(),
            all: self,
        })))
    }
}

/// Guard that accompanies a request until it was handled.
#[derive(Debug, Clone)]
struct RunningId(#[expect(dead_code, reason = "it is there to be dropped")] Arc<RunningIdGuard>);

#[derive(Debug)]
struct RunningIdGuard {
    id: RequestId,
    all: Arc<RunningIds>,
}

impl Drop for RunningIdGuard {
    fn drop(&mut self) {
        lock(&self.all.0).remove(&self.id);
    }
}

async fn check(
    State(sessions): State<Arc<HttpSessions>>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = request.extensions().get::<Caller>().cloned();
    let owner = caller.unwrap_or_default().owner;
    let id = session_id(request.headers());
    let mut running = None;
    if let Some(id) = &id {
        let Some((end, ids)) = sessions.find(id, &owner) else {
            return (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response();
        };
        request.extensions_mut().insert(end);
        running = Some(ids);
    }
    let mut message_id = None;
    if request.method() == Method::POST && is_json(request.headers()) {
        (request, message_id) = match checked_message(request, running).await {
            Ok(checked) => checked,
            Err(response) => return response,
        };
    }
    let mut new_client = None;
    if id.is_none() && request.method() == Method::POST {
        match sessions.admit(&owner).await {
            Ok(client) => new_client = Some(client),
            Err(why) => return busy(message_id, &why),
        }
    }
    let is_end = request.method() == Method::DELETE;
    let mut response = next.run(request).await;
    match id {
        Some(id) if is_end && response.status() == StatusCode::ACCEPTED => {
            lock(&sessions.open).remove(&id);
            // Clients treat "202 Accepted" as a failure.
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        Some(_) => {}
        None => {
            if let (Some(id), Some(client)) = (session_id(response.headers()), new_client) {
                sessions.add(&id, owner, client);
            }
        }
    }
    response
}

fn session_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(SESSION_ID)?;
    id.to_str().ok().map(str::to_owned)
}

/// Returns whether the content type is JSON. The library refuses other types.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let (kind, _) = kind.split_once(';').unwrap_or((kind, ""));
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// Validates the message. Returns the request with the message as it was parsed here, and the id of the message.
async fn checked_message(
    request: Request,
    running: Option<Arc<RunningIds>>,
) -> Result<(Request, Option<RequestId>), Response> {
    let (mut parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_REQUEST_BYTES).await else {
        return Err(StatusCode::PAYLOAD_TOO_LARGE.into_response());
    };
    let read = message::read(&body).map_err(|unreadable| refused(&unreadable))?;
    if let (Some(running), ClientJsonRpcMessage::Request(message)) = (running, &read.message) {
        let Some(running) = running.begin(&message.id) else {
            return Err(refused(&Unreadable::reused_id(&message.id)));
        };
        parts.extensions.insert(running);
    }
    let id = match read.message {
        ClientJsonRpcMessage::Request(message) => Some(message.id),
        _ => None,
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    let body = Body::from(read.json.to_string());
    Ok((Request::from_parts(parts, body), id))
}

/// Responds that there is no room for a client, in the format that MCP clients show.
fn busy(id: Option<RequestId>, why: &str) -> Response {
    let error = ErrorData::internal_error(why.to_owned(), None);
    let answer = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    let status = StatusCode::SERVICE_UNAVAILABLE;
    (status, [(header::RETRY_AFTER, "60")], axum::Json(answer)).into_response()
}

fn refused(unreadable: &Unreadable) -> Response {
    (StatusCode::BAD_REQUEST, axum::Json(unreadable.answer())).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_id_is_always_refused() {
        let ids = Arc::<RunningIds>::default();
        let id = RequestId::Number(1);
        let running = ids.clone().begin(&id);
        assert!(running.is_some());
        assert!(ids.clone().begin(&id).is_none());
        assert!(ids.clone().begin(&id).is_none());
        drop(running);
        assert!(ids.begin(&id).is_some());
    }
}
