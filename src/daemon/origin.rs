//! Keeps web pages of others away: a browser sends their requests to loopback as well, and a name of theirs may lead there.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::access::Access;
use super::api::{ApiState, Problem};
use super::{authentication, github};

/// What proxies add to the requests of others.
const FORWARDED: [&str; 4] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-real-ip",
];

pub async fn check(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    // Probes come to an address instead of a name; what knows its callers by their signatures, under the name that this
    // machine has for others.
    let is_signed = request.method() == Method::POST && path == github::PATH;
    if is_signed || authentication::is_probe(path) {
        return next.run(request).await;
    }
    // The API and MCP read JSON alone, which no form is.
    let reads_json = path.starts_with("/v1/") || path == "/mcp";
    let has_form = request.method() == Method::POST && !reads_json;
    match refusal(&state.access, request.headers(), has_form) {
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    }
}

fn refusal(access: &Access, headers: &HeaderMap, has_form: bool) -> Option<Problem> {
    let text = |name| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap_or_default())
    };
    let host = text(header::HOST).unwrap_or_default();
    if !access.is_host(without_port(host)) {
        let detail = "the request is for a host that is not this one";
        return Some(
            Problem::new(StatusCode::MISDIRECTED_REQUEST, detail)
                .hint("`testwright serve --host NAME` names what else it is reached by"),
        );
    }
    if !access.tokens_required && FORWARDED.iter().any(|name| headers.contains_key(*name)) {
        let detail =
            "the request comes through a proxy, and this daemon takes requests without tokens";
        return Some(
            Problem::new(StatusCode::FORBIDDEN, detail)
                .hint("`testwright serve --require-tokens`, or `--host NAME` with the name that the proxy has"),
        );
    }
    let Some(origin) = text(header::ORIGIN) else {
        // Browsers send forms of other pages without asking, but never without their origin.
        let detail = "a form comes without the origin of its page";
        return has_form.then(|| Problem::new(StatusCode::FORBIDDEN, detail));
    };
    let is_own = origin
        .split_once("://")
        .is_some_and(|(_, of_origin)| of_origin.eq_ignore_ascii_case(host));
    (!is_own).then(|| {
        let detail = "the request comes from a page of another origin";
        Problem::new(StatusCode::FORBIDDEN, detail)
    })
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn is_refused(host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        refusal(&Access::default(), &headers, false).is_some()
    }

    #[test]
    fn a_proxy_is_refused_unless_tokens_are_asked_for() {
        for name in FORWARDED {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "localhost".parse().unwrap());
            headers.insert(name, "192.0.2.1".parse().unwrap());
            assert!(refusal(&Access::default(), &headers, false).is_some());
            let access = Access::new("127.0.0.1:1".parse().unwrap(), &[], true);
            assert!(refusal(&access, &headers, false).is_none());
        }
    }

    #[test]
    fn requests_of_other_pages_and_under_other_names_are_refused() {
        for host in ["localhost:8000", "127.0.0.1", "[::1]:8000", "[::1]"] {
            assert!(!is_refused(host, None), "{host}");
            assert!(!is_refused(host, Some(&format!("http://{host}"))));
        }
        for host in [
            "example.org",
            "localhost.example.org:8000",
            "127.0.0.1.nip.io",
            "",
        ] {
            assert!(is_refused(host, None), "{host}");
        }
        for origin in ["http://example.org", "null", "http://localhost:9999", ""] {
            assert!(is_refused("localhost:8000", Some(origin)), "{origin}");
        }
    }
}
