//! Handlers for predictions that workers grade for `eval --database` and for comparisons: list and cancel.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use serde::{Deserialize, Serialize};

use super::{Accepted, Api, ApiResult, ApiState, Problem, accepted, paging};
use crate::store::{GradingBatch, JobFilter, JobId, JobStatus, timestamp};

/// The gradings of an evaluation or a comparison.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Gradings {
    /// Id of the comparison, or of the evaluation (in the file `batch` of its folder).
    pub batch: String,
    /// Owner of the jobs.
    pub owner: String,
    /// Creation of the oldest: RFC 3339, UTC.
    pub created_at: String,
    /// Number of gradings by status. A grading is an instance with its predictions.
    pub gradings: BTreeMap<String, i64>,
    /// Whether some have not ended.
    pub open: bool,
}

impl Gradings {
    fn from_stored(stored: GradingBatch) -> Self {
        let open = ["queued", "running"];
        Gradings {
            created_at: timestamp(stored.created_at).to_string(),
            open: stored
                .by_status
                .keys()
                .any(|status| open.contains(&status.as_str())),
            batch: stored.batch,
            owner: stored.owner,
            gradings: stored.by_status,
        }
    }
}

/// A page of gradings by evaluation or comparison, newest first.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct GradingList {
    /// Evaluations and comparisons with their gradings.
    pub batches: Vec<Gradings>,
    /// Value of `before` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Filters of gradings.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GradingSelection {
    /// List batches that have gradings of this status.
    status: Option<JobStatus>,
    /// List batches of this owner.
    owner: Option<String>,
    /// List batches created before this one.
    #[param(pattern = "^[0-9a-z]{19}$")]
    before: Option<String>,
    /// Maximum evaluations and comparisons on the page; 50 by default.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

fn no_gradings() -> Problem {
    Problem::not_found("this evaluation or comparison has no gradings").hint(
        "GET /v1/gradings lists all gradings; gradings are deleted once their results were fetched",
    )
}

/// Returns a page of the gradings that a filter selects, by evaluation or comparison.
///
/// # Errors
///
/// Fails if the database query fails.
pub async fn page(state: &ApiState, filter: JobFilter) -> ApiResult<GradingList> {
    let limit = filter.limit;
    let filter = JobFilter {
        limit: limit + 1,
        ..filter
    };
    let mut batches = state.store.grading_batches(&filter).await?;
    let next = paging::truncate_page(&mut batches, limit).map(|last| last.batch.clone());
    Ok(GradingList {
        batches: batches.into_iter().map(Gradings::from_stored).collect(),
        next,
    })
}

/// Cancels the gradings of a batch and returns their counts.
///
/// # Errors
///
/// Fails with 404 if the batch has no gradings, or if the database query fails.
pub async fn cancel_batch(state: &ApiState, batch: &str) -> ApiResult<Gradings> {
    let batch = JobId::parse(batch).ok_or_else(no_gradings)?;
    state.store.cancel_gradings(batch.as_str()).await?;
    let of_batch = JobFilter {
        batch: Some(batch),
        limit: 1,
        ..JobFilter::default()
    };
    let batches = state.store.grading_batches(&of_batch).await?;
    let gradings = batches.into_iter().next().map(Gradings::from_stored);
    gradings.ok_or_else(no_gradings)
}

/// List predictions that workers grade
///
/// Lists gradings by evaluation or comparison. Results that were fetched are no longer listed.
#[utoipa::path(get, path = "/v1/gradings", tag = "comparisons", params(GradingSelection), responses(
    (status = 200, body = GradingList),
    (status = 400, description = "invalid parameter"),
))]
pub async fn list(
    State(state): Api,
    query: Result<Query<GradingSelection>, QueryRejection>,
) -> ApiResult<Json<GradingList>> {
    let Query(selection) = query?;
    paging::check_filters(&[("owner", &selection.owner)])?;
    let filter = JobFilter {
        status: selection.status,
        owner: selection.owner,
        before: paging::before(selection.before.as_deref(), "batch")?,
        limit: paging::limit(selection.limit)?,
        ..JobFilter::default()
    };
    Ok(Json(page(&state, filter).await?))
}

/// Cancel the gradings of an evaluation or a comparison
#[utoipa::path(post, path = "/v1/gradings/{batch}/cancel", tag = "comparisons", params(("batch" = String, Path, description = "id of the evaluation or comparison")), responses(
    (status = 202, description = "cancelled", body = Gradings),
    (status = 404, description = "no gradings"),
))]
pub async fn cancel(State(state): Api, Path(batch): Path<String>) -> Accepted<Gradings> {
    accepted(cancel_batch(&state, &batch).await?)
}
