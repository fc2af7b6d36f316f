//! Handlers for comparisons: create, list, show, cancel, retry, and get reports.

use std::collections::BTreeMap;

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use testwright_evals::untrusted_text::MAX_NAME_CHARS;

use super::idempotency::{self, KeyHeader};
use super::{Accepted, Api, ApiResult, ApiState, Problem, accepted, paging};
use crate::authentication::Caller;
use crate::comparison::request::ComparisonRequest;
use crate::fields::shortened;
use crate::json::encode;
use crate::store::{
    JobFilter, JobId, JobKind, JobStatus, NewComparison, RequestedComparison, StoredComparison,
    now, timestamp,
};
use testwright_config::error::Error;

/// A comparison of approaches and models on a dataset. Workers execute its runs.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Comparison {
    /// Id of the comparison.
    pub id: String,
    /// Name of the dataset.
    pub name: String,
    owner: String,
    /// Status of the comparison; its runs have statuses of their own.
    pub status: JobStatus,
    /// Reason why it has no result.
    pub message: Option<String>,
    /// Times are RFC 3339, UTC.
    pub created_at: String,
    /// Time at which it ended; absent while it is open.
    pub ended_at: Option<String>,
    /// Approaches with their models.
    pub systems: Vec<String>,
    instances: usize,
    samples: u64,
    /// Number of runs by status, without those not yet started.
    pub runs: BTreeMap<String, i64>,
    /// US dollars spent so far, for models with prices.
    dollars: Option<f64>,
    /// Whether there is a report.
    pub has_report: bool,
}

impl Comparison {
    /// Creates the view of a stored comparison.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn load(state: &ApiState, stored: &StoredComparison) -> ApiResult<Self> {
        let mut comparison = Comparison::without_progress(stored);
        let one = std::slice::from_mut(&mut comparison);
        Comparison::read_progress(state, one).await?;
        Ok(comparison)
    }

    /// Returns whether the comparison or one of its runs has not ended. Runs of a cancelled comparison may take a while
    /// to end.
    pub fn is_open(&self) -> bool {
        !self.status.has_ended()
            || [JobStatus::Queued, JobStatus::Running]
                .iter()
                .any(|status| self.runs.contains_key(status.as_str()))
    }

    /// Reads the runs and the costs of comparisons.
    async fn read_progress(state: &ApiState, comparisons: &mut [Self]) -> ApiResult<()> {
        let ids: Vec<&str> = comparisons
            .iter()
            .map(|comparison| comparison.id.as_str())
            .collect();
        let mut runs = state.store.batch_statuses(&ids).await?;
        let dollars = state.store.batch_dollars(&ids).await?;
        for comparison in comparisons {
            comparison.runs = runs.remove(&comparison.id).unwrap_or_default();
            let dollars = dollars.get(&comparison.id).copied();
            comparison.dollars = dollars.filter(|dollars| *dollars > 0.0);
        }
        Ok(())
    }

    fn without_progress(stored: &StoredComparison) -> Self {
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
            status: stored.status,
            message: stored.message.clone(),
            created_at: timestamp(stored.created_at).to_string(),
            ended_at: stored.ended_at.map(|at| timestamp(at).to_string()),
            systems: list("systems")
                .iter()
                .map(|of| shortened(&system(of), 2 * MAX_NAME_CHARS))
                .collect(),
            instances: list("instances").len(),
            samples: plan["samples"].as_u64().unwrap_or_default(),
            runs: BTreeMap::new(),
            dollars: None,
            has_report: stored.has_report,
        }
    }
}

/// A page of comparisons, newest first.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Comparisons {
    /// Comparisons of the page.
    pub comparisons: Vec<Comparison>,
    /// Value of `before` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Filters of comparisons.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ComparisonSelection {
    status: Option<JobStatus>,
    /// List comparisons of this owner.
    owner: Option<String>,
    /// List comparisons on the dataset of this name.
    name: Option<String>,
    /// List comparisons created before this one.
    #[param(pattern = "^[0-9a-z]{19}$")]
    before: Option<String>,
    /// Maximum comparisons on the page; 50 by default.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

fn no_comparison() -> Problem {
    Problem::not_found("no comparison has this id")
        .hint("GET /v1/comparisons lists all comparisons")
}

/// Returns the comparison with this id.
///
/// # Errors
///
/// Fails with 404 if there is no such comparison, or if the database query fails.
pub async fn find(state: &ApiState, id: &str) -> ApiResult<StoredComparison> {
    state.store.comparison(id).await?.ok_or_else(no_comparison)
}

/// Returns a page of the comparisons that a filter selects.
///
/// # Errors
///
/// Fails if the database query fails.
pub async fn page(state: &ApiState, filter: JobFilter) -> ApiResult<Comparisons> {
    let limit = filter.limit;
    let filter = JobFilter {
        limit: limit + 1,
        ..filter
    };
    let convert = |stored| Comparison::without_progress(&stored);
    let mut comparisons = state.store.comparisons(&filter, convert).await?;
    let next =
        paging::truncate_page(&mut comparisons, limit).map(|comparison| comparison.id.clone());
    Comparison::read_progress(state, &mut comparisons).await?;
    Ok(Comparisons { comparisons, next })
}

/// Compare approaches and models
///
/// Workers execute and grade the runs. A repeated Idempotency-Key returns the comparison of the first request.
#[utoipa::path(post, path = "/v1/comparisons", tag = "comparisons", request_body = ComparisonRequest, params(KeyHeader), responses(
    (status = 201, description = "comparison queued", body = Comparison, headers(("Location" = String, description = "its address"))),
    (status = 200, description = "repeated request: the existing job", body = Comparison),
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
    body: Result<Json<ComparisonRequest>, JsonRejection>,
) -> ApiResult<Response> {
    let Json(request) = body?;
    let key = idempotency::key(&headers)?;
    let (stored, is_new) = add(&state, &caller, &request, key).await?;
    let comparison = Comparison::load(&state, &stored).await?;
    let address = format!("/v1/comparisons/{}", stored.id);
    Ok(idempotency::answer(is_new, address, comparison))
}

/// Stores a comparison for a server to run; `false` if the request is repeated.
///
/// # Errors
///
/// Fails if the request is invalid, the key belongs to another request, or the database query fails.
pub async fn add(
    state: &ApiState,
    caller: &Caller,
    request: &ComparisonRequest,
    key: Option<String>,
) -> ApiResult<(StoredComparison, bool)> {
    let what = "store the comparison";
    let (plan, text) = tokio::task::block_in_place(|| {
        let prepared = request.check(&state.settings, &state.allowed)?;
        let plan = encode(&prepared.plan, what)?;
        let text = encode(request, what)?;
        Ok::<_, Error>((plan, text))
    })?;
    let requested_comparison = RequestedComparison {
        comparison: NewComparison {
            id: &JobId::new(now()),
            owner: &caller.owner,
            name: &request.name,
            plan: &plan,
            max_dollars: request.limits.dollars,
        },
        request: &text,
        idempotency_key: idempotency::of_owner(caller, key),
        traceparent: caller.traceparent.clone(),
    };
    let (stored, is_new) = state.store.add_comparison(&requested_comparison).await?;
    match is_new || stored.request.as_deref() == Some(&text) {
        true => Ok((stored, is_new)),
        false => Err(idempotency::of_another_request()),
    }
}

/// List comparisons, newest first
#[utoipa::path(get, path = "/v1/comparisons", tag = "comparisons", params(ComparisonSelection), responses(
    (status = 200, body = Comparisons),
    (status = 400, description = "invalid parameter"),
))]
pub async fn list(
    State(state): Api,
    query: Result<Query<ComparisonSelection>, QueryRejection>,
) -> ApiResult<Json<Comparisons>> {
    let Query(selection) = query?;
    paging::check_filters(&[("owner", &selection.owner), ("name", &selection.name)])?;
    let filter = JobFilter {
        status: selection.status,
        owner: selection.owner,
        name: selection.name,
        before: paging::before(selection.before.as_deref(), "comparison")?,
        limit: paging::limit(selection.limit)?,
        ..JobFilter::default()
    };
    Ok(Json(page(&state, filter).await?))
}

/// Show a comparison
#[utoipa::path(get, path = "/v1/comparisons/{id}", tag = "comparisons", params(("id" = String, Path, description = "id of the comparison")), responses(
    (status = 200, body = Comparison),
    (status = 404, description = "no such comparison"),
))]
pub async fn show(State(state): Api, Path(id): Path<String>) -> ApiResult<Json<Comparison>> {
    Ok(Json(read_comparison(&state, &id).await?))
}

/// Get the report, as in `report.json`
#[utoipa::path(get, path = "/v1/comparisons/{id}/report", tag = "comparisons", params(("id" = String, Path, description = "id of the comparison")), responses(
    (status = 200, body = Value),
    (status = 404, description = "no such comparison, or not graded yet"),
))]
pub async fn report(State(state): Api, Path(id): Path<String>) -> ApiResult<Response> {
    let stored = find(&state, &id).await?;
    let report = state.store.comparison_report(&stored.id).await?;
    let report = report.ok_or_else(not_graded)?;
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((kind, report.report).into_response())
}

/// Creates the answer, 404, for a comparison without a report.
pub fn not_graded() -> Problem {
    Problem::not_found("the comparison has not been graded yet")
        .hint("wait until its runs have ended")
}

/// Cancel a comparison with all its runs
#[utoipa::path(post, path = "/v1/comparisons/{id}/cancel", tag = "comparisons", params(("id" = String, Path, description = "id of the comparison")), responses(
    (status = 202, description = "cancelled", body = Comparison),
    (status = 404, description = "no such comparison"),
    (status = 409, description = "already ended"),
))]
pub async fn cancel(State(state): Api, Path(id): Path<String>) -> Accepted<Comparison> {
    let stored = find(&state, &id).await?;
    if !Comparison::load(&state, &stored).await?.is_open() {
        return Err(Problem::conflict("the comparison has ended"));
    }
    state.store.cancel_comparison(&stored.id).await?;
    accepted(read_comparison(&state, &id).await?)
}

/// Resume a comparison that was cancelled or ended as infrastructure
#[utoipa::path(post, path = "/v1/comparisons/{id}/retry", tag = "comparisons", params(("id" = String, Path, description = "id of the comparison")), responses(
    (status = 202, description = "queued", body = Comparison),
    (status = 404, description = "no such comparison"),
    (status = 409, description = "running, has a result, or belongs to a command"),
))]
pub async fn retry(State(state): Api, Path(id): Path<String>) -> Accepted<Comparison> {
    let stored = find(&state, &id).await?;
    let job = (JobKind::Comparison, &stored.id, stored.status);
    let hint = "retry a comparison that was cancelled or ended as infrastructure; \
                if a command started it, repeat `testwright compare`";
    super::retry(&state, job, hint).await?;
    accepted(read_comparison(&state, &id).await?)
}

async fn read_comparison(state: &ApiState, id: &str) -> ApiResult<Comparison> {
    Comparison::load(state, &find(state, id).await?).await
}
