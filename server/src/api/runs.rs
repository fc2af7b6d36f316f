//! Handlers for runs: create, list, show, cancel, retry, revise, and get results.

use axum::body::Body;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use testwright_evals::untrusted_text::MAX_NAME_CHARS;

use super::idempotency::{self, KeyHeader};
use super::long_poll;
use super::{Accepted, Api, ApiResult, ApiState, Problem, accepted, paging};
use crate::authentication::Caller;
use crate::fields::{MAX_PATH_LEN, shortened};
use crate::request::RunRequest;
use crate::store::{JobFilter, JobKind, JobStatus, NewRun, StoredRun, timestamp};
use testwright_agent::approaches::extra_inputs::hint;

/// Number of events read from the store at a time.
const EVENTS: u32 = 200;

/// A run.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Run {
    id: String,
    status: JobStatus,
    /// Title of the issue; empty until the issue is read.
    title: String,
    /// Owner of the token that created it.
    owner: String,
    repository: String,
    /// Commit of the old code; known once the run has ended.
    commit: Option<String>,
    approach: String,
    model: String,
    /// Times are RFC 3339, UTC.
    created_at: String,
    started_at: Option<String>,
    ended_at: Option<String>,
    /// Number of attempts, not counting those that returned to the queue because the machine lacked a resource.
    attempts: i64,
    /// Number of returns to the queue because the machine lacked a resource (descriptors, memory, processes, disk, database),
    /// since the last retry.
    requeues: i64,
    /// Reason of the last return; absent once the run has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    requeue_reason: Option<String>,
    /// Earliest time of the next attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<String>,
    /// Whether cancellation was requested.
    cancelling: bool,
    /// The outcome, as in `run.json`, without the test.
    outcome: Option<Value>,
    /// Model calls, tokens, dollars.
    usage: Option<Value>,
    /// Wall time of the last attempt, in seconds.
    seconds: Option<f64>,
}

impl Run {
    /// Creates the view of a stored run.
    pub fn from_stored(run: &StoredRun) -> Self {
        let record = run.record_value();
        let field = |name: &str| record.get(name).cloned();
        let outcome = record.is_object().then(|| {
            let names = [
                "outcome", "message", "hint", "reason", "limit", "findings", "minimum", "python",
                "calls",
            ];
            let members = names
                .iter()
                .filter_map(|name| Some((name.to_string(), record.get(name)?.clone())));
            Value::Object(members.collect())
        });
        let time = |milliseconds| timestamp(milliseconds).to_string();
        Run {
            id: run.id.to_string(),
            status: run.status,
            title: shortened(&run.title, MAX_NAME_CHARS),
            owner: shortened(&run.owner, MAX_NAME_CHARS),
            repository: shortened(&run.repository, MAX_PATH_LEN),
            commit: record["commit"].as_str().map(str::to_owned),
            approach: shortened(&run.approach, MAX_NAME_CHARS),
            model: shortened(&run.model, MAX_NAME_CHARS),
            created_at: time(run.created_at),
            started_at: run.started_at.map(time),
            ended_at: run.ended_at.map(time),
            attempts: run.counted_attempts(),
            requeues: run.returns,
            requeue_reason: run.return_reason().map(str::to_owned),
            not_before: run.waits_until().map(time),
            cancelling: run.cancel && !run.status.has_ended(),
            outcome,
            usage: field("usage"),
            seconds: field("seconds").and_then(|s| s.as_f64()),
        }
    }
}

/// A page of runs, newest first.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Runs {
    runs: Vec<Run>,
    /// Value of `before` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Filters of runs.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunSelection {
    status: Option<JobStatus>,
    /// List runs of this owner.
    owner: Option<String>,
    repository: Option<String>,
    approach: Option<String>,
    model: Option<String>,
    /// List runs created before this one.
    #[param(pattern = "^[0-9a-z]{19}$")]
    before: Option<String>,
    /// Maximum runs on the page; 50 by default.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

/// Query parameters for waiting for the end of a run.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunWait {
    /// Seconds to wait until the run has ended; 0 by default. If it has not, the response shows its current state.
    #[param(minimum = 0, maximum = 60)]
    wait: Option<u32>,
}

/// Returns the run with this id.
///
/// # Errors
///
/// Fails with 404 if there is no such run, or if the database query fails.
pub async fn find(state: &ApiState, id: &str) -> ApiResult<StoredRun> {
    state.store.run(id).await?.ok_or_else(Problem::no_run)
}

/// Start a run
///
/// A repeated Idempotency-Key returns the run of the first request.
#[utoipa::path(post, path = "/v1/runs", tag = "runs", request_body = RunRequest, params(KeyHeader), responses(
    (status = 201, description = "run queued", body = Run, headers(("Location" = String, description = "its address"))),
    (status = 200, description = "repeated request: the existing job", body = Run),
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
    body: Result<Json<RunRequest>, JsonRejection>,
) -> ApiResult<Response> {
    let Json(request) = body?;
    let key = idempotency::key(&headers)?;
    let (run, is_new) = add(&state, &caller, &request, key).await?;
    let address = format!("/v1/runs/{}", run.id);
    Ok(idempotency::answer(is_new, address, Run::from_stored(&run)))
}

/// Stores and queues a run; `false` if the request is repeated.
///
/// # Errors
///
/// Fails if the request is invalid, the key belongs to another request, or the database query fails.
pub async fn add(
    state: &ApiState,
    caller: &Caller,
    request: &RunRequest,
    key: Option<String>,
) -> ApiResult<(StoredRun, bool)> {
    let key = idempotency::of_owner(caller, key);
    if let Some(id) = &request.revises {
        let earlier = state.store.run(id).await?;
        if earlier.is_none_or(|run| run.patch.is_none()) {
            let detail = "`revises` is not the id of a run with a test";
            return Err(Problem::unprocessable(detail));
        }
    }
    let checked = request.check(&state.settings, &state.allowed, &caller.owner, key)?;
    let new = NewRun {
        traceparent: caller.traceparent.clone(),
        ..checked
    };
    let (run, is_new) = state.store.add_run(&new).await?;
    if !is_new && run.request != new.request {
        return Err(idempotency::of_another_request());
    }
    Ok((run, is_new))
}

/// List runs, newest first
#[utoipa::path(get, path = "/v1/runs", tag = "runs", params(RunSelection), responses(
    (status = 200, body = Runs),
    (status = 400, description = "invalid parameter"),
))]
pub async fn list(
    State(state): Api,
    query: Result<Query<RunSelection>, QueryRejection>,
) -> ApiResult<Json<Runs>> {
    let Query(selection) = query?;
    paging::check_filters(&[
        ("owner", &selection.owner),
        ("approach", &selection.approach),
        ("model", &selection.model),
        ("repository", &selection.repository),
    ])?;
    let limit = paging::limit(selection.limit)?;
    let before = paging::before(selection.before.as_deref(), "run")?;
    let filter = JobFilter {
        status: selection.status,
        owner: selection.owner,
        repository: selection.repository,
        approach: selection.approach,
        model: selection.model,
        before,
        limit: limit + 1,
        ..JobFilter::default()
    };
    let mut runs = state
        .store
        .runs(&filter, |run| Run::from_stored(&run))
        .await?;
    let next = paging::truncate_page(&mut runs, limit).map(|run| run.id.clone());
    Ok(Json(Runs { next, runs }))
}

/// Show a run, at once or after it has ended
#[utoipa::path(get, path = "/v1/runs/{id}", tag = "runs", params(("id" = String, Path, description = "id of the run"), RunWait), responses(
    (status = 200, body = Run),
    (status = 400, description = "invalid parameter"),
    (status = 404, description = "no such run"),
))]
pub async fn show(
    State(state): Api,
    Path(id): Path<String>,
    query: Result<Query<RunWait>, QueryRejection>,
) -> ApiResult<Json<Run>> {
    let Query(RunWait { wait }) = query?;
    let load = || find(&state, &id);
    let run = long_poll::poll(&state, wait, load, |run| run.status.has_ended()).await?;
    Ok(Json(Run::from_stored(&run)))
}

/// Cancel a run
#[utoipa::path(post, path = "/v1/runs/{id}/cancel", tag = "runs", params(("id" = String, Path, description = "id of the run")), responses(
    (status = 202, description = "cancelled; a running job ends within seconds", body = Run),
    (status = 404, description = "no such run"),
    (status = 409, description = "already ended"),
))]
pub async fn cancel(State(state): Api, Path(id): Path<String>) -> Accepted<Run> {
    accepted(Run::from_stored(&cancel_run(&state, &id).await?))
}

/// Cancels a run and returns it.
///
/// # Errors
///
/// Fails with 404 if there is no such run, with 409 if it has ended, or if the database query fails.
pub async fn cancel_run(state: &ApiState, id: &str) -> ApiResult<StoredRun> {
    let run = find(state, id).await?;
    super::cancel(state, JobKind::Run, &run.id).await?;
    let _ = state.changes.send(run.id);
    find(state, id).await
}

/// Resume a run that was cancelled or ended as infrastructure
#[utoipa::path(post, path = "/v1/runs/{id}/retry", tag = "runs", params(("id" = String, Path, description = "id of the run")), responses(
    (status = 202, description = "queued", body = Run),
    (status = 404, description = "no such run"),
    (status = 409, description = "running, or has a result"),
))]
pub async fn retry(State(state): Api, Path(id): Path<String>) -> Accepted<Run> {
    accepted(Run::from_stored(&retry_run(&state, &id).await?))
}

/// Queues a run again and returns it.
///
/// # Errors
///
/// Fails with 404 if there is no such run, with 409 if it is running or has a result, or if the database
/// query fails.
pub async fn retry_run(state: &ApiState, id: &str) -> ApiResult<StoredRun> {
    let run = find(state, id).await?;
    let hint = "retry only a run that was cancelled or ended as infrastructure; POST /v1/runs starts a new one";
    super::retry(state, (JobKind::Run, &run.id, run.status), hint).await?;
    let _ = state.changes.send(run.id);
    find(state, id).await
}

/// The words with which a test is revised.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Revision {
    /// Changes to make, in the user's words.
    #[schema(min_length = 1, max_length = 8_192)]
    pub hint: String,
}

/// Revise the test of an ended run, in a new run
///
/// The new run has the issue, code, approach, model and limits of the old one. The old run stays as it is. A repeated
/// Idempotency-Key returns the run of the first request.
#[utoipa::path(post, path = "/v1/runs/{id}/revise", tag = "runs", request_body = Revision, params(("id" = String, Path, description = "id of the run"), KeyHeader), responses(
    (status = 201, description = "new run queued", body = Run, headers(("Location" = String, description = "its address"))),
    (status = 200, description = "repeated request: the existing job", body = Run),
    (status = 400, description = "invalid JSON body or Idempotency-Key"),
    (status = 404, description = "no such run"),
    (status = 409, description = "no test, part of a comparison, or Idempotency-Key of another request"),
    (status = 413, description = "body too long"),
    (status = 415, description = "body is not application/json"),
    (status = 422, description = "invalid hint, hints of more than 8192 bytes together, or an approach that cannot revise"),
))]
pub async fn revise(
    State(state): Api,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Result<Json<Revision>, JsonRejection>,
) -> ApiResult<Response> {
    let Json(revision) = body?;
    let key = idempotency::key(&headers)?;
    let (run, is_new) = revise_run(&state, &caller, &id, &revision.hint, key).await?;
    let address = format!("/v1/runs/{}", run.id);
    Ok(idempotency::answer(is_new, address, Run::from_stored(&run)))
}

/// Stores and queues a run that revises the test of another one; `false` if the request is repeated.
///
/// # Errors
///
/// Fails like [`add`], or if there is no such run, or it has no test or is part of a comparison.
pub async fn revise_run(
    state: &ApiState,
    caller: &Caller,
    id: &str,
    words: &str,
    key: Option<String>,
) -> ApiResult<(StoredRun, bool)> {
    let run = find(state, id).await?;
    if run.patch.is_none() {
        return Err(Problem::conflict("the run has no test to revise")
            .hint("choose a run that ended with a test"));
    }
    let earlier: RunRequest = serde_json::from_str(&run.request).map_err(|_| {
        let detail = "the run is part of a comparison, so its test cannot be revised";
        Problem::conflict(detail)
    })?;
    let commit = run.record_value()["commit"].as_str().map(str::to_owned);
    let request = RunRequest {
        hint: Some(hint::join(earlier.hint.as_deref(), words)?),
        commit: commit.or(earlier.commit),
        approach: Some(run.approach),
        // The approach has the options of the level.
        effort: None,
        model: Some(run.model),
        revises: Some(run.id.to_string()),
        ..earlier
    };
    add(state, caller, &request, key).await
}

/// Get the test, as a patch for `git apply`
#[utoipa::path(get, path = "/v1/runs/{id}/patch", tag = "runs", params(("id" = String, Path, description = "id of the run")), responses(
    (status = 200, content_type = "text/x-diff", body = String),
    (status = 404, description = "no such run, or no test"),
))]
pub async fn patch(State(state): Api, Path(id): Path<String>) -> ApiResult<Response> {
    let run = find(&state, &id).await?;
    let patch = run.patch.ok_or_else(|| nothing(run.status, "test"))?;
    Ok((
        [(header::CONTENT_TYPE, "text/x-diff; charset=utf-8")],
        patch,
    )
        .into_response())
}

/// Get the evidence of the test
#[utoipa::path(get, path = "/v1/runs/{id}/evidence", tag = "runs", params(("id" = String, Path, description = "id of the run")), responses(
    (status = 200, body = Value),
    (status = 404, description = "no such run, or no evidence"),
))]
pub async fn evidence(State(state): Api, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    let run = find(&state, &id).await?;
    let mut record = run.record_value();
    let evidence = record.get_mut("evidence").map(Value::take);
    evidence
        .map(Json)
        .ok_or_else(|| nothing(run.status, "evidence"))
}

/// Get the trajectory so far, as JSON lines
#[utoipa::path(get, path = "/v1/runs/{id}/trajectory", tag = "runs", params(("id" = String, Path, description = "id of the run")), responses(
    (status = 200, content_type = "application/x-ndjson", body = String),
    (status = 404, description = "no such run"),
))]
pub async fn trajectory(State(state): Api, Path(id): Path<String>) -> ApiResult<Response> {
    let run = find(&state, &id).await?;
    let pages = futures::stream::try_unfold((state, run.id, 0), |(state, id, last)| async move {
        let page = state.store.events(&id, last, EVENTS).await;
        let page = page.map_err(|error| std::io::Error::other(error.message))?;
        let Some(end) = page.last().map(|event| event.number) else {
            return Ok::<_, std::io::Error>(None);
        };
        let lines: String = page.into_iter().map(|event| event.line + "\n").collect();
        Ok(Some((lines, (state, id, end))))
    });
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((kind, Body::from_stream(pages)).into_response())
}

fn nothing(status: JobStatus, what: &str) -> Problem {
    let problem = Problem::not_found(format!("the run has no {what}"));
    match status.has_ended() {
        true => problem,
        false => problem.hint("wait until it has ended"),
    }
}
