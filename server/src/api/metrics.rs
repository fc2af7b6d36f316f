//! `GET /metrics`, for Prometheus. It is not part of the API, and so not in its description.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::probes::Probes;
use crate::telemetry::CONTENT_TYPE;

/// Shows the metrics of this process and the queue, in the text format of Prometheus.
pub async fn show(State(probes): State<Probes>) -> Response {
    // Without a database, the metrics of this process are still available.
    let queue = probes.queue_state().await;
    match probes.telemetry.metrics.text(queue.as_ref()) {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
