//! Comparisons: listed, shown, ended, and their reports.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;

use super::{Api, ApiResult, ApiState, Problem};
use crate::store::{RunId, StoredComparison, timestamp};

/// Comparisons of a list: the newest.
const LISTED: u32 = 200;

/// Approaches and models on a dataset, their runs made by the workers of the server's database.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Comparison {
    pub id: String,
    /// Of the dataset.
    pub name: String,
    owner: String,
    /// RFC 3339, UTC.
    pub created_at: String,
    /// Approaches with their models.
    pub systems: Vec<String>,
    instances: usize,
    samples: u64,
    /// How many of its runs are where; those that were not asked for yet are missing.
    pub runs: BTreeMap<String, i64>,
    /// Dollars so far, where they are limited.
    dollars: Option<f64>,
    /// It was graded: there is a report.
    pub has_report: bool,
}

impl Comparison {
    pub async fn of(state: &ApiState, stored: &StoredComparison) -> ApiResult<Self> {
        let all = Comparison::all(state, std::slice::from_ref(stored)).await?;
        all.into_iter().next().ok_or_else(no_comparison)
    }

    /// As they are stored: the newest first.
    async fn all(state: &ApiState, stored: &[StoredComparison]) -> ApiResult<Vec<Self>> {
        let (Some(newest), Some(oldest)) = (stored.first(), stored.last()) else {
            return Ok(Vec::new());
        };
        let (first, last) = (&oldest.id, &newest.id);
        let mut runs = state.store.batch_statuses(first, last).await?;
        let dollars = state
            .store
            .batch_dollars(first.as_str(), last.as_str())
            .await?;
        let with_progress = stored.iter().map(|stored| {
            let runs = runs.remove(stored.id.as_str()).unwrap_or_default();
            Comparison::with_progress(stored, runs, dollars.get(stored.id.as_str()).copied())
        });
        Ok(with_progress.collect())
    }

    fn with_progress(
        stored: &StoredComparison,
        runs: BTreeMap<String, i64>,
        dollars: Option<f64>,
    ) -> Self {
        let plan: Value = serde_json::from_str(&stored.plan).unwrap_or_default();
        let list = |name: &str| plan[name].as_array().cloned().unwrap_or_default();
        let system = |system: &Value| {
            let part = |name: &str| system[name].as_str().unwrap_or_default().to_owned();
            match (part("approach"), part("model")) {
                (approach, model) if approach == model => approach,
                (approach, model) => format!("{approach}@{model}"),
            }
        };
        Comparison {
            id: stored.id.to_string(),
            name: stored.name.clone(),
            owner: stored.owner.clone(),
            created_at: timestamp(stored.created_at).to_string(),
            systems: list("systems").iter().map(system).collect(),
            instances: list("instances").len(),
            samples: plan["samples"].as_u64().unwrap_or_default(),
            runs,
            dollars: dollars.filter(|dollars| *dollars > 0.0),
            has_report: stored.has_report,
        }
    }
}

/// Comparisons, the newest first.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Comparisons {
    comparisons: Vec<Comparison>,
}

fn no_comparison() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no comparison of this id")
        .hint("GET /v1/comparisons lists those that there are")
}

pub async fn find(state: &ApiState, id: &str) -> ApiResult<StoredComparison> {
    let id = RunId::parse(id).ok_or_else(no_comparison)?;
    state.store.comparison(&id).await?.ok_or_else(no_comparison)
}

/// The newest.
pub async fn all(state: &ApiState) -> ApiResult<Vec<Comparison>> {
    let stored = state.store.comparisons(LISTED).await?;
    Comparison::all(state, &stored).await
}

/// List comparisons, the newest first
#[utoipa::path(get, path = "/v1/comparisons", tag = "comparisons", responses((status = 200, body = Comparisons)))]
pub async fn list(State(state): Api) -> ApiResult<Json<Comparisons>> {
    let comparisons = all(&state).await?;
    Ok(Json(Comparisons { comparisons }))
}

/// Show a comparison
#[utoipa::path(get, path = "/v1/comparisons/{id}", tag = "comparisons", params(("id" = String, Path, description = "of the comparison")), responses(
    (status = 200, body = Comparison),
    (status = 404, description = "there is no such comparison", body = Problem, content_type = "application/problem+json"),
))]
pub async fn show(State(state): Api, Path(id): Path<String>) -> ApiResult<Json<Comparison>> {
    let stored = find(&state, &id).await?;
    Ok(Json(Comparison::of(&state, &stored).await?))
}

/// The report, as `report.json`
#[utoipa::path(get, path = "/v1/comparisons/{id}/report", tag = "comparisons", params(("id" = String, Path, description = "of the comparison")), responses(
    (status = 200, body = Value),
    (status = 404, description = "there is no such comparison, or it was not graded yet", body = Problem, content_type = "application/problem+json"),
))]
pub async fn report(State(state): Api, Path(id): Path<String>) -> ApiResult<Response> {
    let stored = find(&state, &id).await?;
    let report = state.store.comparison_report(&stored.id).await?;
    let report = report.ok_or_else(not_graded)?;
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((kind, report.report).into_response())
}

pub fn not_graded() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "the comparison was not graded yet")
        .hint("`testwright compare --database` grades it when its runs have ended")
}

/// End all runs of a comparison
#[utoipa::path(post, path = "/v1/comparisons/{id}/cancel", tag = "comparisons", params(("id" = String, Path, description = "of the comparison")), responses(
    (status = 202, description = "they end", body = Comparison),
    (status = 404, description = "there is no such comparison", body = Problem, content_type = "application/problem+json"),
))]
pub async fn cancel(
    State(state): Api,
    Path(id): Path<String>,
) -> ApiResult<(StatusCode, Json<Comparison>)> {
    let stored = find(&state, &id).await?;
    state.store.cancel_comparison(&stored.id).await?;
    let comparison = Comparison::of(&state, &stored).await?;
    Ok((StatusCode::ACCEPTED, Json(comparison)))
}
