//! Handlers for the liveness and readiness probes.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;

use super::{ApiResult, Problem};
use crate::probes::Probes;

/// The answer to a probe.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Health {
    /// `ok`
    status: &'static str,
    /// Version of testwright.
    version: &'static str,
}

impl Health {
    fn ok() -> Json<Self> {
        Json(Health {
            status: "ok",
            version: env!("CARGO_PKG_VERSION"),
        })
    }
}

/// Check that the server and its database respond
#[utoipa::path(get, path = "/v1/health", tag = "server", responses(
    (status = 200, body = Health),
    (status = 503, description = "database does not respond"),
))]
pub async fn health(State(probes): State<Probes>) -> ApiResult<Json<Health>> {
    probes.database_answers().await?;
    Ok(Health::ok())
}

/// Check that the server can take work: it is not shutting down, its machine lacks no resource, and its database is up to date and
/// writable
#[utoipa::path(get, path = "/v1/ready", tag = "server", responses(
    (status = 200, body = Health),
    (status = 503, description = "not ready"),
))]
pub async fn ready(State(probes): State<Probes>) -> ApiResult<Json<Health>> {
    match probes.ready().await {
        Ok(()) => Ok(Health::ok()),
        Err(error) => {
            tracing::warn!(error = error.with_cause(), "not ready");
            // The cause is only logged: it may name the database.
            let detail = match error.kind.shortage() {
                Some(shortage) => format!("{error}: {shortage}"),
                None => error.to_string(),
            };
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail);
            Err(problem.hint("see the server's log"))
        }
    }
}
