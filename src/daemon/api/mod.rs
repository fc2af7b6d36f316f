//! The HTTP API under /v1. Its description, `/v1/openapi.json`, comes from the handlers and their types.

pub mod comparisons;
mod description;
pub mod events;
pub mod gradings;
pub mod health;
mod idempotency;
pub mod matrices;
pub mod metrics;
pub mod paging;
pub mod problem;
pub mod run_files;
pub mod runs;
pub mod workers;

use std::sync::Arc;

use axum::extract::{FromRef, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use tokio::sync::broadcast;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::access::Access;
use super::allow_list::AllowList;
use super::probes::Probes;
use super::queue::Queue;
use super::telemetry::Telemetry;
use crate::artifacts::Artifacts;
use crate::settings::Settings;
use crate::stop_signal::StopSignal;
use crate::store::{RunId, Store};

pub use problem::Problem;

/// Bytes of a request.
pub const LONGEST_REQUEST: usize = 4 << 20;

/// What handlers work with.
#[derive(Clone)]
pub struct ApiState(Arc<ApiParts>);

pub struct ApiParts {
    pub store: Store,
    /// Where the files of runs are, if they are kept.
    pub artifacts: Option<Artifacts>,
    pub queue: Queue,
    pub settings: Settings,
    pub allowed: AllowList,
    pub access: Access,
    /// Says of which run there is something new.
    pub changes: broadcast::Sender<RunId>,
    /// This process is to end: streams end as well.
    pub stop: StopSignal,
    pub telemetry: Arc<Telemetry>,
    pub probes: Probes,
}

impl ApiState {
    pub fn new(parts: ApiParts) -> Self {
        ApiState(Arc::new(parts))
    }
}

impl std::ops::Deref for ApiState {
    type Target = ApiParts;

    fn deref(&self) -> &ApiParts {
        &self.0
    }
}

impl FromRef<ApiState> for Probes {
    fn from_ref(state: &ApiState) -> Self {
        state.probes.clone()
    }
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "testwright",
        description = "From an issue and a Python repository to a test that fails on the old code for the reason that the issue states."
    ),
    tags(
        (name = "runs", description = "A run writes a test for one issue."),
        (name = "comparisons", description = "A comparison makes runs of several approaches on a dataset, and grades them."),
        (name = "matrices", description = "A matrix tries candidate patches with tests."),
        (name = "server", description = "The server itself.")
    )
)]
struct Description;

fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(runs::create, runs::list))
        .routes(routes!(runs::show))
        .routes(routes!(runs::cancel))
        .routes(routes!(runs::retry))
        .routes(routes!(runs::patch))
        .routes(routes!(runs::evidence))
        .routes(routes!(runs::trajectory))
        .routes(routes!(run_files::list_of_run))
        .routes(routes!(run_files::download_of_run))
        .routes(routes!(events::follow))
        .routes(routes!(comparisons::create, comparisons::list))
        .routes(routes!(comparisons::show))
        .routes(routes!(comparisons::report))
        .routes(routes!(run_files::list_of_comparison))
        .routes(routes!(run_files::download_of_comparison))
        .routes(routes!(comparisons::cancel))
        .routes(routes!(comparisons::retry))
        .routes(routes!(gradings::list))
        .routes(routes!(gradings::cancel))
        .routes(routes!(matrices::create, matrices::list))
        .routes(routes!(matrices::show, matrices::delete))
        .routes(routes!(matrices::cancel))
        .routes(routes!(matrices::retry))
        .routes(routes!(health::health))
        .routes(routes!(health::ready))
        .routes(routes!(workers::list))
}

fn parts() -> (Router<ApiState>, utoipa::openapi::OpenApi) {
    let (router, mut description) = routes().split_for_parts();
    description::complete(&mut description);
    (router, description)
}

/// The description, for the server and for whoever writes a client.
pub fn description() -> utoipa::openapi::OpenApi {
    parts().1
}

pub fn router() -> Router<ApiState> {
    let (router, description) = parts();
    let description = get(move || async move { Json(description) });
    router.route("/v1/openapi.json", description)
}

pub type ApiResult<T> = Result<T, Problem>;
type Api = State<ApiState>;
/// Of what was asked for and takes its time.
type Accepted<T> = ApiResult<(StatusCode, Json<T>)>;

fn accepted<T>(now: T) -> Accepted<T> {
    Ok((StatusCode::ACCEPTED, Json(now)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
