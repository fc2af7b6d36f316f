//! Keeps web pages of others away: a browser sends their requests to loopback as well, and a name of theirs may lead there.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::access::Access;
use super::authentication;
use super::problem::Problem;
use super::state::ApiState;

/// What proxies add to the requests of others.
const FORWARDED: [&str; 4] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-real-ip",
];

/// Says from where a browser sends a request, as the page cannot.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Of a page of this server, and of none: somebody typed the address.
const OWN_SITE: [&str; 2] = ["same-origin", "none"];

pub async fn check(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    // Probes come to an address instead of a name; what knows its callers by their signatures, under the name that this
    // machine has for others.
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
    let forbidden = |detail: &str| Some(Problem::new(StatusCode::FORBIDDEN, detail));
    let Some(origin) = text(header::ORIGIN) else {
        // The API and MCP read JSON alone, which no form is.
        let reads_json = path.starts_with("/v1/") || path == "/mcp";
        if *method == Method::POST && !reads_json {
            // Browsers send forms of other pages without asking, but never without their origin.
            return forbidden("a form comes without the origin of its page");
        }
        let is_foreign = text(SEC_FETCH_SITE).is_some_and(|site| !OWN_SITE.contains(&site));
        // A cookie, or the right of whoever is on this machine, goes along without the page's doing; a token does not.
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
        refusal(&Access::default(), &Method::GET, "/v1/runs", &headers).is_some()
    }

    #[test]
    fn a_proxy_is_refused_unless_tokens_are_asked_for() {
        for name in FORWARDED {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "localhost".parse().unwrap());
            headers.insert(name, "192.0.2.1".parse().unwrap());
            let is_refused =
                |access: &Access| refusal(access, &Method::GET, "/v1/runs", &headers).is_some();
            assert!(is_refused(&Access::default()));
            let access = Access::new("127.0.0.1:1".parse().unwrap(), &[], true);
            assert!(!is_refused(&access));
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

    #[test]
    fn what_changes_something_and_comes_from_another_site_is_refused_without_an_origin_as_well() {
        let is_refused = |method: Method, site: &str, authorization: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "localhost".parse().unwrap());
            headers.insert(SEC_FETCH_SITE, site.parse().unwrap());
            if let Some(value) = authorization {
                headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            }
            refusal(&Access::default(), &method, "/v1/runs", &headers).is_some()
        };
        for site in ["cross-site", "same-site", "another"] {
            for method in [Method::POST, Method::DELETE] {
                assert!(is_refused(method.clone(), site, None), "{site}");
                // A browser sends this by itself.
                assert!(is_refused(method.clone(), site, Some("Basic abc")));
                assert!(!is_refused(method, site, Some("Bearer abc")));
            }
            // A link to a page.
            assert!(!is_refused(Method::GET, site, None));
        }
        for site in OWN_SITE {
            assert!(!is_refused(Method::POST, site, None), "{site}");
        }
    }
}
