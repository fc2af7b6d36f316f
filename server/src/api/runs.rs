//! Runs: made, listed, shown, ended, and what came of them.

use axum::body::Body;
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
use crate::fields::{MAX_PATH_LEN, shortened};
use crate::request::RunRequest;
use crate::store::{Filter, JobKind, JobStatus, NewRun, RunId, StoredRun, timestamp};

/// Events that are read from the store at one time.
const EVENTS: u32 = 200;

/// A run.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Run {
    id: String,
    status: JobStatus,
    /// Of the issue; empty until it was read.
    title: String,
    /// Who asked for it.
    owner: String,
    repository: String,
    /// The old code on which the test was written; known once the run has ended.
    commit: Option<String>,
    approach: String,
    model: String,
    /// RFC 3339, UTC, here and below.
    created_at: String,
    started_at: Option<String>,
    ended_at: Option<String>,
    /// How often a worker has taken it, without those that went back to the queue because the machine lacked something.
    attempts: i64,
    /// How often it went back to the queue because the machine lacked something (descriptors, memory, processes, disk, database),
    /// since it was last retried.
    returns: i64,
    /// Why it did so last; absent once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    return_reason: Option<String>,
    /// It waits until then at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<String>,
    /// It is to end.
    cancelling: bool,
    /// What became of it, as in `run.json`, without the test.
    outcome: Option<Value>,
    /// Model calls, tokens, dollars.
    usage: Option<Value>,
    /// Wall time of the last attempt.
    seconds: Option<f64>,
}

impl Run {
    pub fn of(run: &StoredRun) -> Self {
        let record = run.record_value();
        let field = |name: &str| record.get(name).cloned();
        let outcome = record.is_object().then(|| {
            let names = [
                "outcome", "message", "hint", "reason", "limit", "findings", "minimum", "python",
                "tried",
            ];
            let known = names
                .iter()
                .filter_map(|name| Some((name.to_string(), record.get(name)?.clone())));
            Value::Object(known.collect())
        });
        let time = |milliseconds| timestamp(milliseconds).to_string();
        Run {
            id: run.id.to_string(),
            status: run.status,
            title: shortened(&run.title, NAME),
            owner: shortened(&run.owner, NAME),
            repository: shortened(&run.repository, MAX_PATH_LEN),
            commit: record["commit"].as_str().map(str::to_owned),
            approach: shortened(&run.approach, NAME),
            model: shortened(&run.model, NAME),
            created_at: time(run.created_at),
            started_at: run.started_at.map(time),
            ended_at: run.ended_at.map(time),
            attempts: run.counted_attempts(),
            returns: run.returns,
            return_reason: run.return_reason().map(str::to_owned),
            not_before: run.waits_until().map(time),
            cancelling: run.cancel && !run.status.has_ended(),
            outcome,
            usage: field("usage"),
            seconds: field("seconds").and_then(|s| s.as_f64()),
        }
    }
}

/// A page of runs, the newest first.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Runs {
    runs: Vec<Run>,
    /// For the parameter `before` of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Which runs are listed.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Selection {
    status: Option<JobStatus>,
    /// Only runs of this owner.
    owner: Option<String>,
    repository: Option<String>,
    approach: Option<String>,
    model: Option<String>,
    /// Only runs that were made before this one.
    #[param(pattern = "^[0-9a-z]{19}$")]
    before: Option<String>,
    /// Most runs of the page; 50 by default.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

pub async fn find(state: &ApiState, id: &str) -> ApiResult<StoredRun> {
    let id = RunId::parse(id).ok_or_else(Problem::no_run)?;
    state.store.run(&id).await?.ok_or_else(Problem::no_run)
}

/// Ask for a test
///
/// With an Idempotency-Key that was sent before, the run of that request is the answer.
#[utoipa::path(post, path = "/v1/runs", tag = "runs", request_body = RunRequest, params(KeyHeader), responses(
    (status = 201, description = "the run is queued", body = Run, headers(("Location" = String, description = "its address"))),
    (status = 200, description = "it was asked for before", body = Run),
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
    body: Result<Json<RunRequest>, JsonRejection>,
) -> ApiResult<Response> {
    let Json(request) = body?;
    let key = idempotency::key(&headers)?;
    let (run, is_new) = add(&state, &caller, &request, key).await?;
    let address = format!("/v1/runs/{}", run.id);
    Ok(idempotency::answer(is_new, address, Run::of(&run)))
}

/// Stores a run and queues it; `false` where it was asked for before.
pub async fn add(
    state: &ApiState,
    caller: &Caller,
    request: &RunRequest,
    key: Option<String>,
) -> ApiResult<(StoredRun, bool)> {
    let key = idempotency::of_owner(caller, key);
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

/// List runs, the newest first
#[utoipa::path(get, path = "/v1/runs", tag = "runs", params(Selection), responses(
    (status = 200, body = Runs),
    (status = 400, description = "a parameter is not what it should be"),
))]
pub async fn list(
    State(state): Api,
    query: Result<Query<Selection>, QueryRejection>,
) -> ApiResult<Json<Runs>> {
    let Query(selection) = query?;
    paging::check_filters(&[
        ("owner", &selection.owner),
        ("approach", &selection.approach),
        ("model", &selection.model),
        ("repository", &selection.repository),
    ])?;
    let limit = paging::limit(selection.limit)?;
    let before = paging::before(selection.before.as_deref(), RunId::parse, "run")?;
    let mut runs = state
        .store
        .runs(&Filter {
            status: selection.status,
            owner: selection.owner,
            repository: selection.repository,
            approach: selection.approach,
            model: selection.model,
            batch: None,
            before,
            limit: limit + 1,
        })
        .await?;
    let next = paging::cut(&mut runs, limit).map(|run| run.id.to_string());
    Ok(Json(Runs {
        next,
        runs: runs.iter().map(Run::of).collect(),
    }))
}

/// Show a run
#[utoipa::path(get, path = "/v1/runs/{id}", tag = "runs", params(("id" = String, Path, description = "of the run")), responses(
    (status = 200, body = Run),
    (status = 404, description = "there is no such run"),
))]
pub async fn show(State(state): Api, Path(id): Path<String>) -> ApiResult<Json<Run>> {
    Ok(Json(Run::of(&find(&state, &id).await?)))
}

/// End a run: one that waits at once, one that is worked on within seconds
#[utoipa::path(post, path = "/v1/runs/{id}/cancel", tag = "runs", params(("id" = String, Path, description = "of the run")), responses(
    (status = 202, description = "it ends", body = Run),
    (status = 404, description = "there is no such run"),
    (status = 409, description = "it has ended"),
))]
pub async fn cancel(State(state): Api, Path(id): Path<String>) -> Accepted<Run> {
    accepted(Run::of(&end(&state, &id).await?))
}

/// The run, which is to end from now on.
pub async fn end(state: &ApiState, id: &str) -> ApiResult<StoredRun> {
    let run = find(state, id).await?;
    super::cancel(state, JobKind::Run, &run.id).await?;
    let _ = state.changes.send(run.id);
    find(state, id).await
}

/// Go on with a run that was cancelled, or that ended for a reason of the machine or of the model service
#[utoipa::path(post, path = "/v1/runs/{id}/retry", tag = "runs", params(("id" = String, Path, description = "of the run")), responses(
    (status = 202, description = "it is queued", body = Run),
    (status = 404, description = "there is no such run"),
    (status = 409, description = "it waits, is worked on, or has a result"),
))]
pub async fn retry(State(state): Api, Path(id): Path<String>) -> Accepted<Run> {
    accepted(Run::of(&take_up(&state, &id).await?))
}

/// The run, which waits again.
pub async fn take_up(state: &ApiState, id: &str) -> ApiResult<StoredRun> {
    let run = find(state, id).await?;
    let hint = "only a run that is cancelled or ended as infrastructure goes on; POST /v1/runs makes a new one";
    super::retry(state, (JobKind::Run, &run.id, run.status), hint).await?;
    let _ = state.changes.send(run.id);
    find(state, id).await
}

/// The test, as a patch for `git apply`
#[utoipa::path(get, path = "/v1/runs/{id}/patch", tag = "runs", params(("id" = String, Path, description = "of the run")), responses(
    (status = 200, content_type = "text/x-diff", body = String),
    (status = 404, description = "there is no such run, or it has no test"),
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

/// What speaks for the test
#[utoipa::path(get, path = "/v1/runs/{id}/evidence", tag = "runs", params(("id" = String, Path, description = "of the run")), responses(
    (status = 200, body = Value),
    (status = 404, description = "there is no such run, or it has no evidence"),
))]
pub async fn evidence(State(state): Api, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    let run = find(&state, &id).await?;
    let mut record = run.record_value();
    let evidence = record.get_mut("evidence").map(Value::take);
    evidence
        .map(Json)
        .ok_or_else(|| nothing(run.status, "evidence"))
}

/// All that happened so far, a line of JSON each
#[utoipa::path(get, path = "/v1/runs/{id}/trajectory", tag = "runs", params(("id" = String, Path, description = "of the run")), responses(
    (status = 200, content_type = "application/x-ndjson", body = String),
    (status = 404, description = "there is no such run"),
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
    let problem = Problem::new(StatusCode::NOT_FOUND, format!("the run has no {what}"));
    match status.has_ended() {
        true => problem,
        false => problem.hint("it has not ended"),
    }
}
