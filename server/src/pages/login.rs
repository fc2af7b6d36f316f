//! Where a browser gives a token, which it then shows with each request. It is led back to the page that was asked for.

use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::extract::{Form, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use super::render;
use crate::api::{ApiResult, ApiState, Problem};
use crate::authentication::{LOGIN, cookie};

/// Bytes of an address to which it leads back.
const MAX_ADDRESS_LEN: usize = 2_000;
/// The page to which it leads where none was asked for.
const FIRST: &str = "/";

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct LoginForm {
    token: String,
    /// What was asked for.
    next: String,
    /// What the button to log out sends.
    log_out: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct LoginQuery {
    /// What was asked for.
    next: String,
}

#[derive(Serialize)]
struct LoginPage<'n> {
    problem: Option<&'static str>,
    next: Option<&'n str>,
}

/// The address of this page that leads back to another of this server; `None`: the way leads to the first.
pub fn address(asked: &str) -> Option<String> {
    let asked = own_path(asked).filter(|asked| *asked != FIRST)?;
    let mut address = format!("{LOGIN}?next=");
    for byte in asked.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                address.push(char::from(byte));
            }
            other => address.push_str(&format!("%{other:02X}")),
        }
    }
    Some(address)
}

/// A path of this server, as browsers read it: what they take for an address of another is none.
pub fn own_path(asked: &str) -> Option<&str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    let path = asked.split(['?', '#']).next().unwrap_or_default();
    let is_own = asked.len() <= MAX_ADDRESS_LEN
        && asked.bytes().all(is_plain)
        && asked.starts_with('/')
        && !asked.starts_with("//")
        && path != LOGIN;
    is_own.then_some(asked)
}

pub async fn show(
    State(state): State<ApiState>,
    query: Result<Query<LoginQuery>, QueryRejection>,
) -> Response {
    let Query(query) = query.unwrap_or_default();
    page(&state, StatusCode::OK, None, &query.next)
}

pub async fn log_in(
    State(state): State<ApiState>,
    headers: HeaderMap,
    form: Result<Form<LoginForm>, FormRejection>,
) -> ApiResult<Response> {
    // The text of the rejection may hold what was typed.
    let bad = |_| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "the form has no token");
    let Form(form) = form.map_err(bad)?;
    if form.log_out.is_some() {
        // No token: the browser forgets the one that it had.
        let cookie = format!("{}; Max-Age=0", cookie("", false));
        return Ok(([(header::SET_COOKIE, cookie)], Redirect::to(LOGIN)).into_response());
    }
    let token = SecretString::from(form.token.trim());
    if state.store.token(&token).await?.is_none() {
        let problem = "The token is unknown, revoked or out of date.";
        let status = StatusCode::UNAUTHORIZED;
        return Ok(page(&state, status, Some(problem), &form.next));
    }
    // Forms come with the origin of their page: it says how the browser reaches this server.
    let is_encrypted = headers
        .get(header::ORIGIN)
        .is_some_and(|origin| origin.as_bytes().starts_with(b"https:"));
    let cookie = cookie(token.expose_secret(), is_encrypted);
    let next = own_path(&form.next).unwrap_or(FIRST);
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(next)).into_response())
}

fn page(
    state: &ApiState,
    status: StatusCode,
    problem: Option<&'static str>,
    next: &str,
) -> Response {
    render(
        state,
        status,
        include_str!("login.html"),
        "login",
        "Log in",
        None,
        LoginPage {
            problem,
            next: own_path(next).filter(|next| *next != FIRST),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_leads_back_to_pages_of_this_server_alone() {
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
