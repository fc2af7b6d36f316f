//! The webhook route: it checks, parses and stores deliveries, which are processed later.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest as _, Request as HttpRequest, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::deliveries::{self, DeliveryRequest};
use super::{GitHub, signature};
use crate::api::{ApiResult, Problem};
use crate::store::NewGitHubTask;
use testwright_config::error;
use testwright_config::hex::hex;

/// Start of a delivery from a webhook that sends forms.
const FORM_PREFIX: &[u8] = b"payload=";
/// Maximum characters of a delivery's id and of an event's name.
const MAX_ID_LEN: usize = 128;

pub(super) async fn not_set_up() -> Problem {
    Problem::not_found("webhooks are not configured on this server")
        .hint("set GITHUB_WEBHOOK_SECRET or github.webhook-secret-file on the server")
}

pub(super) async fn receive(
    State(github): State<GitHub>,
    headers: HeaderMap,
    request: HttpRequest,
) -> ApiResult<Response> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let unsigned = || {
        let detail = "the signature is missing or invalid";
        Problem::new(StatusCode::UNAUTHORIZED, detail)
            .hint("use the server's secret for the webhook")
    };
    // The body is read only if the request has a well-formed signature.
    let signature = text("x-hub-signature-256").and_then(signature::read);
    let signature = signature.ok_or_else(unsigned)?;
    let body = Bytes::from_request(request, &()).await?;
    if !signature::is_valid(&github.settings.secrets, &body, &signature) {
        return Err(unsigned());
    }
    let required_header = |name: &str| {
        let value = text(name).filter(|value| !value.is_empty() && value.len() <= MAX_ID_LEN);
        value.ok_or_else(|| Problem::bad_request(format!("{name} is missing")))
    };
    let (event, delivery) = (
        required_header("x-github-event")?,
        required_header("x-github-delivery")?,
    );
    let request = deliveries::read(event, delivery, &body, &github.settings);
    let request = request.map_err(|error| {
        let problem = Problem::bad_request(error.with_cause());
        problem.hint(match body.starts_with(FORM_PREFIX) {
            true => "set the content type of the webhook to application/json",
            false => "see GitHub's documentation of webhook events and payloads",
        })
    })?;
    let (tasks, ignored) = tasks(&github, request).await?;
    // Id and event are not signed, so a repeated content is a repeated delivery.
    let digest = hex(&Sha256::digest(&body));
    let store = &github.api.store;
    // Most deliveries cause no task, so they are not stored.
    if !tasks.is_empty() && !store.add_github_delivery(delivery, &digest, &tasks).await? {
        return Ok(answer(StatusCode::OK, "this delivery was already received"));
    }
    tracing::debug!(event, delivery, tasks = tasks.len(), "GitHub delivered");
    Ok(match (event, ignored) {
        ("ping", _) => answer(StatusCode::OK, "pong"),
        (_, Some(why)) => answer(StatusCode::ACCEPTED, why),
        (_, None) => answer(StatusCode::ACCEPTED, "queued"),
    })
}

/// Returns the tasks of a delivery, or the reason why it is ignored.
async fn tasks(
    github: &GitHub,
    request: DeliveryRequest,
) -> error::Result<(Vec<NewGitHubTask>, Option<&'static str>)> {
    let all = match request {
        DeliveryRequest::Nothing(why) => return Ok((Vec::new(), Some(why))),
        DeliveryRequest::Answer(task) => return Ok((vec![task], None)),
        DeliveryRequest::Confirm(all) => all,
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
        .then_some("the mentioned issues have no test");
    Ok((with_test, ignored))
}

fn answer(status: StatusCode, text: &str) -> Response {
    (status, Json(json!({ "message": text }))).into_response()
}
