//! Serves probes and Prometheus on a separate address, where other machines can reach them.

use std::net::SocketAddr;

use axum::routing::get;
use axum::{Router, middleware};
use tokio::net::TcpListener;

use super::api::{health, metrics};
use super::connections::{self, ConnectionLimits};
use super::probes::Probes;
use super::problem;
use super::response_headers;
use testwright_config::error::{Error, Result};
use testwright_config::stop_signal::{StopSignal, stopped};

/// Maximum concurrent connections of probes and Prometheus.
const MAX_CONNECTIONS: usize = 16;

/// Serves until `end`, if there is a listener. The responses contain no secrets, and these routes accept no work.
pub(crate) async fn serve(listener: Option<TcpListener>, probes: Probes, end: StopSignal) {
    let Some(listener) = listener else {
        return;
    };
    let router = Router::new()
        .route("/metrics", get(metrics::show))
        .route("/v1/health", get(health::health))
        .route("/v1/ready", get(health::ready))
        .fallback(problem::not_found)
        .layer(middleware::from_fn(response_headers::finish_response))
        .with_state(probes);
    let limits = ConnectionLimits::new(MAX_CONNECTIONS);
    connections::serve(listener, router, limits, stopped(end)).await;
}

/// Binds an address; `flag` is the command-line flag that sets it.
pub(crate) async fn bind(address: SocketAddr, flag: &str) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let failed = Error::io(format!("listen on {address}"), &error);
        match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                failed.hint(format!("choose another address with {flag}"))
            }
            _ => failed,
        }
    })
}
