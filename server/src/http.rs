//! The router for all HTTP routes, with the checks for each request.

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::routing::get;
use axum::{Router, middleware};

use super::api::{self, metrics};
use super::github::{self, GitHub};
use super::mcp::{self, McpParts};
use super::problem;
use super::request_body::{self, BodyLimits};
use super::telemetry::observe_request;
use super::{authentication, origin, pages, response_headers};

pub(crate) fn router(
    parts: Arc<McpParts>,
    github: Option<GitHub>,
    options: Vec<pages::OptionRow>,
) -> Router {
    let state = parts.api.clone();
    api::router()
        .merge(pages::router(options))
        .merge(github::router(github))
        .merge(mcp::router(parts))
        .route("/metrics", get(metrics::show))
        .fallback(problem::not_found)
        .method_not_allowed_fallback(problem::method_not_allowed)
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(
            BodyLimits::default(),
            request_body::limit,
        ))
        .layer(middleware::from_fn_with_state(
            state.clone(),
            authentication::check,
        ))
        .layer(middleware::from_fn_with_state(state.clone(), origin::check))
        .layer(middleware::from_fn(response_headers::finish_response))
        .layer(middleware::from_fn_with_state(
            state.clone(),
            pages::answer_browsers,
        ))
        .layer(middleware::from_fn_with_state(
            state.telemetry.clone(),
            observe_request,
        ))
        .with_state(state)
}
