//! Metrics, logs and spans of HTTP requests.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;

use super::Telemetry;
use crate::store::{JobId, now};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Methods that metrics distinguish; any other method counts as `other`.
const METHODS: [Method; 6] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::HEAD,
];

/// Frequent requests of monitoring systems, which get no spans.
const PROBES: [&str; 3] = ["/metrics", "/v1/health", "/v1/ready"];

/// Counts and logs each request, and gives it an id. An id from the client could contain anything.
pub(crate) async fn observe_request(
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
    let id = JobId::new(now());
    let traces = telemetry.traces.as_ref();
    let traces = traces.filter(|_| !PROBES.contains(&route.as_str()));
    let traced = traces.map(|traces| traces.request(method, &route, request.headers()));
    if let Some(traced) = &traced {
        request.extensions_mut().insert(traced.as_parent());
    }
    // The span adds the id to each log line of the request.
    let span = tracing::info_span!("request", id = %id);
    let mut response = next.run(request).instrument(span).await;
    let (status, seconds) = (response.status().as_u16(), begun.elapsed().as_secs_f64());
    if let Some(traced) = traced {
        traced.end(status);
    }
    let metrics = &telemetry.metrics;
    metrics.request_answered(method, &route, status, seconds);
    tracing::info!(request = %id, method, route, status, ms = (seconds * 1000.0).round(), "answered a request");
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// A client that follows a run, until this value is dropped.
pub(crate) struct Listener(Arc<Telemetry>);

impl Listener {
    pub(crate) fn new(telemetry: Arc<Telemetry>) -> Self {
        telemetry.metrics.listeners.inc();
        Listener(telemetry)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.metrics.listeners.dec();
    }
}
