//! The address that GitHub calls: a delivery is checked, read and stored, and worked on later.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest as _, Request as HttpRequest, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::deliveries::{self, Request};
use super::{GitHub, signature};
use crate::api::{ApiResult, Problem};
use crate::store::NewGitHubTask;
use testwright_config::error;
use testwright_config::hex::hex;

/// How a delivery begins whose webhook sends forms.
const FORM: &[u8] = b"payload=";
/// Characters of a delivery's id, and of an event's name.
const MAX_ID_LEN: usize = 128;

pub async fn not_set_up() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "webhooks are not set up here")
        .hint("set GITHUB_WEBHOOK_SECRET for the server, or github.webhook-secret-file")
}

pub async fn receive(
    State(github): State<GitHub>,
    headers: HeaderMap,
    body: Body,
) -> ApiResult<Response> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let unsigned = || {
        let detail = "the signature is missing, or is not of this server's secret";
        Problem::new(StatusCode::UNAUTHORIZED, detail)
            .hint("give the webhook the secret that the server has")
    };
    // Nothing is read for who does not even seem to know a secret.
    let signature = text("x-hub-signature-256").and_then(signature::read);
    let signature = signature.ok_or_else(unsigned)?;
    let body = Bytes::from_request(HttpRequest::new(body), &()).await?;
    if !signature::is_valid(&github.settings.secrets, &body, &signature) {
        return Err(unsigned());
    }
    let named = |name: &str| {
        let value = text(name).filter(|value| !value.is_empty() && value.len() <= MAX_ID_LEN);
        value.ok_or_else(|| Problem::new(StatusCode::BAD_REQUEST, format!("{name} is missing")))
    };
    let (event, delivery) = (named("x-github-event")?, named("x-github-delivery")?);
    let request = deliveries::read(event, delivery, &body, &github.settings);
    let request = request.map_err(|error| {
        let problem = Problem::new(StatusCode::BAD_REQUEST, error.with_cause());
        problem.hint(match body.starts_with(FORM) {
            true => "set the content type of the webhook to application/json",
            false => "GitHub's description of webhook events says what is in their payloads",
        })
    })?;
    let (tasks, ignored) = tasks(&github, request).await?;
    let digest = digest(&body);
    let store = &github.api.store;
    if !store.add_github_delivery(delivery, &digest, &tasks).await? {
        return Ok(answer(StatusCode::OK, "it was delivered before"));
    }
    tracing::debug!(event, delivery, tasks = tasks.len(), "GitHub delivered");
    Ok(match (event, ignored) {
        ("ping", _) => answer(StatusCode::OK, "pong"),
        (_, Some(why)) => answer(StatusCode::ACCEPTED, why),
        (_, None) => answer(StatusCode::ACCEPTED, "it will be worked on"),
    })
}

/// What is to be done; else why nothing is.
async fn tasks(
    github: &GitHub,
    request: Request,
) -> error::Result<(Vec<NewGitHubTask>, Option<&'static str>)> {
    let all = match request {
        Request::Nothing(why) => return Ok((Vec::new(), Some(why))),
        Request::Answer(task) => return Ok((vec![task], None)),
        Request::Confirm(all) => all,
    };
    let mut with_test = Vec::new();
    for task in all {
        let runs = github.api.store.github_runs(&task.repository, task.issue);
        if !runs.await?.is_empty() {
            with_test.push(task);
        }
    }
    let ignored = with_test
        .is_empty()
        .then_some("there is no test for what it mentions");
    Ok((with_test, ignored))
}

/// Neither the id of a delivery nor its event is signed: the same content under another id is the same delivery.
fn digest(body: &[u8]) -> String {
    hex(&Sha256::digest(body))
}

fn answer(status: StatusCode, text: &str) -> Response {
    (status, Json(json!({ "message": text }))).into_response()
}
