//! Handlers for matrices, which run tests on patches: create, list, show, cancel, retry and delete.

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use testwright_evals::untrusted_text::MAX_NAME_CHARS;

use super::idempotency::{self, KeyHeader};
use super::long_poll;
use super::{Accepted, Api, ApiResult, ApiState, Problem, accepted, paging};
use crate::authentication::Caller;
use crate::fields::{MAX_PATH_LEN, shortened};
use crate::json::encode;
use crate::matrix::request::MatrixRequest;
use crate::matrix::view::{self, Matrix};
use crate::store::{
    JobFilter, JobId, JobKind, JobStatus, MatrixProgress, NewMatrix, StoredMatrix, timestamp,
};
use testwright_config::error::Error;

/// Summary of a matrix.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct MatrixRow {
    /// Id of the matrix.
    pub id: String,
    /// Status of the matrix.
    pub status: JobStatus,
    /// Repository: a URL, or a folder on the server.
    pub repository: String,
    /// Owner of the token that created it.
    pub owner: String,
    /// Creation time: RFC 3339, UTC.
    pub created_at: String,
    /// Number of sets of tests.
    pub tests: usize,
    /// Number of patches.
    pub patches: usize,
}

/// A page of matrices, newest first.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Matrices {
    /// Matrices of the page.
    pub matrices: Vec<MatrixRow>,
    /// Value of `before` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Filters of matrices.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MatrixSelection {
    status: Option<JobStatus>,
    /// List matrices of this owner.
    owner: Option<String>,
    repository: Option<String>,
    /// List matrices created before this one.
    #[param(pattern = "^[0-9a-z]{19}$")]
    before: Option<String>,
    /// Maximum matrices on the page; 50 by default.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

/// Query parameters for waiting for the results of a matrix.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MatrixWait {
    /// Seconds to wait until the matrix has ended; 0 by default. If it has not, the response has its results so far.
    #[param(minimum = 0, maximum = 60)]
    wait: Option<u32>,
    /// Number of cells that the client knows: the wait ends as soon as the matrix has more.
    #[param(minimum = 0)]
    cells: Option<u32>,
}

/// Returns the matrix with this id.
///
/// # Errors
///
/// Fails with 404 if there is no such matrix, or if the database query fails.
pub async fn find(state: &ApiState, id: &str) -> ApiResult<StoredMatrix> {
    let matrix = state.store.matrix(id).await?;
    matrix.ok_or_else(Problem::no_matrix)
}

/// Run tests on candidate patches
///
/// A repeated Idempotency-Key returns the matrix of the first request.
#[utoipa::path(post, path = "/v1/matrices", tag = "matrices", request_body = MatrixRequest, params(KeyHeader), responses(
    (status = 201, description = "matrix queued", body = Matrix, headers(("Location" = String, description = "its address"))),
    (status = 200, description = "repeated request: the existing job", body = Matrix),
    (status = 400, description = "invalid JSON body or Idempotency-Key"),
    (status = 409, description = "Idempotency-Key of another request"),
    (status = 413, description = "body too long"),
    (status = 415, description = "body is not application/json"),
    (status = 422, description = "invalid request"),
))]
pub async fn create(
    State(state): Api,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Result<Json<MatrixRequest>, JsonRejection>,
) -> ApiResult<Response> {
    let Json(request) = body?;
    let key = idempotency::key(&headers)?;
    let (stored, is_new) = add(&state, &caller, &request, key).await?;
    let matrix = Matrix::load(&state.store, &stored).await?;
    let address = format!("/v1/matrices/{}", stored.id);
    Ok(idempotency::answer(is_new, address, matrix))
}

/// Stores and queues a matrix; `false` if the request is repeated.
///
/// # Errors
///
/// Fails if the request is invalid, the key belongs to another request, or the database query fails.
pub async fn add(
    state: &ApiState,
    caller: &Caller,
    request: &MatrixRequest,
    key: Option<String>,
) -> ApiResult<(StoredMatrix, bool)> {
    let input = request
        .resolve(&state.store, &state.settings, &state.allowed)
        .await?;
    let text = encode(&input, "store the matrix")?;
    let new = NewMatrix {
        request: text,
        repository: input.repository,
        owner: caller.owner.clone(),
        idempotency_key: idempotency::of_owner(caller, key),
    };
    let (stored, is_new) = state.store.add_matrix(&new).await?;
    if !is_new && stored.request != new.request {
        return Err(idempotency::of_another_request());
    }
    Ok((stored, is_new))
}

/// List matrices, newest first
#[utoipa::path(get, path = "/v1/matrices", tag = "matrices", params(MatrixSelection), responses(
    (status = 200, body = Matrices),
    (status = 400, description = "invalid parameter"),
))]
pub async fn list(
    State(state): Api,
    query: Result<Query<MatrixSelection>, QueryRejection>,
) -> ApiResult<Json<Matrices>> {
    let Query(selection) = query?;
    paging::check_filters(&[
        ("owner", &selection.owner),
        ("repository", &selection.repository),
    ])?;
    let limit = paging::limit(selection.limit)?;
    let before = paging::before(selection.before.as_deref(), "matrix")?;
    let filter = JobFilter {
        status: selection.status,
        owner: selection.owner,
        repository: selection.repository,
        before,
        limit: limit + 1,
        ..JobFilter::default()
    };
    let rows = state.store.matrices(&filter, |stored| row(&stored)).await?;
    let mut matrices = rows
        .into_iter()
        .collect::<Result<Vec<MatrixRow>, Error>>()?;
    let next = paging::truncate_page(&mut matrices, limit).map(|matrix| matrix.id.clone());
    Ok(Json(Matrices { next, matrices }))
}

fn row(stored: &StoredMatrix) -> Result<MatrixRow, Error> {
    let input = view::input(stored)?;
    Ok(MatrixRow {
        id: stored.id.to_string(),
        status: stored.status,
        repository: shortened(&stored.repository, MAX_PATH_LEN),
        owner: shortened(&stored.owner, MAX_NAME_CHARS),
        created_at: timestamp(stored.created_at).to_string(),
        tests: input.tests.len(),
        patches: input.patches.len(),
    })
}

/// Show a matrix with its results so far, at once or after there are more of them
#[utoipa::path(get, path = "/v1/matrices/{id}", tag = "matrices", params(("id" = String, Path, description = "id of the matrix"), MatrixWait), responses(
    (status = 200, body = Matrix),
    (status = 400, description = "invalid parameter"),
    (status = 404, description = "no such matrix"),
))]
pub async fn show(
    State(state): Api,
    Path(id): Path<String>,
    query: Result<Query<MatrixWait>, QueryRejection>,
) -> ApiResult<Json<Matrix>> {
    let Query(MatrixWait { wait, cells }) = query?;
    // The request of a matrix can be long, so it is read only once.
    let load = || find_progress(&state, &id);
    let is_complete = |progress: &MatrixProgress| {
        progress.status.has_ended() || cells.is_some_and(|cells| progress.cells > i64::from(cells))
    };
    long_poll::poll(&state, wait, load, is_complete).await?;
    let stored = find(&state, &id).await?;
    Ok(Json(Matrix::load(&state.store, &stored).await?))
}

/// Returns the progress of the matrix with this id.
///
/// # Errors
///
/// Fails with 404 if there is no such matrix, or if the database query fails.
pub async fn find_progress(state: &ApiState, id: &str) -> ApiResult<MatrixProgress> {
    let id = JobId::parse(id).ok_or_else(Problem::no_matrix)?;
    let progress = state.store.matrix_progress(&id).await?;
    progress.ok_or_else(Problem::no_matrix)
}

/// Cancel a matrix
#[utoipa::path(post, path = "/v1/matrices/{id}/cancel", tag = "matrices", params(("id" = String, Path, description = "id of the matrix")), responses(
    (status = 202, description = "cancelled; a running job ends within seconds", body = Matrix),
    (status = 404, description = "no such matrix"),
    (status = 409, description = "already ended"),
))]
pub async fn cancel(State(state): Api, Path(id): Path<String>) -> Accepted<Matrix> {
    let stored = cancel_matrix(&state, &id).await?;
    accepted(Matrix::load(&state.store, &stored).await?)
}

/// Cancels a matrix and returns it.
///
/// # Errors
///
/// Fails with 404 if there is no such matrix, with 409 if it has ended, or if the database query fails.
pub async fn cancel_matrix(state: &ApiState, id: &str) -> ApiResult<StoredMatrix> {
    let stored = find(state, id).await?;
    super::cancel(state, JobKind::Matrix, &stored.id).await?;
    find(state, id).await
}

/// Resume a matrix that was cancelled or ended as infrastructure, keeping its results
#[utoipa::path(post, path = "/v1/matrices/{id}/retry", tag = "matrices", params(("id" = String, Path, description = "id of the matrix")), responses(
    (status = 202, description = "queued", body = Matrix),
    (status = 404, description = "no such matrix"),
    (status = 409, description = "running, or has a result"),
))]
pub async fn retry(State(state): Api, Path(id): Path<String>) -> Accepted<Matrix> {
    let stored = retry_matrix(&state, &id).await?;
    accepted(Matrix::load(&state.store, &stored).await?)
}

/// Queues a matrix again and returns it.
///
/// # Errors
///
/// Fails with 404 if there is no such matrix, with 409 if it is running or has a result, or if the database
/// query fails.
pub async fn retry_matrix(state: &ApiState, id: &str) -> ApiResult<StoredMatrix> {
    let stored = find(state, id).await?;
    let job = (JobKind::Matrix, &stored.id, stored.status);
    let hint = "retry a matrix that was cancelled or ended as infrastructure";
    super::retry(state, job, hint).await?;
    find(state, id).await
}

/// Delete a matrix that has ended
#[utoipa::path(delete, path = "/v1/matrices/{id}", tag = "matrices", params(("id" = String, Path, description = "id of the matrix")), responses(
    (status = 204, description = "deleted"),
    (status = 404, description = "no such matrix"),
    (status = 409, description = "not ended yet"),
))]
pub async fn delete(State(state): Api, Path(id): Path<String>) -> ApiResult<StatusCode> {
    let stored = find(&state, &id).await?;
    if !state.store.delete_matrix(&stored.id).await? {
        let problem = Problem::conflict("the matrix has not ended");
        return Err(problem.hint("cancel it first"));
    }
    Ok(StatusCode::NO_CONTENT)
}
