//! The pages of matrices: the list, and each.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{Redirect, Response};
use axum::routing::{get, post};

use super::matrix_view::MatrixView;
use super::render;
use crate::daemon::api::{ApiResult, ApiState, matrices};
use crate::daemon::matrix::view::Matrix;

/// Matrices of the list.
const PAGE: u32 = 50;

pub fn router() -> Router<ApiState> {
    Router::new()
        .route("/matrices", get(list))
        .route("/matrices/{id}", get(show))
        .route("/matrices/{id}/cancel", post(cancel))
        .route("/matrices/{id}/retry", post(retry))
}

async fn list(State(state): State<ApiState>) -> ApiResult<Response> {
    Ok(render(
        &state,
        StatusCode::OK,
        include_str!("matrices.html"),
        "matrices",
        "Matrices",
        Some("poll".to_owned()),
        matrices::page(&state, None, PAGE).await?,
    ))
}

async fn show(State(state): State<ApiState>, Path(id): Path<String>) -> ApiResult<Response> {
    let stored = matrices::find(&state, &id).await?;
    let view = MatrixView::of(Matrix::of(&state.store, &stored).await?);
    let live = (!stored.status.has_ended()).then(|| "poll".to_owned());
    Ok(render(
        &state,
        StatusCode::OK,
        include_str!("matrix.html"),
        "matrix",
        "Tests and patches",
        live,
        view,
    ))
}

async fn cancel(State(state): State<ApiState>, Path(id): Path<String>) -> ApiResult<Redirect> {
    let stored = matrices::end(&state, &id).await?;
    Ok(Redirect::to(&format!("/matrices/{}", stored.id)))
}

async fn retry(State(state): State<ApiState>, Path(id): Path<String>) -> ApiResult<Redirect> {
    let stored = matrices::take_up(&state, &id).await?;
    Ok(Redirect::to(&format!("/matrices/{}", stored.id)))
}
