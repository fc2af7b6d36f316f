//! Comparisons: the list, each with where its runs are, and the report of the bench.

use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::Serialize;

use super::render;
use crate::daemon::api::comparisons::{self, Comparison};
use crate::daemon::api::{ApiResult, ApiState, Problem};

/// The report is a page of its own kind: it keeps its own policy, and gets no rights of this server's pages.
const REPORT_POLICY: &str = "sandbox allow-scripts allow-popups allow-top-navigation-by-user-activation; frame-ancestors 'none'";

#[derive(Serialize)]
struct ComparisonsPage {
    comparisons: Vec<Comparison>,
}

pub async fn list(State(state): State<ApiState>) -> ApiResult<Response> {
    let page = ComparisonsPage {
        comparisons: comparisons::all(&state).await?,
    };
    Ok(render(
        &state,
        StatusCode::OK,
        include_str!("comparisons.html"),
        "comparisons",
        "Comparisons",
        Some("poll".to_owned()),
        page,
    ))
}

pub async fn report(State(state): State<ApiState>, Path(id): Path<String>) -> ApiResult<Response> {
    let stored = comparisons::find(&state, &id).await?;
    let report = state.store.comparison_report(&stored.id).await?;
    let report = report.ok_or_else(comparisons::not_graded)?;
    let mut response = Html(report.page).into_response();
    response.headers_mut().insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(REPORT_POLICY),
    );
    Ok(response)
}

/// Where the report's links to runs lead.
pub async fn run(
    State(state): State<ApiState>,
    Path((id, path)): Path<(String, String)>,
) -> ApiResult<Redirect> {
    let stored = comparisons::find(&state, &id).await?;
    let folder = path.trim_end_matches("/trajectory.html");
    let key = format!("{}/runs/{folder}", stored.id);
    let run = state.store.run_of_key(&key).await?;
    let run = run.ok_or_else(Problem::no_run)?;
    Ok(Redirect::to(&format!("/runs/{}", run.id)))
}
