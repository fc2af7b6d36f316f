//! The login page: a browser stores a token as a cookie, then returns to the requested page.

use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::extract::{Form, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::json;

use super::{render_with_status, template};
use crate::api::{ApiResult, ApiState, Problem};
use crate::authentication::{LOGIN, cookie};

/// Maximum bytes of the address to return to.
const MAX_ADDRESS_LEN: usize = 2_000;
/// Page that opens after the login by default.
const DEFAULT_PAGE: &str = "/";

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct LoginForm {
    token: String,
    /// Address of the requested page.
    next: String,
    /// Value of the logout button.
    log_out: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct LoginQuery {
    /// Address of the requested page.
    next: String,
}

/// Returns the address of the login page that returns to a page of this server; `None` for the default page.
pub(super) fn address(target: &str) -> Option<String> {
    let target = own_path(target).filter(|target| *target != DEFAULT_PAGE)?;
    let mut address = format!("{LOGIN}?next=");
    for byte in target.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                address.push(char::from(byte));
            }
            other => address.push_str(&format!("%{other:02X}")),
        }
    }
    Some(address)
}

/// Returns the path if browsers read it as a path of this server. They could read some texts as addresses of other
/// servers.
pub(super) fn own_path(target: &str) -> Option<&str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let is_own = target.len() <= MAX_ADDRESS_LEN
        && target.bytes().all(is_plain)
        && target.starts_with('/')
        && !target.starts_with("//")
        && path != LOGIN;
    is_own.then_some(target)
}

pub(super) async fn show(
    State(state): State<ApiState>,
    query: Result<Query<LoginQuery>, QueryRejection>,
) -> Response {
    let Query(query) = query.unwrap_or_default();
    page(&state, StatusCode::OK, None, &query.next)
}

pub(super) async fn log_in(
    State(state): State<ApiState>,
    headers: HeaderMap,
    form: Result<Form<LoginForm>, FormRejection>,
) -> ApiResult<Response> {
    // The text of the rejection may contain the token.
    let bad = |_| Problem::unprocessable("the form contains no token");
    let Form(form) = form.map_err(bad)?;
    if form.log_out.is_some() {
        // Without a token, the cookie expires in the browser.
        let cookie = format!("{}; Max-Age=0", cookie("", false));
        return Ok(([(header::SET_COOKIE, cookie)], Redirect::to(LOGIN)).into_response());
    }
    let token = SecretString::from(form.token.trim());
    if state.store.token(&token).await?.is_none() {
        let problem = "The token is unknown, revoked or expired.";
        let status = StatusCode::UNAUTHORIZED;
        return Ok(page(&state, status, Some(problem), &form.next));
    }
    // The origin of the form shows whether the browser uses HTTPS.
    let is_encrypted = headers
        .get(header::ORIGIN)
        .is_some_and(|origin| origin.as_bytes().starts_with(b"https:"));
    let cookie = cookie(token.expose_secret(), is_encrypted);
    let next = own_path(&form.next).unwrap_or(DEFAULT_PAGE);
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(next)).into_response())
}

fn page(
    state: &ApiState,
    status: StatusCode,
    problem: Option<&'static str>,
    next: &str,
) -> Response {
    let next = own_path(next).filter(|next| *next != DEFAULT_PAGE);
    let page = json!({ "problem": problem, "next": next });
    render_with_status(state, status, template!("login"), "Log in", None, page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_returns_to_own_pages_only() {
        for own in ["/", "/runs/x", "/?status=accepted", "/comparisons/new"] {
            assert_eq!(own_path(own), Some(own));
        }
        for other in [
            "",
            "//example.org",
            "///example.org",
            "/\\example.org",
            "\\\\example.org",
            "/\t/example.org",
            "/\n/example.org",
            "https://example.org",
            "javascript:alert(1)",
            "example.org",
            " /runs",
            "/runs\r\nset-cookie: a=b",
            "/ä",
            "/login",
            "/login?next=/runs",
        ] {
            assert_eq!(own_path(other), None, "{other:?}");
        }
        assert_eq!(own_path(&format!("/{}", "a".repeat(2_000))), None);
        assert_eq!(
            address("/?status=a&before=b").as_deref(),
            Some("/login?next=/%3Fstatus%3Da%26before%3Db")
        );
        assert_eq!(address("//example.org"), None);
        assert_eq!(address("/"), None);
    }
}
