//! Classifies errors by what to do about them: shorten the prompt, wait, or give up with a hint.

use std::time::SystemTime;

use async_openai::error::OpenAIError;
use reqwest::Url;
use testwright_sandboxes::Pattern;
use testwright_sandboxes::http_client::{self, ConnectFailure};

use super::endpoint::{self, OTHER_API, Refusal, WEB_PAGE};
use super::error_text::{all_text, excerpt, message_in};
use super::overflow::{self, Overflow, TooLarge};
use super::response_limits::LimitExceeded;
use super::{OpenAiSettings, retry_hint};
use crate::ModelError;
use testwright_config::settings::RedactedUrl;

/// Phrases for limits that waiting does not lift (in lower case).
static NO_MONEY: Pattern = Pattern::new(
    r"insufficient[_ ](?:account )?(?:quota|balance|credits?|funds)|billing_hard_limit|billing_not_active|credit balance is too low|(?:any|out of|not enough) credits|api usage limits|overdue ?(?:balance|payment|error)|arrearage|余额不足|欠费",
);

/// Phrases for a key that is missing or wrong, for services that answer 400.
static NO_KEY: Pattern = Pattern::new(
    r"api key not valid|api_key_invalid|invalid api key|invalid_api_key|incorrect api key|no api key|missing api key",
);

/// Wordings for a model that the service does not have.
static NO_MODEL: Pattern = Pattern::new(concat!(
    r"model_not_found|not a valid model|no endpoints found for|no such model|no models? loaded",
    r"|model (?:identifier|id|name)\b[^.\n]{0,60}invalid|on-demand throughput|unable to access (?:\S+ )?model|模型不存在",
    r"|models?\b[^.\n]{0,80}(?:not found|not exist|does(?:n't| not) exist|unknown|not available|decommissioned|no longer|not valid|not served)",
    r"|(?:unknown|invalid|unsupported|nonexistent|could not find|no access to) (?:the )?(?:requested )?model\b",
));

/// Wordings of servers that have other addresses; LM Studio sends one with status 200.
static NO_ROUTE: Pattern = Pattern::new(
    r"unexpected endpoint|(?:unknown|unrecognized|invalid) (?:request )?(?:url|endpoint|route|path)\b|route not found|no such route|no route (?:found|match|for\b|exists)|no static resource|no handler found|cannot (?:post|get) /|unsupported method|method not allowed",
);

/// Wordings for a limit in time or a busy service, which some services send with status 400 or 403.
static THROTTLED: Pattern = Pattern::new(
    r"overloaded|server is busy|temporarily unavailable|try again later|rate[- _]?limit|too many requests|throttl|\b[rt]pm limit|(?:requests|tokens) per (?:second|minute|min)\b",
);

/// Wordings of services that could not read what the model wrote; it may write something else the next time.
static UNREADABLE: Pattern = Pattern::new(
    r"harmonyerror|unexpected tokens remaining in message header|error parsing tool call|failed to parse (?:input at pos|tool calls?\b)|malformed.function.call|tool_use_failed|output_parse_failed|failed to (?:call a|generate (?:a )?)(?: ?function| ?tool)|model output[^.\n]{0,40}(?:parse|not valid)",
);

/// Causes of a connection that failed because it would not be safe.
static UNSAFE: Pattern =
    Pattern::new(r"(?i)certificate|UnknownIssuer|CorruptMessage|InvalidContentType");

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
    if let Some(excess) = endpoint::own_error::<LimitExceeded>(error) {
        let hint = format!(
            "check the base URL {from} and the server there: no model's reply is that long"
        );
        return ModelError::fatal(format!("{from} sent {excess}"), hint);
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
            let message = format!("{from} answered with something that is not JSON");
            // JSON that is cut off, or nothing at all, may be complete the next time.
            match text.trim_start().starts_with(['{', '[']) || text.trim().is_empty() {
                true => transient(message),
                false => ModelError::fatal(message, check_base_url(settings)),
            }
        }
        OpenAIError::StreamError(e) => {
            log(&clean(&e.to_string(), settings));
            transient(format!(
                "the connection to {from} broke in the middle of a reply"
            ))
        }
        other => {
            let message = format!("the request could not be made: {other}");
            ModelError::fatal(clean(&message, settings), None)
        }
    }
}

fn transport(error: &reqwest::Error, settings: &OpenAiSettings) -> ModelError {
    let from = place(settings);
    let causes = http_client::causes(error).join(": ");
    if UNSAFE.is_match(&causes) {
        let hint = "set ca_bundle (or SSL_CERT_FILE) if your organization issued the server's certificate, and check whether the address needs http or https";
        let message = format!("no safe connection to {from}: {causes}");
        return ModelError::fatal(message, hint.to_owned());
    }
    let cause = http_client::describe(error);
    let unbilled = error.is_connect() && !error.is_timeout();
    let message = if unbilled {
        format!("no connection to {from}: {cause}")
    } else if error.is_timeout() {
        format!(
            "{from} sent nothing for {} s",
            settings.timeout.as_secs_f64()
        )
    } else {
        format!("the connection to {from} broke: {cause}")
    };
    let message = clean(&message, settings);
    match ConnectFailure::of(error).filter(|_| unbilled) {
        Some(failure) => ModelError::Unreachable {
            message,
            hint: connect_hint(failure, settings),
        },
        None => ModelError::Transient {
            message,
            after: None,
            unbilled,
        },
    }
}

/// Returns what to check if the address has no server.
fn connect_hint(failure: ConnectFailure, settings: &OpenAiSettings) -> String {
    let from = place(settings);
    let url = Url::parse(settings.base_url.trim()).ok();
    let port = url
        .filter(|url| url.host_str().is_some_and(http_client::is_loopback))
        .and_then(|url| url.port_or_known_default());
    match (failure, port) {
        (ConnectFailure::Refused, Some(port)) => {
            format!("start the model server on port {port}, or check the base URL {from}")
        }
        (ConnectFailure::Refused, None) => {
            format!("check the base URL {from}, and that the server there is running")
        }
        (ConnectFailure::UnknownHost, _) => {
            format!("check the network and the base URL {from}")
        }
    }
}

fn refused(refusal: &Refusal, settings: &OpenAiSettings) -> ModelError {
    let status = refusal.status;
    // Redact before cutting: a partial key would not be found.
    let body = clean(&refusal.body, settings);
    let reported = message_in(&body);
    let detail = match (refusal.fault, &reported) {
        (Some(fault @ (WEB_PAGE | OTHER_API)), _) => format!(" {fault}"),
        (Some(fault), _) => format!(": {fault}"),
        (None, Some(message)) => format!(": {message}"),
        (None, None) => " without a message".to_owned(),
    };
    if refusal.fault.is_some() || reported.is_none() {
        log(&body);
    }
    let points = refusal.points_to.as_ref();
    let points = points.map_or(String::new(), |to| format!(", and points to {to}"));
    let message = format!("{} answered {status}{detail}{points}", place(settings));
    let message = clean(&message, settings);
    let overflow = overflow_in(refusal, None).filter(|_| refusal.fault.is_none());
    if overflow.is_some_and(|overflow| overflow.part == TooLarge::Prompt) {
        return ModelError::ContextFull(message);
    }
    let all = reason_in(&body);
    let is_throttled = matches!(status, 400 | 403) && THROTTLED.is_match(&all);
    let status = if is_throttled { 429 } else { status };
    let is_unreadable = status == 400 && UNREADABLE.is_match(&all);
    if !is_unreadable && let Some(hint) = configuration_hint(refusal, status, &all, settings) {
        return ModelError::fatal(message, hint);
    }
    let in_body = || retry_hint::in_body(&refusal.body, SystemTime::now());
    match status {
        408 | 409 | 424 | 425 | 429 | 498..=500 | 502..=599 => ModelError::Transient {
            after: refusal.after.or_else(in_body),
            message,
            // A timeout may come in the middle of the work.
            unbilled: matches!(status, 409 | 425 | 429 | 498 | 499),
        },
        400 if is_unreadable => ModelError::Transient {
            after: None,
            message,
            unbilled: false,
        },
        400 | 413 | 416 | 422 => ModelError::Refused { message },
        _ => ModelError::fatal(message, None),
    }
}

/// Returns what to change if settings or the account are the cause, so that no retry helps.
fn configuration_hint(
    refusal: &Refusal,
    status: u16,
    all: &str,
    settings: &OpenAiSettings,
) -> Option<String> {
    if !matches!(refusal.fault, None | Some(WEB_PAGE | OTHER_API)) {
        return None;
    }
    let says = |phrases: &[&str]| phrases.iter().any(|words| all.contains(words));
    let model = &settings.model;
    let variable = &settings.key_variable;
    if status == 402 || NO_MONEY.is_match(all) {
        return Some(
            "add credit or raise the quota of the account; waiting does not help".to_owned(),
        );
    }
    let is_about_key =
        matches!(status, 401 | 403) || (matches!(status, 400 | 500) && NO_KEY.is_match(all));
    let is_about_model = NO_MODEL.is_match(all);
    match status {
        200..=399 => Some(check_base_url(settings)),
        400 | 404..=407 | 410 | 415 | 501 if is_page(&refusal.body) => {
            Some(check_base_url(settings))
        }
        400 | 404 | 405 | 500 | 501 if NO_ROUTE.is_match(all) => Some(check_base_url(settings)),
        400 | 403 | 404 | 422 if is_about_model => Some(check_model(model)),
        // A web page may come from a proxy or a login in front of something else.
        _ if is_about_key && is_page(&refusal.body) => {
            Some(format!("check {variable}, or {}", check_base_url(settings)))
        }
        _ if is_about_key && settings.api_key.is_none() => {
            Some(format!("set {variable}: no API key was sent"))
        }
        _ if is_about_key => Some(format!(
            "check {variable}: the API key is wrong, or is not allowed to use {model}"
        )),
        404 if all.contains("model") || all.contains("deployment") => Some(check_model(model)),
        404 | 405 => Some(check_base_url(settings)),
        400 if settings.azure.is_some() && says(&["api version"]) => {
            Some("check AZURE_OPENAI_API_VERSION".to_owned())
        }
        400 if says(&["http request was sent to https", "http request to an https"]) => {
            Some(check_base_url(settings))
        }
        400 if says(&["content_filter", "content management policy"]) => {
            Some("the provider's content filter stopped the prompt".to_owned())
        }
        _ => None,
    }
}

fn check_model(model: &str) -> String {
    format!("the server does not know the model \"{model}\"; check --model")
}

fn check_base_url(settings: &OpenAiSettings) -> String {
    let setting = match settings.azure {
        Some(_) => "AZURE_OPENAI_ENDPOINT or model.base-url",
        None => "OPENAI_BASE_URL or model.base-url",
    };
    format!(
        "check the base URL {} ({setting}): on most servers it ends in /v1",
        place(settings)
    )
}

/// Returns what is too large in a request that was refused. `sent_limit` is the limit of completion tokens that
/// was sent.
pub(super) fn overflow_in(refusal: &Refusal, sent_limit: Option<u64>) -> Option<Overflow> {
    overflow::overflow(refusal.status, &reason_in(&refusal.body), sent_limit)
}

/// Returns all texts of a body, except a web page, whose words are not a reason.
fn reason_in(body: &str) -> String {
    match is_page(body) {
        true => String::new(),
        false => all_text(body),
    }
}

/// Returns whether a body is a web page or XML.
fn is_page(body: &str) -> bool {
    let text = body.trim_start_matches('\u{feff}').trim_start();
    text.starts_with('<')
}

/// Returns the error for a prompt that exceeds a limit which the service has named before.
pub(super) fn known_overflow(tokens: u64, limit: u64, settings: &OpenAiSettings) -> ModelError {
    ModelError::ContextFull(format!(
        "it has about {tokens} tokens, and {} allows {limit}",
        place(settings)
    ))
}

/// Logs a body that clients must not see.
fn log(body: &str) {
    tracing::debug!(
        body = excerpt(body),
        "the model's service gave no error message"
    );
}

/// Removes the API key, in case the server repeats it.
fn clean(text: &str, settings: &OpenAiSettings) -> String {
    settings.redactor().text(text).into_owned()
}
