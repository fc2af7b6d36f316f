//! Error pages: browsers get problems as pages, with a link back and the same status. After a login, the browser
//! returns to the requested page.

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{login, render, render_with_status, template};
use crate::api::ApiState;
use crate::authentication::{LOGIN, accepts_pages};
use crate::store::JobId;

/// Maximum bytes of a problem.
const MAX_PROBLEM_LEN: usize = 64 << 10;
/// Prefixes of routes for programs, which get no pages.
const API_PREFIXES: [&str; 3] = ["/v1/", "/mcp", "/metrics"];

/// Converts problems to pages for browsers.
pub(crate) async fn answer_browsers(
    State(state): State<ApiState>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path().to_owned();
    if !accepts_pages(request.headers()) || API_PREFIXES.iter().any(|of| path.starts_with(of)) {
        return next.run(request).await;
    }
    let target = match *request.method() {
        Method::GET => request.uri().path_and_query().map(ToString::to_string),
        _ => None,
    };
    let is_elsewhere = comes_from_elsewhere(request.headers());
    let mut response = next.run(request).await;
    if let Some(target) = target.filter(|_| leads_to_login(&response, &path)) {
        if let Some(own_target) = login::own_path(&target).filter(|_| is_elsewhere) {
            return repeat_from_own_page(&state, own_target);
        }
        if let Some(Ok(address)) = login::address(&target).map(HeaderValue::try_from) {
            response.headers_mut().insert(header::LOCATION, address);
        }
        return response;
    }
    let status = response.status();
    let is_problem = status.is_client_error() || status.is_server_error();
    match is_problem && !is_page(response.headers()) {
        true => page(&state, &path, response).await,
        false => response,
    }
}

fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

fn leads_to_login(response: &Response, path: &str) -> bool {
    let location = response.headers().get(header::LOCATION);
    let is_login = location.is_some_and(|location| location.as_bytes() == LOGIN.as_bytes());
    is_login && path != LOGIN && response.status() == StatusCode::SEE_OTHER
}

/// Returns whether a link comes from another site, or from a report, which has no rights here. The browser then sends
/// no cookie.
fn comes_from_elsewhere(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site");
    site.is_some_and(|site| site == "cross-site" || site == "same-site")
}

/// Makes the browser repeat the request from a page of this server, so that it sends its cookie.
fn repeat_from_own_page(state: &ApiState, target: &str) -> Response {
    let page = json!({ "asked": target });
    let mut response = render(state, template!("again"), "One moment", None, page);
    if let Ok(refresh) = HeaderValue::try_from(format!("0; url={target}")) {
        response.headers_mut().insert(header::REFRESH, refresh);
    }
    response
}

/// The parts of a problem that a page shows.
#[derive(Debug, Default, Deserialize)]
struct ProblemText {
    detail: String,
    #[serde(default)]
    hint: Option<String>,
}

async fn page(state: &ApiState, path: &str, response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let status = parts.status;
    let problem = read_problem(body).await;
    let heading = status.canonical_reason().unwrap_or("Error");
    let content = json!({
        "heading": heading,
        "detail": sentence(&problem.detail),
        "hint": problem.hint.as_deref().and_then(for_people),
        "back": BackLink::from(path, status),
    });
    let template = template!("problem");
    let page = render_with_status(state, status, template, heading, None, content);
    // Headers of the status, such as `Allow` and `Retry-After`, are kept.
    let (of_page, body) = page.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.extend(of_page.headers);
    (parts.status, parts.headers, body).into_response()
}

/// Reads a problem of the API; other responses contribute their text.
async fn read_problem(body: Body) -> ProblemText {
    let body = to_bytes(body, MAX_PROBLEM_LEN).await.unwrap_or_default();
    serde_json::from_slice(&body).unwrap_or_else(|_| ProblemText {
        detail: String::from_utf8_lossy(&body).trim().to_owned(),
        hint: None,
    })
}

/// Removes the parts of a hint that concern the API.
fn for_people(hint: &str) -> Option<String> {
    let parts = hint.split("; ").filter(|part| !part.contains("/v1/"));
    let parts: Vec<&str> = parts.collect();
    (!parts.is_empty()).then(|| sentence(&parts.join("; ")))
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let Some(first) = chars.next() else {
        return String::new();
    };
    let end = match text.ends_with(['.', '!', '?', '…']) {
        true => "",
        false => ".",
    };
    format!("{}{}{end}", first.to_uppercase(), chars.as_str())
}

/// The link back.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct BackLink {
    address: String,
    name: &'static str,
}

impl BackLink {
    fn from(path: &str, status: StatusCode) -> Self {
        let to = |address: &str, name| BackLink {
            address: address.to_owned(),
            name,
        };
        if status == StatusCode::UNAUTHORIZED {
            return to(LOGIN, "Log in");
        }
        let mut parts = path.trim_start_matches('/').splitn(3, '/');
        let (kind, id) = (
            parts.next().unwrap_or_default(),
            parts.next().unwrap_or_default(),
        );
        // Pages below a job lead back to it.
        let is_below = parts.next().is_some() && JobId::parse(id).is_some();
        let item_link = |name| to(&format!("/{kind}/{id}"), name);
        match kind {
            "runs" if is_below => item_link("Back to the run"),
            "comparisons" if is_below => item_link("Back to the comparison"),
            "matrices" if is_below => item_link("Back to the matrix"),
            "comparisons" if id == "new" => item_link("Back to the form"),
            "new" => to("/new", "Back to the form"),
            "comparisons" => to("/comparisons", "All comparisons"),
            "matrices" => to("/matrices", "All matrices"),
            "gradings" | "workers" => to("/workers", "Workers and queue"),
            _ => to("/", "All runs"),
        }
    }
}

#[cfg(test)]
mod tests;
