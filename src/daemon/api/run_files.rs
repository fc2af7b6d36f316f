//! Files that came of runs and of comparisons, out of the artifact store.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::{Api, ApiResult, ApiState, Problem, comparisons, runs};
use crate::artifacts::Digest;
use crate::store::{RunId, StoredArtifact};

/// A file that came of a run or of a comparison.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Artifact {
    name: String,
    /// Of its content, in hexadecimal digits.
    sha256: String,
    bytes: i64,
}

/// Files that came of a run or of a comparison.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct ArtifactList {
    /// By name; empty until it has ended.
    artifacts: Vec<Artifact>,
}

impl ArtifactList {
    async fn of(state: &ApiState, id: &RunId) -> ApiResult<Json<Self>> {
        let shown = |artifact: StoredArtifact| Artifact {
            name: artifact.name,
            sha256: artifact.digest,
            bytes: artifact.bytes,
        };
        let artifacts = state.store.artifacts(id).await?;
        Ok(Json(ArtifactList {
            artifacts: artifacts.into_iter().map(shown).collect(),
        }))
    }
}

/// List the files that came of a run
#[utoipa::path(get, path = "/v1/runs/{id}/artifacts", tag = "runs", params(("id" = String, Path, description = "of the run")), responses(
    (status = 200, body = ArtifactList),
    (status = 404, description = "there is no such run", body = Problem, content_type = "application/problem+json"),
))]
pub async fn list(State(state): Api, Path(id): Path<String>) -> ApiResult<Json<ArtifactList>> {
    let run = runs::find(&state, &id).await?;
    ArtifactList::of(&state, &run.id).await
}

/// A file that came of a run
#[utoipa::path(get, path = "/v1/runs/{id}/artifacts/{name}", tag = "runs", params(
    ("id" = String, Path, description = "of the run"),
    ("name" = String, Path, description = "of the file"),
), responses(
    (status = 200, content_type = "application/octet-stream", body = String),
    (status = 404, description = "there is no such run, or it has no such file", body = Problem, content_type = "application/problem+json"),
))]
pub async fn download(
    State(state): Api,
    Path((id, name)): Path<(String, String)>,
) -> ApiResult<Response> {
    let run = runs::find(&state, &id).await?;
    content(&state, &run.id, &name).await
}

/// List the files that came of a comparison
///
/// Of one that a server was asked for: tables, predictions, what became of each run, results of grading with their logs.
#[utoipa::path(get, path = "/v1/comparisons/{id}/artifacts", tag = "comparisons", params(("id" = String, Path, description = "of the comparison")), responses(
    (status = 200, body = ArtifactList),
    (status = 404, description = "there is no such comparison", body = Problem, content_type = "application/problem+json"),
))]
pub async fn list_of_comparison(
    State(state): Api,
    Path(id): Path<String>,
) -> ApiResult<Json<ArtifactList>> {
    let comparison = comparisons::find(&state, &id).await?;
    ArtifactList::of(&state, &comparison.id).await
}

/// A file that came of a comparison
#[utoipa::path(get, path = "/v1/comparisons/{id}/artifacts/{name}", tag = "comparisons", params(
    ("id" = String, Path, description = "of the comparison"),
    ("name" = String, Path, description = "of the file"),
), responses(
    (status = 200, content_type = "application/octet-stream", body = String),
    (status = 404, description = "there is no such comparison, or it has no such file", body = Problem, content_type = "application/problem+json"),
))]
pub async fn download_of_comparison(
    State(state): Api,
    Path((id, name)): Path<(String, String)>,
) -> ApiResult<Response> {
    let comparison = comparisons::find(&state, &id).await?;
    content(&state, &comparison.id, &name).await
}

async fn content(state: &ApiState, id: &RunId, name: &str) -> ApiResult<Response> {
    let artifacts = state.store.artifacts(id).await?;
    let found = artifacts.into_iter().find(|one| one.name == name);
    let missing = || Problem::new(StatusCode::NOT_FOUND, "there is no file of this name");
    let found = found.ok_or_else(missing)?;
    let digest = Digest::parse(&found.digest).ok_or_else(missing)?;
    let content = match &state.artifacts {
        Some(artifacts) => artifacts.read(&digest).await?,
        None => None,
    };
    let content = content.ok_or_else(|| {
        missing().hint("its content is in the artifact store of the machine that made it: give all servers and workers the same --artifacts")
    })?;
    let headers = [
        (header::CONTENT_TYPE, media_type(name).to_owned()),
        (header::CONTENT_LENGTH, found.bytes.to_string()),
        (header::ETAG, format!("\"{}\"", digest.as_str())),
    ];
    Ok((headers, Body::from_stream(content)).into_response())
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("json") => "application/json",
        Some("jsonl") => "application/x-ndjson",
        Some("patch") => "text/x-diff; charset=utf-8",
        Some("log") => "text/plain; charset=utf-8",
        Some("csv") => "text/csv; charset=utf-8",
        Some("md") => "text/markdown; charset=utf-8",
        Some("gz") => "application/gzip",
        _ => "application/octet-stream",
    }
}
