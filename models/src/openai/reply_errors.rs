//! Errors of services in bodies with status 200.

use async_openai::error::OpenAIError;
use serde_json::{Value, json};
use testwright_sandboxes::Pattern;

use super::endpoint::Refusal;
use super::fault;

/// Checks for an error in the body, because some gateways report errors with status 200.
pub(super) fn error_in(body: &Value) -> Result<(), OpenAIError> {
    // MiniMax has codes of its own.
    let code = body.pointer("/base_resp/status_code");
    if let Some(code @ 1..) = code.and_then(Value::as_u64) {
        let status = match code {
            1002 | 1039 => 429,
            1004 | 2049 => 401,
            1008 => 402,
            2013 => 400,
            _ => 500,
        };
        let message = body.pointer("/base_resp/status_msg");
        let body = json!({ "error": { "message": message } }).to_string();
        return Err(OpenAIError::Boxed(Box::new(Refusal::new(status, body))));
    }
    let own = body.get("error").filter(|error| is_error(error));
    // vLLM and SGLang send the error without an object around it.
    match own.or_else(|| Some(body).filter(|body| body["object"] == "error")) {
        Some(error) => Err(service_error(error, 500)),
        None => Ok(()),
    }
}

/// Checks for a failure of the service in a choice, which gateways report after the reply has begun.
pub(super) fn error_in_choice(choice: &Value) -> Result<(), OpenAIError> {
    let places = ["/error", "/message/error", "/delta/error"];
    let mut errors = places.iter().filter_map(|path| choice.pointer(path));
    if let Some(error) = errors.find(|error| is_error(error)) {
        return Err(service_error(error, 502));
    }
    let reason = |key: &str| {
        let reason = choice.get(key).and_then(Value::as_str);
        reason.unwrap_or_default().to_lowercase()
    };
    let finish = reason("finish_reason");
    if finish.contains("context_window") || finish.contains("context_length") {
        let error = json!({ "message": "context_length_exceeded by the prompt and the reply" });
        return Err(service_error(&error, 400));
    }
    // OpenRouter passes on the reason of the service behind it.
    let has_failed = FAILED.is_match(&finish) || FAILED.is_match(&reason("native_finish_reason"));
    match has_failed {
        true => Err(fault(
            502,
            "the service failed in the middle of the reply",
            choice.to_string(),
        )),
        false => Ok(()),
    }
}

/// Reasons for the end of a reply that are failures of the service, such as DeepSeek's
/// `insufficient_system_resource` and Gemini's `MALFORMED_FUNCTION_CALL`.
static FAILED: Pattern = Pattern::new(
    r"error|fail|abort|cancel|exception|interrupt|insufficient|overload|unavailable|time_?d?_?out|malformed|unexpected_tool",
);

fn is_error(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

/// Returns the error of a service, with the status that it names or a default.
pub(super) fn service_error(error: &Value, default: u16) -> OpenAIError {
    let code = ["code", "status", "status_code"]
        .iter()
        .find_map(|key| match error.get(*key)? {
            Value::Number(n) => n.as_u64(),
            Value::String(s) => s.parse().ok(),
            _ => None,
        })
        .and_then(|n| u16::try_from(n).ok())
        .filter(|n| (400..600).contains(n));
    let body = json!({ "error": error }).to_string();
    OpenAIError::Boxed(Box::new(Refusal::new(code.unwrap_or(default), body)))
}
