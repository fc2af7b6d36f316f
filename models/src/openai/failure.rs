//! Classifies errors by what to do about them: shorten the prompt, wait, or give up with a hint.

use std::error::Error;

use async_openai::error::OpenAIError;
use serde_json::{Value, json};

use super::OpenAiSettings;
use super::endpoint::{self, Refusal};
use super::response_limits;
use crate::ModelError;
use testwright_config::settings::RedactedUrl;

/// Phrases of providers for a prompt that is too long (in lower case).
const TOO_LONG: [&str; 28] = [
    "context_length_exceeded",
    "exceed_context_size",
    "contextwindowexceeded",
    "context window exceeded",
    "maximum context length",
    "maximum prompt length",
    "exceeds the context length",
    "exceeds the model's context",
    "exceed the context",
    "exceed context",
    "exceeds the context window",
    "exceeds the available context",
    "exceeds context",
    "context length exceeded",
    "context size has been exceeded",
    "larger than the context",
    "greater than the context length",
    "context window of",
    "n_ctx",
    "prompt is too long",
    "prompt too long",
    "prompt is too large",
    "input is too long",
    "input token count",
    "input length and `max_tokens` exceed",
    "reduce the length of the messages",
    "request too large for",
    "string_above_max_length",
];

/// Phrases for limits that waiting does not lift (in lower case).
const NO_MONEY: [&str; 6] = [
    "insufficient_quota",
    "billing_hard_limit",
    "billing_not_active",
    "insufficient balance",
    "insufficient credits",
    "credit balance is too low",
];

/// Returns the address, without a password or a key that it may contain.
fn place(settings: &OpenAiSettings) -> RedactedUrl {
    RedactedUrl::new(settings.base_url.clone())
}

pub(super) fn classify_error(error: &OpenAIError, settings: &OpenAiSettings) -> ModelError {
    let from = place(settings);
    if let Some(refusal) = endpoint::refusal(error) {
        return refused(refusal, settings);
    }
    // A retry would send as much again.
    if let Some(excess) = response_limits::excess(error) {
        return ModelError::Fatal {
            message: format!("{from} sent {excess}"),
            hint: Some(format!(
                "check the base URL {from} and the server there: no model's reply is that long"
            )),
        };
    }
    let transient = |message: String| ModelError::Transient {
        message: clean(&message, settings),
        after: None,
        unbilled: false,
    };
    match error {
        OpenAIError::Reqwest(e) => transport(e, settings),
        OpenAIError::JSONDeserialize(_, text) => {
            log(&clean(text, settings));
            transient(format!("{from} answered with something that is not JSON"))
        }
        OpenAIError::StreamError(e) => {
            log(&clean(&e.to_string(), settings));
            transient(format!(
                "the connection to {from} broke in the middle of a reply"
            ))
        }
        OpenAIError::ApiError(e) => {
            let body = json!({ "message": e.api_error.message });
            refused(
                &Refusal::new(e.status_code.as_u16(), body.to_string()),
                settings,
            )
        }
        other => ModelError::Fatal {
            message: clean(&format!("the request could not be made: {other}"), settings),
            hint: None,
        },
    }
}

fn transport(error: &reqwest::Error, settings: &OpenAiSettings) -> ModelError {
    let from = place(settings);
    let causes = causes(error);
    let lower = causes.to_lowercase();
    if [
        "certificate",
        "unknownissuer",
        "corruptmessage",
        "invalidcontenttype",
    ]
    .iter()
    .any(|w| lower.contains(w))
    {
        return ModelError::Fatal {
            message: format!("no safe connection to {from}: {causes}"),
            hint: Some(
                "set ca_bundle (or SSL_CERT_FILE) if your organization issued the server's certificate, and check whether the address needs http or https"
                    .to_owned(),
            ),
        };
    }
    let unbilled = error.is_connect() && !error.is_timeout();
    let message = if unbilled {
        format!("no connection to {from}: {causes}")
    } else if error.is_timeout() {
        format!(
            "{from} sent nothing for {} s",
            settings.timeout.as_secs_f64()
        )
    } else {
        format!("the connection to {from} broke: {causes}")
    };
    ModelError::Transient {
        message: clean(&message, settings),
        after: None,
        unbilled,
    }
}

/// Lists an error's causes; the outermost is omitted if inner ones say more.
fn causes(error: &reqwest::Error) -> String {
    let mut parts = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if parts.last() != Some(&text) {
            parts.push(text);
        }
        next = cause.source();
    }
    if parts.is_empty() {
        return error.to_string();
    }
    parts.join(": ")
}

fn refused(refusal: &Refusal, settings: &OpenAiSettings) -> ModelError {
    let status = refusal.status;
    // Redact before cutting: a partial key would not be found.
    let body = clean(&refusal.body, settings);
    let all = body.to_lowercase();
    let reported = message_in(&body);
    let said = match (refusal.fault, &reported) {
        (Some(fault), _) => format!(": {fault}"),
        (None, Some(message)) => format!(": {message}"),
        (None, None) => " without a message".to_owned(),
    };
    if refusal.fault.is_some() || reported.is_none() {
        log(&body);
    }
    let points = refusal.points_to.as_ref();
    let points = points.map_or(String::new(), |to| format!(", and points to {to}"));
    let message = format!("{} answered {status}{said}{points}", place(settings));
    let message = clean(&message, settings);
    let fatal = |hint: Option<String>| ModelError::Fatal {
        message: message.clone(),
        hint,
    };
    if status == 413
        || (matches!(status, 400 | 422 | 429 | 500) && TOO_LONG.iter().any(|w| all.contains(w)))
    {
        return ModelError::ContextFull(message);
    }
    if status == 402 || NO_MONEY.iter().any(|w| all.contains(w)) {
        return fatal(Some(
            "add credit or raise the quota of the account; waiting does not help".to_owned(),
        ));
    }
    let variable = &settings.key_variable;
    match status {
        401 | 403 if settings.api_key.is_none() => {
            fatal(Some(format!("set {variable}: no API key was sent")))
        }
        401 | 403 => fatal(Some(format!(
            "check {variable}: the API key is wrong, or is not allowed to use {}",
            settings.model
        ))),
        404 if all.contains("model") || all.contains("deployment") => fatal(Some(format!(
            "the server does not know the model \"{}\"; check --model",
            settings.model
        ))),
        404 | 405 | 300..=399 => fatal(Some(format!(
            "check the base URL {}: on most servers it ends in /v1",
            place(settings)
        ))),
        400 if all.contains("content_filter") || all.contains("content management policy") => {
            fatal(Some(
                "the provider's content filter stopped the prompt".to_owned(),
            ))
        }
        408 | 409 | 425 | 429 => ModelError::Transient {
            after: refusal.after.or_else(|| wait_in(reported.as_deref()?)),
            message,
            // A timeout may come in the middle of the work.
            unbilled: status != 408,
        },
        500 | 502..=599 => ModelError::Transient {
            message,
            after: refusal.after,
            unbilled: false,
        },
        _ => fatal(None),
    }
}

/// Reads the wait from "Please try again in 1.3s", if the header is missing.
fn wait_in(message: &str) -> Option<f64> {
    let (_, rest) = message.split_once("ry again in ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let number: f64 = rest[..end].trim_end_matches('.').parse().ok()?;
    let unit = rest[end..].trim_start();
    let factor = if unit.starts_with("ms") {
        0.001
    } else if unit.starts_with('m') {
        60.0
    } else {
        1.0
    };
    Some(number * factor)
}

/// Returns the service's own error message, in any of the formats that servers use. Nothing else of a body is
/// passed on.
fn message_in(body: &str) -> Option<String> {
    let value: Value = serde_json::from_str(body).ok()?;
    let paths = [
        "/error/message",
        "/error",
        "/message",
        "/detail",
        "/detail/0/msg",
        "/0/error/message",
    ];
    let mut texts = paths
        .iter()
        .filter_map(|path| value.pointer(path)?.as_str());
    let text = texts.find(|text| !text.trim().is_empty())?;
    Some(excerpt(text))
}

/// Logs a body that clients must not see.
fn log(body: &str) {
    tracing::warn!(
        body = excerpt(body),
        "the model's service gave no error message"
    );
}

fn excerpt(text: &str) -> String {
    const MAX: usize = 600;
    let text = text.trim();
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Removes the API key, in case the server repeats it.
fn clean(text: &str, settings: &OpenAiSettings) -> String {
    settings.redactor().text(text).into_owned()
}
