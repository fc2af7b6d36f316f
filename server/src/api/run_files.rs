//! Handlers for files of runs and comparisons, which are in the artifact store.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::IntoResponses;
use utoipa::openapi::{
    ContentBuilder, Header, ObjectBuilder, RefOr, Response as ResponseDescription, ResponseBuilder,
    Type,
};

use super::{Api, ApiResult, ApiState, Problem, comparisons, runs};
use crate::artifacts::Digest;
use crate::store::{JobId, StoredArtifact};

/// Media types by file extension. Any other file is served as bytes.
const MEDIA_TYPES: [(&str, &str); 7] = [
    ("json", "application/json"),
    ("jsonl", JSON_LINES),
    ("patch", "text/x-diff; charset=utf-8"),
    ("log", "text/plain; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("md", "text/markdown; charset=utf-8"),
    ("gz", "application/gzip"),
];
const JSON_LINES: &str = "application/x-ndjson";
const BYTES: &str = "application/octet-stream";

/// A file of a run or a comparison.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Artifact {
    name: String,
    /// SHA-256 hash of its content, as hexadecimal digits.
    sha256: String,
    bytes: i64,
}

/// The files of a run or a comparison.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct ArtifactList {
    /// Sorted by name. Empty until the job has ended, and after the files were removed for space.
    artifacts: Vec<Artifact>,
}

async fn list(state: &ApiState, id: &JobId) -> ApiResult<Json<ArtifactList>> {
    let to_artifact = |artifact: StoredArtifact| Artifact {
        name: artifact.name,
        sha256: artifact.digest,
        bytes: artifact.bytes,
    };
    let artifacts = state.store.artifacts(id).await?;
    Ok(Json(ArtifactList {
        artifacts: artifacts.into_iter().map(to_artifact).collect(),
    }))
}

async fn download(state: &ApiState, id: &JobId, name: &str) -> ApiResult<Response> {
    let artifacts = state.store.artifacts(id).await?;
    let artifact = artifacts.into_iter().find(|one| one.name == name);
    let missing = || Problem::not_found("no file has this name");
    let artifact = artifact.ok_or_else(missing)?;
    let digest = Digest::parse(&artifact.digest).ok_or_else(missing)?;
    let content = match &state.artifacts {
        Some(artifacts) => artifacts.read(&digest).await?,
        None => None,
    };
    let content = content.ok_or_else(|| {
        missing().hint("use the same --artifacts for all servers and workers: its content is in the store of another machine")
    })?;
    let headers = [
        (header::CONTENT_TYPE, media_type(name).to_owned()),
        (header::CONTENT_LENGTH, artifact.bytes.to_string()),
        (header::ETAG, format!("\"{}\"", digest.as_str())),
    ];
    Ok((headers, Body::from_stream(content)).into_response())
}

fn media_type(name: &str) -> &'static str {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let entry = MEDIA_TYPES
        .iter()
        .find(|(extension, _)| *extension == ending);
    entry.map_or(BYTES, |(_, media_type)| media_type)
}

/// The response with a file, for the API description.
struct Download;

impl IntoResponses for Download {
    fn responses() -> BTreeMap<String, RefOr<ResponseDescription>> {
        let mut response = ResponseBuilder::new()
            .description("its content; the media type depends on the file extension")
            .header("ETag", Header::default());
        for media_type in MEDIA_TYPES
            .map(|(_, listed_type)| listed_type)
            .into_iter()
            .chain([BYTES])
        {
            let (media_type, _) = media_type.split_once(';').unwrap_or((media_type, ""));
            let is_text = media_type.starts_with("text/") || media_type == JSON_LINES;
            let text = ObjectBuilder::new().schema_type(Type::String);
            let content = ContentBuilder::new().schema(is_text.then_some(text));
            response = response.content(media_type, content.build());
        }
        BTreeMap::from([("200".to_owned(), response.build().into())])
    }
}

/// List the files of a run
#[utoipa::path(get, path = "/v1/runs/{id}/artifacts", operation_id = "list_artifacts", tag = "runs", params(("id" = String, Path, description = "id of the run")), responses(
    (status = 200, body = ArtifactList),
    (status = 404, description = "no such run"),
))]
pub async fn list_of_run(
    State(state): Api,
    Path(id): Path<String>,
) -> ApiResult<Json<ArtifactList>> {
    list(&state, &runs::find(&state, &id).await?.id).await
}

/// Download a file of a run
#[utoipa::path(get, path = "/v1/runs/{id}/artifacts/{name}", operation_id = "download_artifact", tag = "runs", params(
    ("id" = String, Path, description = "id of the run"),
    ("name" = String, Path, description = "name of the file"),
), responses(
    Download,
    (status = 404, description = "no such run, or no such file"),
))]
pub async fn download_of_run(
    State(state): Api,
    Path((id, name)): Path<(String, String)>,
) -> ApiResult<Response> {
    download(&state, &runs::find(&state, &id).await?.id, &name).await
}

/// List the files of a comparison
///
/// For comparisons run by a server: tables, predictions, the outcome of each run, grading results with their logs.
#[utoipa::path(get, path = "/v1/comparisons/{id}/artifacts", operation_id = "list_artifacts", tag = "comparisons", params(("id" = String, Path, description = "id of the comparison")), responses(
    (status = 200, body = ArtifactList),
    (status = 404, description = "no such comparison"),
))]
pub async fn list_of_comparison(
    State(state): Api,
    Path(id): Path<String>,
) -> ApiResult<Json<ArtifactList>> {
    list(&state, &comparisons::find(&state, &id).await?.id).await
}

/// Download a file of a comparison
#[utoipa::path(get, path = "/v1/comparisons/{id}/artifacts/{name}", operation_id = "download_artifact", tag = "comparisons", params(
    ("id" = String, Path, description = "id of the comparison"),
    ("name" = String, Path, description = "name of the file"),
), responses(
    Download,
    (status = 404, description = "no such comparison, or no such file"),
))]
pub async fn download_of_comparison(
    State(state): Api,
    Path((id, name)): Path<(String, String)>,
) -> ApiResult<Response> {
    download(&state, &comparisons::find(&state, &id).await?.id, &name).await
}
