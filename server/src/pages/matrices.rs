//! Pages of matrices: the list, and each matrix.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::response::{Redirect, Response};
use axum::routing::{get, post};
use serde_json::json;
use testwright_evals::untrusted_text::MAX_NAME_CHARS;

use super::matrix_origin::MatrixOrigin;
use super::matrix_view::MatrixView;
use super::{ListQuery, PAGE, render, template};
use crate::api::{ApiResult, ApiState, matrices, paging};
use crate::fields::shortened;
use crate::matrix::request::MatrixInput;
use crate::matrix::view::{self, Matrix};
use crate::store::{JobFilter, StoredMatrix, timestamp};
use testwright_config::error::Result;

pub(super) fn router() -> Router<ApiState> {
    Router::new()
        .route("/matrices", get(list))
        .route("/matrices/{id}", get(show))
        .route("/matrices/{id}/cancel", post(cancel))
        .route("/matrices/{id}/retry", post(retry))
}

/// Drops the texts of the tests and patches, which a list does not show.
fn without_patches(stored: StoredMatrix) -> Result<(StoredMatrix, MatrixInput)> {
    let mut input = view::input(&stored)?;
    for named_patch in input.tests.iter_mut().chain(&mut input.patches) {
        named_patch.patch = String::new();
    }
    let request = String::new();
    Ok((StoredMatrix { request, ..stored }, input))
}

async fn list(
    State(state): State<ApiState>,
    Query(query): Query<ListQuery>,
) -> ApiResult<Response> {
    let store = &state.store;
    let filter = JobFilter {
        before: query.before(),
        limit: PAGE + 1,
        ..JobFilter::default()
    };
    let read_matrices = store.matrices(&filter, without_patches).await?;
    let mut stored_matrices = read_matrices.into_iter().collect::<Result<Vec<_>>>()?;
    let next = paging::truncate_page(&mut stored_matrices, PAGE);
    let next = next.map(|(matrix, _)| matrix.id.to_string());
    let counts = match (stored_matrices.last(), stored_matrices.first()) {
        (Some((oldest, _)), Some((newest, _))) => store.cell_counts(&oldest.id, &newest.id).await?,
        _ => BTreeMap::new(),
    };
    let mut matrices = Vec::new();
    for (stored, input) in &stored_matrices {
        let origin = MatrixOrigin::load(store, input).await?;
        matrices.push(json!({
            "id": stored.id.as_str(),
            "title": origin.title,
            "run": origin.run,
            "status": stored.status.as_str(),
            "repository": shortened(&stored.repository, MAX_NAME_CHARS),
            "created_at": timestamp(stored.created_at).to_string(),
            "tests": input.tests.len(),
            "patches": input.patches.len(),
            "known_cells": counts.get(stored.id.as_str()).copied().unwrap_or_default(),
            "all_cells": input.tests.len() * input.patches.len(),
        }));
    }
    let live = filter.before.is_none().then(|| "poll".to_owned());
    let page = json!({ "matrices": matrices, "next": next });
    Ok(render(
        &state,
        template!("matrices"),
        "Matrices",
        live,
        page,
    ))
}

async fn show(State(state): State<ApiState>, Path(id): Path<String>) -> ApiResult<Response> {
    let stored = matrices::find(&state, &id).await?;
    let origin = MatrixOrigin::load(&state.store, &view::input(&stored)?).await?;
    let title = origin.title.clone();
    let view = MatrixView::new(Matrix::load(&state.store, &stored).await?, origin);
    let live = (!stored.status.has_ended()).then(|| "poll".to_owned());
    Ok(render(&state, template!("matrix"), &title, live, view))
}

async fn cancel(State(state): State<ApiState>, Path(id): Path<String>) -> ApiResult<Redirect> {
    let stored = matrices::cancel_matrix(&state, &id).await?;
    Ok(Redirect::to(&format!("/matrices/{}", stored.id)))
}

async fn retry(State(state): State<ApiState>, Path(id): Path<String>) -> ApiResult<Redirect> {
    let stored = matrices::retry_matrix(&state, &id).await?;
    Ok(Redirect::to(&format!("/matrices/{}", stored.id)))
}
