//! The HTTP API under /v1. Its description, `/v1/openapi.json`, is generated from the handlers and their types.

// Docs of a handler are text of that description, which lists the error responses itself.
#![allow(clippy::missing_errors_doc)]

pub mod checks;
pub mod comparisons;
mod description;
pub mod events;
pub mod gradings;
pub mod health;
mod idempotency;
mod long_poll;
pub mod matrices;
pub mod metrics;
pub mod paging;
pub mod run_files;
pub mod runs;
pub mod workers;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use crate::problem::Problem;
pub use crate::state::{ApiParts, ApiState};
use crate::store::{JobId, JobKind, JobStatus};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "testwright",
        description = "Writes a test for an issue and a Python repository: it fails on the old code for the reason the issue states."
    ),
    tags(
        (name = "runs", description = "A run writes a test for one issue."),
        (name = "comparisons", description = "A comparison runs several approaches on a dataset and grades the results."),
        (name = "matrices", description = "A matrix runs tests on candidate patches."),
        (name = "checks", description = "A check judges given tests on the old code."),
        (name = "server", description = "The server itself.")
    ),
    components(schemas(Problem))
)]
struct Description;

fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(runs::create, runs::list))
        .routes(routes!(runs::show))
        .routes(routes!(runs::cancel))
        .routes(routes!(runs::retry))
        .routes(routes!(runs::revise))
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
        .routes(routes!(checks::create))
        .routes(routes!(health::health))
        .routes(routes!(health::ready))
        .routes(routes!(workers::list))
}

fn parts() -> (Router<ApiState>, utoipa::openapi::OpenApi) {
    let (router, mut description) = routes().split_for_parts();
    description::complete(&mut description);
    (router, description)
}

/// Returns the description of the API.
pub fn description() -> utoipa::openapi::OpenApi {
    parts().1
}

/// Returns the routes of the API, with that of its description.
pub fn router() -> Router<ApiState> {
    let (router, description) = parts();
    let description = get(move || async move { Json(description) });
    router.route("/v1/openapi.json", description)
}

/// The result of a request; a problem becomes its response.
pub type ApiResult<T> = Result<T, Problem>;
type Api = State<ApiState>;
/// The result of a request that was accepted but takes effect later.
type Accepted<T> = ApiResult<(StatusCode, Json<T>)>;

fn accepted<T>(now: T) -> Accepted<T> {
    Ok((StatusCode::ACCEPTED, Json(now)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

/// Cancels a job.
///
/// # Errors
///
/// Fails with 409 if the job has ended.
async fn cancel(state: &ApiState, kind: JobKind, id: &JobId) -> ApiResult<()> {
    match state.store.cancel(kind, id).await? {
        true => Ok(()),
        false => {
            let detail = format!("the {} has ended", kind.name());
            Err(Problem::conflict(detail))
        }
    }
}

/// Queues a job again; one that waits keeps its place.
///
/// # Errors
///
/// Fails with 409 and the hint if the job is running or has a result.
async fn retry(state: &ApiState, job: (JobKind, &JobId, JobStatus), hint: &str) -> ApiResult<()> {
    let (kind, id, status) = job;
    if status == JobStatus::Queued || state.store.requeue(kind, id).await? {
        return Ok(());
    }
    let detail = format!("the {} is {}", kind.name(), status.as_str());
    Err(Problem::conflict(detail).hint(hint))
}
