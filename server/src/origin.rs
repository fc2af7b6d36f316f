//! Refuses requests from other web pages: browsers send these to loopback too, and a foreign host name can resolve to
//! loopback.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use testwright_sandboxes::http_client::without_port;

use super::access::Access;
use super::authentication;
use super::problem::Problem;
use super::state::ApiState;

/// Headers that proxies add to forwarded requests.
const FORWARDED: [&str; 4] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-real-ip",
];

/// Header in which a browser states where a request comes from. Pages cannot change it.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Values for a page of this server, and for an address typed by the user.
const OWN_SITE: [&str; 2] = ["same-origin", "none"];

pub(crate) async fn check(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    // Probes use an address instead of a name. GitHub calls the public name of this machine, and its requests are
    // signed.
    let is_signed = request.method() == Method::POST && path == authentication::GITHUB_WEBHOOK;
    if is_signed || authentication::is_probe(path) {
        return next.run(request).await;
    }
    match refusal(&state.access, request.method(), path, request.headers()) {
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    }
}

fn refusal(access: &Access, method: &Method, path: &str, headers: &HeaderMap) -> Option<Problem> {
    let text = |name| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap_or_default())
    };
    let host = text(header::HOST).unwrap_or_default();
    if !access.is_host(without_port(host)) {
        let detail = "the Host header does not name this server";
        return Some(
            Problem::new(StatusCode::MISDIRECTED_REQUEST, detail)
                .hint("add the name with `testwright serve --host NAME`"),
        );
    }
    if !access.tokens_required && FORWARDED.iter().any(|name| headers.contains_key(*name)) {
        let detail = "requests through a proxy are refused, because this server requires no tokens";
        return Some(Problem::new(StatusCode::FORBIDDEN, detail).hint(
            "start the server with --require-tokens, or with --host and the host name of the proxy",
        ));
    }
    let forbidden = |detail: &str| Some(Problem::new(StatusCode::FORBIDDEN, detail));
    let Some(origin) = text(header::ORIGIN) else {
        // The API and MCP accept only JSON, which forms cannot send.
        let reads_json = path.starts_with("/v1/") || path == "/mcp";
        if *method == Method::POST && !reads_json {
            // Browsers send forms of other pages without asking the server, but always with an origin.
            return forbidden("the form was sent without an Origin header");
        }
        let is_foreign = text(SEC_FETCH_SITE).is_some_and(|site| !OWN_SITE.contains(&site));
        // Browsers add cookies to requests of any page, and loopback requests need no token. Pages cannot add a bearer
        // token.
        if is_foreign && !method.is_safe() && authentication::bearer(headers).is_none() {
            return forbidden("the request comes from a page of another site");
        }
        return None;
    };
    let is_own = origin
        .split_once("://")
        .is_some_and(|(_, of_origin)| of_origin.eq_ignore_ascii_case(host));
    match is_own {
        true => None,
        false => forbidden("the request comes from a page of another origin"),
    }
}

#[cfg(test)]
mod tests;
