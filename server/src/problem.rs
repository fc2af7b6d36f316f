//! API errors: problem+json (RFC 9457), with a hint.

use axum::extract::rejection::{BytesRejection, JsonRejection, QueryRejection};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use testwright_sandboxes::Shortage;

use super::fields::MAX_REQUEST_BYTES;
use testwright_config::error::{Error, Kind};

/// An error, with a hint for fixing it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Problem {
    /// Always `about:blank`: the title names the kind of problem.
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    /// Status code of the response.
    status: u16,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Problem {
    /// Creates a problem without a hint.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Problem {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: detail.into(),
            hint: None,
        }
    }

    /// Creates a problem for a request that a library refused.
    pub fn unread(status: StatusCode, detail: impl Into<String>) -> Self {
        let problem = Problem::new(status, detail);
        match status {
            StatusCode::PAYLOAD_TOO_LARGE => {
                problem.hint(format!("send at most {MAX_REQUEST_BYTES} bytes"))
            }
            _ => problem,
        }
    }

    /// Sets the hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the status of the response.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Formats the detail and the hint for people.
    pub fn text(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}: {hint}", self.detail),
            None => self.detail.clone(),
        }
    }

    /// Creates the answer, 404, for an unknown run.
    pub fn no_run() -> Self {
        Problem::new(StatusCode::NOT_FOUND, "no run has this id")
            .hint("GET /v1/runs lists all runs")
    }

    /// Creates the answer, 404, for an unknown matrix.
    pub fn no_matrix() -> Self {
        Problem::new(StatusCode::NOT_FOUND, "no matrix has this id")
            .hint("GET /v1/matrices lists all matrices")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let kind = [(header::CONTENT_TYPE, "application/problem+json")];
        (status, kind, body).into_response()
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let detail = error.with_cause();
        let status = match error.kind {
            Kind::Usage | Kind::Unauthorized => StatusCode::UNPROCESSABLE_ENTITY,
            Kind::Exhausted(shortage) => {
                tracing::error!(detail, "a request failed");
                let status = match shortage {
                    Shortage::Disk => StatusCode::INSUFFICIENT_STORAGE,
                    _ => StatusCode::SERVICE_UNAVAILABLE,
                };
                return Problem::new(status, format!("{error}: {shortage}"))
                    .hint(format!("{}, then try again", shortage.hint()));
            }
            // Only a shutdown interrupts a request.
            Kind::Unavailable | Kind::Interrupted => {
                tracing::error!(detail, "a request failed");
                return Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
                    .hint("try again later; the server's log has details");
            }
            Kind::Nothing | Kind::Infrastructure => {
                // Internal causes are only for operators.
                tracing::error!(detail, "a request failed");
                return Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
                    .hint("see the server's log");
            }
        };
        Problem {
            hint: error.hint,
            ..Problem::new(status, detail)
        }
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        let problem = Problem::unread(rejection.status(), rejection.body_text());
        match problem.hint {
            Some(_) => problem,
            None => problem.hint("see /v1/openapi.json for the expected format"),
        }
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        let problem = Problem::new(rejection.status(), rejection.body_text());
        problem.hint("see /v1/openapi.json for the expected format")
    }
}

impl From<BytesRejection> for Problem {
    fn from(rejection: BytesRejection) -> Self {
        Problem::unread(rejection.status(), rejection.body_text())
    }
}

pub(crate) async fn not_found() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "this address does not exist")
        .hint("see /v1/openapi.json for all addresses")
}

pub(crate) async fn method_not_allowed() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "this address does not support this method",
    )
    .hint("see /v1/openapi.json for the methods of each address")
}
