//! Predictions that workers grade for `eval --database` and for comparisons: listed, and ended.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Serialize;

use super::{Api, ApiResult, ApiState, Problem};
use crate::store::{GradingBatch, timestamp};

/// The gradings of an evaluation or a comparison.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Gradings {
    /// Of the comparison, or of the evaluation: the file `batch` in its folder has it.
    pub batch: String,
    pub owner: String,
    /// When the oldest was asked for: RFC 3339, UTC.
    pub created_at: String,
    /// How many are where: each is an instance with its predictions.
    pub gradings: BTreeMap<String, i64>,
    /// Some have not ended.
    pub open: bool,
}

impl Gradings {
    fn of(stored: GradingBatch) -> Self {
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

/// Gradings by evaluation or comparison, the newest first.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct GradingList {
    batches: Vec<Gradings>,
}

fn no_gradings() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "there are no gradings of this evaluation or comparison",
    )
    .hint("GET /v1/gradings lists those that there are; they go once their results were fetched")
}

pub async fn all(state: &ApiState) -> ApiResult<Vec<Gradings>> {
    let stored = state.store.grading_batches().await?;
    Ok(stored.into_iter().map(Gradings::of).collect())
}

/// Asks for the end of those of a batch.
pub async fn end(state: &ApiState, batch: &str) -> ApiResult<Gradings> {
    state.store.cancel_gradings(batch).await?;
    let mut all = all(state).await?.into_iter();
    all.find(|gradings| gradings.batch == batch)
        .ok_or_else(no_gradings)
}

/// List predictions that workers grade
///
/// By evaluation or comparison. What was fetched by whoever asked is not here any more.
#[utoipa::path(get, path = "/v1/gradings", tag = "comparisons", responses((status = 200, body = GradingList)))]
pub async fn list(State(state): Api) -> ApiResult<Json<GradingList>> {
    Ok(Json(GradingList {
        batches: all(&state).await?,
    }))
}

/// End the gradings of an evaluation or a comparison
#[utoipa::path(post, path = "/v1/gradings/{batch}/cancel", tag = "comparisons", params(("batch" = String, Path, description = "of the evaluation or comparison")), responses(
    (status = 202, description = "they end", body = Gradings),
    (status = 404, description = "it has no gradings", body = Problem, content_type = "application/problem+json"),
))]
pub async fn cancel(
    State(state): Api,
    Path(batch): Path<String>,
) -> ApiResult<(StatusCode, Json<Gradings>)> {
    Ok((StatusCode::ACCEPTED, Json(end(&state, &batch).await?)))
}
