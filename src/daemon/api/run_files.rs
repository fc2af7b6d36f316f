//! Files that came of a run, out of the artifact store.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::runs::find;
use super::{Api, ApiResult, Problem};
use crate::artifacts::Digest;
use crate::store::StoredArtifact;

/// A file that came of a run.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Artifact {
    name: String,
    /// Of its content, in hexadecimal digits.
    sha256: String,
    bytes: i64,
}

/// The files that came of a run.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct RunArtifacts {
    /// By name; empty until the run has ended.
    artifacts: Vec<Artifact>,
}

/// List the files that came of a run
#[utoipa::path(get, path = "/v1/runs/{id}/artifacts", tag = "runs", params(("id" = String, Path, description = "of the run")), responses(
    (status = 200, body = RunArtifacts),
    (status = 404, description = "there is no such run", body = Problem, content_type = "application/problem+json"),
))]
pub async fn list(State(state): Api, Path(id): Path<String>) -> ApiResult<Json<RunArtifacts>> {
    let run = find(&state, &id).await?;
    let artifacts = state.store.artifacts(&run.id).await?;
    let shown = |artifact: StoredArtifact| Artifact {
        name: artifact.name,
        sha256: artifact.digest,
        bytes: artifact.bytes,
    };
    Ok(Json(RunArtifacts {
        artifacts: artifacts.into_iter().map(shown).collect(),
    }))
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
    let run = find(&state, &id).await?;
    let artifacts = state.store.artifacts(&run.id).await?;
    let found = artifacts.into_iter().find(|one| one.name == name);
    let missing = || Problem::new(StatusCode::NOT_FOUND, "the run has no such file");
    let found = found.ok_or_else(missing)?;
    let digest = Digest::parse(&found.digest).ok_or_else(missing)?;
    let content = match &state.artifacts {
        Some(artifacts) => artifacts.read(&digest).await?,
        None => None,
    };
    let content = content.ok_or_else(|| {
        missing().hint("its content is in the artifact store of the machine that worked on the run: give all servers and workers the same --artifacts")
    })?;
    let headers = [
        (header::CONTENT_TYPE, media_type(&name).to_owned()),
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
        _ => "application/octet-stream",
    }
}
