//! What is told of requests.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;

use super::Telemetry;
use crate::store::{RunId, now};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Methods that are told apart: what else a client sends is `other`.
const METHODS: [Method; 6] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::HEAD,
];

/// What is asked for again and again, by machines: there are no spans of it.
const PROBES: [&str; 3] = ["/metrics", "/v1/health", "/v1/ready"];

/// Counts, logs and names each request. Its id is of the server's making: a client's could hold anything.
pub async fn observe_request(
    State(telemetry): State<Arc<Telemetry>>,
    mut request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let method = match METHODS.iter().find(|method| *method == request.method()) {
        Some(method) => method.as_str(),
        None => "other",
    };
    let matched = request.extensions().get::<MatchedPath>();
    let route = matched.map_or("none", MatchedPath::as_str).to_owned();
    let id = RunId::new(now());
    let traces = telemetry.traces.as_ref();
    let traces = traces.filter(|_| !PROBES.contains(&route.as_str()));
    let traced = traces.map(|traces| traces.request(method, &route, request.headers()));
    if let Some(traced) = &traced {
        request.extensions_mut().insert(traced.as_parent());
    }
    // Its id is on each line that the request leads to.
    let span = tracing::info_span!("request", id = %id);
    let mut response = next.run(request).instrument(span).await;
    let (status, seconds) = (response.status().as_u16(), begun.elapsed().as_secs_f64());
    if let Some(traced) = traced {
        traced.end(status);
    }
    let metrics = &telemetry.metrics;
    metrics.request_answered(method, &route, status, seconds);
    tracing::info!(request = %id, method, route, status, ms = (seconds * 1000.0).round(), "a request was answered");
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// A client that follows a run, for as long as this value lives.
pub struct Listener(Arc<Telemetry>);

impl Listener {
    pub fn new(telemetry: Arc<Telemetry>) -> Self {
        telemetry.metrics.listeners.inc();
        Listener(telemetry)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.metrics.listeners.dec();
    }
}
