//! Tests × patches: asked for, listed, shown, ended, deleted.

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use testwright_evals::foreign_text::NAME;

use super::idempotency::{self, KeyHeader};
use super::{Accepted, Api, ApiResult, ApiState, Problem, accepted, paging};
use crate::authentication::Caller;
use crate::fields::{MAX_PATH_LEN, shortened};
use crate::matrix::request::MatrixRequest;
use crate::matrix::view::{self, Matrix};
use crate::store::{
    JobKind, JobStatus, MatrixFilter, MatrixId, NewMatrix, StoredMatrix, timestamp,
};
use testwright_config::error::Error;

/// A matrix in a line.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct MatrixRow {
    pub id: String,
    pub status: JobStatus,
    pub repository: String,
    /// Who asked for it.
    pub owner: String,
    /// RFC 3339, UTC.
    pub created_at: String,
    /// Number of sets of tests.
    pub tests: usize,
    /// Number of patches.
    pub patches: usize,
}

/// A page of matrices, the newest first.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Matrices {
    pub matrices: Vec<MatrixRow>,
    /// For the parameter `before` of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Which matrices are listed.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MatrixSelection {
    status: Option<JobStatus>,
    /// Only matrices of this owner.
    owner: Option<String>,
    repository: Option<String>,
    /// Only matrices that were made before this one.
    #[param(pattern = "^[0-9a-z]{19}$")]
    before: Option<String>,
    /// Most matrices of the page; 50 by default.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

pub async fn find(state: &ApiState, id: &str) -> ApiResult<StoredMatrix> {
    let id = MatrixId::parse(id).ok_or_else(Problem::no_matrix)?;
    let found = state.store.matrix(&id).await?;
    found.ok_or_else(Problem::no_matrix)
}

/// Try patches with tests
///
/// With an Idempotency-Key that was sent before, the matrix of that request is the answer.
#[utoipa::path(post, path = "/v1/matrices", tag = "matrices", request_body = MatrixRequest, params(KeyHeader), responses(
    (status = 201, description = "the matrix is queued", body = Matrix, headers(("Location" = String, description = "its address"))),
    (status = 200, description = "it was asked for before", body = Matrix),
    (status = 400, description = "the body is no JSON, or the key is none"),
    (status = 409, description = "the key belongs to another request"),
    (status = 413, description = "the body is too long"),
    (status = 415, description = "the body is not application/json"),
    (status = 422, description = "the request cannot be worked on"),
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
    let matrix = Matrix::of(&state.store, &stored).await?;
    let address = format!("/v1/matrices/{}", stored.id);
    Ok(idempotency::answer(is_new, address, matrix))
}

/// Stores a matrix and queues it; `false` where it was asked for before.
pub async fn add(
    state: &ApiState,
    caller: &Caller,
    request: &MatrixRequest,
    key: Option<String>,
) -> ApiResult<(StoredMatrix, bool)> {
    let input = request
        .resolve(&state.store, &state.settings, &state.allowed)
        .await?;
    let text = serde_json::to_string(&input)
        .map_err(|error| Error::infrastructure("store the matrix").cause(error))?;
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

/// List matrices, the newest first
#[utoipa::path(get, path = "/v1/matrices", tag = "matrices", params(MatrixSelection), responses(
    (status = 200, body = Matrices),
    (status = 400, description = "a parameter is not what it should be"),
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
    let before = paging::before(selection.before.as_deref(), MatrixId::parse, "matrix")?;
    let selected = MatrixFilter {
        status: selection.status,
        owner: selection.owner,
        repository: selection.repository,
        before,
        limit,
    };
    Ok(Json(selected_page(&state, selected).await?))
}

/// Of all.
pub async fn page(state: &ApiState, before: Option<&MatrixId>, limit: u32) -> ApiResult<Matrices> {
    let all = MatrixFilter {
        before: before.cloned(),
        limit,
        ..MatrixFilter::default()
    };
    selected_page(state, all).await
}

async fn selected_page(state: &ApiState, filter: MatrixFilter) -> ApiResult<Matrices> {
    let limit = filter.limit;
    let filter = MatrixFilter {
        limit: limit + 1,
        ..filter
    };
    let mut found = state.store.matrices(&filter).await?;
    let next = paging::cut(&mut found, limit).map(|matrix| matrix.id.to_string());
    let rows: Result<Vec<MatrixRow>, Error> = found.iter().map(row).collect();
    Ok(Matrices {
        next,
        matrices: rows?,
    })
}

fn row(stored: &StoredMatrix) -> Result<MatrixRow, Error> {
    let input = view::input(stored)?;
    Ok(MatrixRow {
        id: stored.id.to_string(),
        status: stored.status,
        repository: shortened(&stored.repository, MAX_PATH_LEN),
        owner: shortened(&stored.owner, NAME),
        created_at: timestamp(stored.created_at).to_string(),
        tests: input.tests.len(),
        patches: input.patches.len(),
    })
}

/// Show a matrix, as far as it is known
#[utoipa::path(get, path = "/v1/matrices/{id}", tag = "matrices", params(("id" = String, Path, description = "of the matrix")), responses(
    (status = 200, body = Matrix),
    (status = 404, description = "there is no such matrix"),
))]
pub async fn show(State(state): Api, Path(id): Path<String>) -> ApiResult<Json<Matrix>> {
    let stored = find(&state, &id).await?;
    Ok(Json(Matrix::of(&state.store, &stored).await?))
}

/// End a matrix: one that waits at once, one that is worked on within seconds
#[utoipa::path(post, path = "/v1/matrices/{id}/cancel", tag = "matrices", params(("id" = String, Path, description = "of the matrix")), responses(
    (status = 202, description = "it ends", body = Matrix),
    (status = 404, description = "there is no such matrix"),
    (status = 409, description = "it has ended"),
))]
pub async fn cancel(State(state): Api, Path(id): Path<String>) -> Accepted<Matrix> {
    let stored = end(&state, &id).await?;
    accepted(Matrix::of(&state.store, &stored).await?)
}

/// The matrix, which is to end from now on.
pub async fn end(state: &ApiState, id: &str) -> ApiResult<StoredMatrix> {
    let stored = find(state, id).await?;
    super::cancel(state, JobKind::Matrix, stored.id.work()).await?;
    find(state, id).await
}

/// Go on with a matrix that was cancelled, or that the machine failed: what is known stays
#[utoipa::path(post, path = "/v1/matrices/{id}/retry", tag = "matrices", params(("id" = String, Path, description = "of the matrix")), responses(
    (status = 202, description = "it is queued", body = Matrix),
    (status = 404, description = "there is no such matrix"),
    (status = 409, description = "it is worked on, or has a result"),
))]
pub async fn retry(State(state): Api, Path(id): Path<String>) -> Accepted<Matrix> {
    let stored = take_up(&state, &id).await?;
    accepted(Matrix::of(&state.store, &stored).await?)
}

/// The matrix, which waits again.
pub async fn take_up(state: &ApiState, id: &str) -> ApiResult<StoredMatrix> {
    let stored = find(state, id).await?;
    let job = (JobKind::Matrix, stored.id.work(), stored.status);
    let hint = "only a matrix that is cancelled or ended as infrastructure goes on";
    super::retry(state, job, hint).await?;
    find(state, id).await
}

/// Delete a matrix that has ended
#[utoipa::path(delete, path = "/v1/matrices/{id}", tag = "matrices", params(("id" = String, Path, description = "of the matrix")), responses(
    (status = 204, description = "it is gone"),
    (status = 404, description = "there is no such matrix"),
    (status = 409, description = "it has not ended"),
))]
pub async fn delete(State(state): Api, Path(id): Path<String>) -> ApiResult<StatusCode> {
    let stored = find(&state, &id).await?;
    if !state.store.delete_matrix(&stored.id).await? {
        let problem = Problem::new(StatusCode::CONFLICT, "the matrix has not ended");
        return Err(problem.hint("cancel it first"));
    }
    Ok(StatusCode::NO_CONTENT)
}
