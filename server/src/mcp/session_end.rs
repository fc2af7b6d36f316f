//! The end of a session over HTTP, which each of its calls watches.

use axum::http::request::Parts;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use tokio::sync::watch;

/// Ends the session when it is dropped.
#[derive(Debug)]
pub struct SessionEnder(watch::Sender<()>);

impl Default for SessionEnder {
    fn default() -> Self {
        SessionEnder(watch::Sender::new(()))
    }
}

impl SessionEnder {
    pub fn watched(&self) -> SessionEnd {
        SessionEnd(self.0.subscribe())
    }
}

/// Goes with each request of a session.
#[derive(Debug, Clone)]
pub struct SessionEnd(watch::Receiver<()>);

/// Ends when the client cancels a call, or ends the session.
pub async fn cancelled(context: &RequestContext<RoleServer>) {
    let request = context.extensions.get::<Parts>();
    let end = request.and_then(|request| request.extensions.get::<SessionEnd>());
    let session_ended = async {
        match end.cloned() {
            // Nothing is ever sent: this ends with the sender.
            Some(SessionEnd(mut end)) => drop(end.changed().await),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = context.ct.cancelled() => {}
        () = session_ended => {}
    }
}
