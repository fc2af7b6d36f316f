//! Comparisons: asked for, listed, shown, ended, and their reports.

use std::collections::BTreeMap;

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use testwright_evals::foreign_text::NAME;

use super::idempotency::{self, KeyHeader};
use super::{Accepted, Api, ApiResult, ApiState, Problem, accepted, paging};
use crate::authentication::Caller;
use crate::comparison::request::ComparisonRequest;
use crate::fields::shortened;
use crate::store::{
    AskedComparison, ComparisonFilter, JobKind, JobStatus, NewComparison, RunId, StoredComparison,
    now, timestamp,
};
use testwright_config::error::Error;

/// Approaches and models on a dataset, their runs made by the workers of the server's database.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Comparison {
    pub id: String,
    /// Of the dataset.
    pub name: String,
    owner: String,
    pub status: JobStatus,
    /// Why it came to no result.
    pub message: Option<String>,
    /// RFC 3339, UTC, here and below.
    pub created_at: String,
    pub ended_at: Option<String>,
    /// Approaches with their models.
    pub systems: Vec<String>,
    instances: usize,
    samples: u64,
    /// How many of its runs are where; those that were not asked for yet are missing.
    pub runs: BTreeMap<String, i64>,
    /// Dollars so far, where models have prices.
    dollars: Option<f64>,
    /// It was graded: there is a report.
    pub has_report: bool,
}

impl Comparison {
    pub async fn of(state: &ApiState, stored: &StoredComparison) -> ApiResult<Self> {
        let all = Comparison::all(state, std::slice::from_ref(stored)).await?;
        all.into_iter().next().ok_or_else(no_comparison)
    }

    /// Does it go on, or a run of it? Runs of one that is cancelled may take a while to end.
    pub fn is_open(&self) -> bool {
        !self.status.has_ended()
            || [JobStatus::Queued, JobStatus::Running]
                .iter()
                .any(|status| self.runs.contains_key(status.as_str()))
    }

    /// As they are stored: the newest first.
    async fn all(state: &ApiState, stored: &[StoredComparison]) -> ApiResult<Vec<Self>> {
        let ids: Vec<&str> = stored.iter().map(|stored| stored.id.as_str()).collect();
        let mut runs = state.store.batch_statuses(&ids).await?;
        let dollars = state.store.batch_dollars(&ids).await?;
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
            status: stored.status,
            message: stored.message.clone(),
            created_at: timestamp(stored.created_at).to_string(),
            ended_at: stored.ended_at.map(|at| timestamp(at).to_string()),
            systems: list("systems")
                .iter()
                .map(|of| shortened(&system(of), 2 * NAME))
                .collect(),
            instances: list("instances").len(),
            samples: plan["samples"].as_u64().unwrap_or_default(),
            runs,
            dollars: dollars.filter(|dollars| *dollars > 0.0),
            has_report: stored.has_report,
        }
    }
}

/// A page of comparisons, the newest first.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Comparisons {
    pub comparisons: Vec<Comparison>,
    /// For the parameter `before` of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Which comparisons are listed.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ComparisonSelection {
    status: Option<JobStatus>,
    /// Only comparisons of this owner.
    owner: Option<String>,
    /// Only comparisons on the dataset of this name.
    name: Option<String>,
    /// Only comparisons that were made before this one.
    #[param(pattern = "^[0-9a-z]{19}$")]
    before: Option<String>,
    /// Most comparisons of the page; 50 by default.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

fn no_comparison() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no comparison of this id")
        .hint("GET /v1/comparisons lists those that there are")
}

pub async fn find(state: &ApiState, id: &str) -> ApiResult<StoredComparison> {
    let id = RunId::parse(id).ok_or_else(no_comparison)?;
    state.store.comparison(&id).await?.ok_or_else(no_comparison)
}

pub async fn page(state: &ApiState, filter: ComparisonFilter) -> ApiResult<Comparisons> {
    let limit = filter.limit;
    let filter = ComparisonFilter {
        limit: limit + 1,
        ..filter
    };
    let mut found = state.store.comparisons(&filter).await?;
    let next = paging::cut(&mut found, limit).map(|comparison| comparison.id.to_string());
    Ok(Comparisons {
        comparisons: Comparison::all(state, &found).await?,
        next,
    })
}

/// Compare approaches and models
///
/// The workers make the runs and grade them. With an Idempotency-Key that was sent before, the comparison of that request is
/// the answer.
#[utoipa::path(post, path = "/v1/comparisons", tag = "comparisons", request_body = ComparisonRequest, params(KeyHeader), responses(
    (status = 201, description = "the comparison is queued", body = Comparison, headers(("Location" = String, description = "its address"))),
    (status = 200, description = "it was asked for before", body = Comparison),
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
    body: Result<Json<ComparisonRequest>, JsonRejection>,
) -> ApiResult<Response> {
    let Json(request) = body?;
    let key = idempotency::key(&headers)?;
    let (stored, is_new) = add(&state, &caller, &request, key).await?;
    let comparison = Comparison::of(&state, &stored).await?;
    let address = format!("/v1/comparisons/{}", stored.id);
    Ok(idempotency::answer(is_new, address, comparison))
}

/// Stores a comparison for the servers to see to; `false` where it was asked for before.
pub async fn add(
    state: &ApiState,
    caller: &Caller,
    request: &ComparisonRequest,
    key: Option<String>,
) -> ApiResult<(StoredComparison, bool)> {
    let failed = |error| Error::infrastructure("store the comparison").cause(error);
    let (plan, text) = tokio::task::block_in_place(|| {
        let prepared = request.check(&state.settings, &state.allowed)?;
        let plan = serde_json::to_string(&prepared.plan).map_err(failed)?;
        let text = serde_json::to_string(request).map_err(failed)?;
        Ok::<_, Error>((plan, text))
    })?;
    let asked = AskedComparison {
        comparison: NewComparison {
            id: &RunId::new(now()),
            owner: &caller.owner,
            name: &request.name,
            plan: &plan,
            max_dollars: request.limits.dollars,
        },
        request: &text,
        idempotency_key: idempotency::of_owner(caller, key),
        traceparent: caller.traceparent.clone(),
    };
    let (stored, is_new) = state.store.add_comparison(&asked).await?;
    match is_new || stored.request.as_deref() == Some(&text) {
        true => Ok((stored, is_new)),
        false => Err(idempotency::of_another_request()),
    }
}

/// List comparisons, the newest first
#[utoipa::path(get, path = "/v1/comparisons", tag = "comparisons", params(ComparisonSelection), responses(
    (status = 200, body = Comparisons),
    (status = 400, description = "a parameter is not what it should be"),
))]
pub async fn list(
    State(state): Api,
    query: Result<Query<ComparisonSelection>, QueryRejection>,
) -> ApiResult<Json<Comparisons>> {
    let Query(selection) = query?;
    paging::check_filters(&[("owner", &selection.owner), ("name", &selection.name)])?;
    let filter = ComparisonFilter {
        status: selection.status,
        owner: selection.owner,
        name: selection.name,
        before: paging::before(selection.before.as_deref(), RunId::parse, "comparison")?,
        limit: paging::limit(selection.limit)?,
    };
    Ok(Json(page(&state, filter).await?))
}

/// Show a comparison
#[utoipa::path(get, path = "/v1/comparisons/{id}", tag = "comparisons", params(("id" = String, Path, description = "of the comparison")), responses(
    (status = 200, body = Comparison),
    (status = 404, description = "there is no such comparison"),
))]
pub async fn show(State(state): Api, Path(id): Path<String>) -> ApiResult<Json<Comparison>> {
    Ok(Json(as_it_is(&state, &id).await?))
}

/// The report, as `report.json`
#[utoipa::path(get, path = "/v1/comparisons/{id}/report", tag = "comparisons", params(("id" = String, Path, description = "of the comparison")), responses(
    (status = 200, body = Value),
    (status = 404, description = "there is no such comparison, or it was not graded yet"),
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
        .hint("it is graded when its runs have ended")
}

/// End a comparison with all its runs
#[utoipa::path(post, path = "/v1/comparisons/{id}/cancel", tag = "comparisons", params(("id" = String, Path, description = "of the comparison")), responses(
    (status = 202, description = "they end", body = Comparison),
    (status = 404, description = "there is no such comparison"),
    (status = 409, description = "it has ended"),
))]
pub async fn cancel(State(state): Api, Path(id): Path<String>) -> Accepted<Comparison> {
    let stored = find(&state, &id).await?;
    if !Comparison::of(&state, &stored).await?.is_open() {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "the comparison has ended",
        ));
    }
    state.store.cancel_comparison(&stored.id).await?;
    accepted(as_it_is(&state, &id).await?)
}

/// Go on with a comparison that was cancelled, or of which something failed for a reason of the machine or of a model service
#[utoipa::path(post, path = "/v1/comparisons/{id}/retry", tag = "comparisons", params(("id" = String, Path, description = "of the comparison")), responses(
    (status = 202, description = "it is queued", body = Comparison),
    (status = 404, description = "there is no such comparison"),
    (status = 409, description = "it waits, is worked on, has a result, or is made by a command"),
))]
pub async fn retry(State(state): Api, Path(id): Path<String>) -> Accepted<Comparison> {
    let stored = find(&state, &id).await?;
    let job = (JobKind::Comparison, &stored.id, stored.status);
    let hint = "one that the server was asked for goes on where it is cancelled or ended as infrastructure; \
                `testwright compare` goes on with its own";
    super::retry(&state, job, hint).await?;
    accepted(as_it_is(&state, &id).await?)
}

async fn as_it_is(state: &ApiState, id: &str) -> ApiResult<Comparison> {
    Comparison::of(state, &find(state, id).await?).await
}
