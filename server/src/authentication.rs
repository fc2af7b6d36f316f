//! Authenticates requests by a bearer token, or by the cookie in which a browser keeps one. A server that only this
//! machine can reach accepts all requests.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use secrecy::SecretString;

use super::problem::Problem;
use super::reserved_owners;
use super::state::ApiState;
use super::telemetry::RequestSpan;
use crate::store::Scope;

/// Cookie with the token that was entered at /login.
pub const COOKIE: &str = "testwright_token";
/// Path of the page for entering a token.
pub const LOGIN: &str = "/login";
/// Path of GitHub's signed deliveries.
pub const GITHUB_WEBHOOK: &str = "/v1/github/webhook";

/// Paths for probes, which need no token.
const PROBES: [&str; 2] = ["/v1/health", "/v1/ready"];
/// Other paths that need no token: they reveal nothing about runs, or verify signatures.
const OPEN_PATHS: [&str; 3] = ["/v1/openapi.json", LOGIN, GITHUB_WEBHOOK];

/// An authenticated client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Owner of its token; the default is the owner of a server without authentication.
    pub owner: String,
    /// The span of the request, if traces are enabled.
    pub traceparent: Option<String>,
}

impl Default for Caller {
    fn default() -> Self {
        Caller {
            owner: reserved_owners::LOCAL.to_owned(),
            traceparent: None,
        }
    }
}

/// Returns whether this is the path of a probe, which needs no token.
pub fn is_probe(path: &str) -> bool {
    PROBES.contains(&path)
}

fn is_open(path: &str) -> bool {
    is_probe(path) || OPEN_PATHS.contains(&path)
}

/// Middleware that rejects requests without a valid token, and adds the [`Caller`] to the others.
pub async fn check(State(state): State<ApiState>, mut request: Request, next: Next) -> Response {
    let caller = match state.access.tokens_required && !is_open(request.uri().path()) {
        false => Caller::default(),
        true => match authenticate(
            &state,
            token(request.headers()),
            required_scope(request.method()),
        )
        .await
        {
            Ok(owner) => Caller {
                owner,
                ..Caller::default()
            },
            Err(problem) if wants_page(&request) => {
                return match problem.status() {
                    StatusCode::UNAUTHORIZED => Redirect::to(LOGIN).into_response(),
                    _ => problem.into_response(),
                };
            }
            Err(problem) => {
                let mut response = problem.into_response();
                if response.status() == StatusCode::UNAUTHORIZED {
                    let scheme = HeaderValue::from_static("Bearer");
                    response
                        .headers_mut()
                        .insert(header::WWW_AUTHENTICATE, scheme);
                }
                return response;
            }
        },
    };
    let span = request.extensions().get::<RequestSpan>();
    let traceparent = span.and_then(RequestSpan::traceparent);
    request.extensions_mut().insert(Caller {
        traceparent,
        ..caller
    });
    next.run(request).await
}

async fn authenticate(
    state: &ApiState,
    secret: Option<SecretString>,
    needed: Scope,
) -> Result<String, Problem> {
    let refused = |detail: &str| {
        Problem::new(StatusCode::UNAUTHORIZED, detail)
            .hint("send `Authorization: Bearer TOKEN`; `testwright tokens create` creates one")
    };
    let secret = secret.ok_or_else(|| refused("a token is required"))?;
    let Some(token) = state.store.token(&secret).await? else {
        return Err(refused("the token is unknown, revoked or expired"));
    };
    match token.scopes.contains(&needed) {
        true => Ok(token.owner),
        false => Err(Problem::new(
            StatusCode::FORBIDDEN,
            format!("the token lacks the scope `{}`", needed.as_str()),
        )
        .hint("`testwright tokens create --scope` creates a token with that scope")),
    }
}

fn required_scope(method: &Method) -> Scope {
    match *method {
        Method::GET | Method::HEAD | Method::OPTIONS => Scope::Read,
        _ => Scope::Write,
    }
}

/// Returns the token of the Authorization header. Browsers do not add one themselves, and pages of other origins cannot
/// make them.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?;
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    is_bearer.then(|| token.trim())
}

/// Returns the token of the header; without a header, the token of the cookie.
fn token(headers: &HeaderMap) -> Option<SecretString> {
    if headers.contains_key(header::AUTHORIZATION) {
        return bearer(headers).map(SecretString::from);
    }
    let cookies = headers.get_all(header::COOKIE).iter();
    cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='))
        .map(SecretString::from)
}

/// Returns whether a browser requests a page, and so can be redirected to the login.
fn wants_page(request: &Request) -> bool {
    request.method() == Method::GET
        && !request.uri().path().starts_with("/v1/")
        && accepts_pages(request.headers())
}

pub(crate) fn accepts_pages(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT);
    accepts
        .and_then(|accepts| accepts.to_str().ok())
        .is_some_and(|accepts| accepts.contains("text/html"))
}

/// Formats the cookie with a token. It is sent by pages of this server only, and scripts cannot read it.
pub fn cookie(token: &str, is_encrypted: bool) -> String {
    let secure = if is_encrypted { "; Secure" } else { "" };
    format!("{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict{secure}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use secrecy::ExposeSecret as _;

    use super::*;

    fn read_token(headers: &[(header::HeaderName, &str)]) -> Option<String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, value.parse().unwrap());
        }
        token(&map).map(|token| token.expose_secret().to_owned())
    }

    #[test]
    fn token_is_read_from_header_or_cookie() {
        let cookie = |value| (header::COOKIE, value);
        let sent = |value| (header::AUTHORIZATION, value);
        assert_eq!(read_token(&[sent("Bearer a")]).unwrap(), "a");
        assert_eq!(read_token(&[sent("bearer  a ")]).unwrap(), "a");
        assert_eq!(
            read_token(&[cookie("x=1; testwright_token=b; y=2")]).unwrap(),
            "b"
        );
        assert_eq!(
            read_token(&[sent("Bearer a"), cookie("testwright_token=b")]).unwrap(),
            "a"
        );
        // A malformed header is not replaced by the cookie.
        assert_eq!(
            read_token(&[sent("Basic a"), cookie("testwright_token=b")]),
            None
        );
        assert_eq!(read_token(&[cookie("testwright_tokens=b")]), None);
        assert_eq!(read_token(&[]), None);
    }
}
