//! Where a browser gives a token, which it then shows with each request.

use axum::extract::rejection::FormRejection;
use axum::extract::{Form, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use super::render;
use crate::daemon::api::{ApiResult, ApiState, Problem};
use crate::daemon::authentication::{LOGIN, cookie};

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct LoginForm {
    token: String,
    /// What the button to log out sends.
    log_out: Option<String>,
}

#[derive(Serialize)]
struct LoginPage {
    problem: Option<&'static str>,
}

pub async fn show(State(state): State<ApiState>) -> Response {
    page(&state, StatusCode::OK, None)
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
        return Ok(page(&state, StatusCode::UNAUTHORIZED, Some(problem)));
    }
    // Forms come with the origin of their page: it says how the browser reaches this server.
    let is_encrypted = headers
        .get(header::ORIGIN)
        .is_some_and(|origin| origin.as_bytes().starts_with(b"https:"));
    let cookie = cookie(token.expose_secret(), is_encrypted);
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response())
}

fn page(state: &ApiState, status: StatusCode, problem: Option<&'static str>) -> Response {
    render(
        state,
        status,
        include_str!("login.html"),
        "login",
        "Log in",
        None,
        LoginPage { problem },
    )
}
