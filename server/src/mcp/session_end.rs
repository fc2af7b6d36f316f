//! The end of an HTTP session, which cancels its calls.

use axum::http::request::Parts;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use tokio::sync::watch;

/// A handle that ends the session when it is dropped.
#[derive(Debug, Default)]
pub(super) struct SessionEnder(watch::Sender<()>);

impl SessionEnder {
    pub(super) fn watched(&self) -> SessionEnd {
        SessionEnd(self.0.subscribe())
    }
}

/// A receiver for the end of the session, attached to each of its requests.
#[derive(Debug, Clone)]
pub(super) struct SessionEnd(watch::Receiver<()>);

/// Completes when the client cancels the call or ends the session.
pub(super) async fn cancelled(context: &RequestContext<RoleServer>) {
    let request = context.extensions.get::<Parts>();
    let end = request.and_then(|request| request.extensions.get::<SessionEnd>());
    let session_ended = async {
        match end.cloned() {
            // No value is ever sent: changed() returns once the sender is dropped.
            Some(SessionEnd(mut end)) => drop(end.changed().await),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = context.ct.cancelled() => {}
        () = session_ended => {}
    }
}
