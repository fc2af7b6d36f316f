//! Parses messages from clients, and reports invalid ones with the codes of JSON-RPC 2.0 (section 5.1). The library
//! would drop such messages, or report a known method with invalid parameters as unknown.

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CancelledNotificationParam, ClientJsonRpcMessage, ErrorCode,
    InitializeRequestParams, PaginatedRequestParams, ProgressNotificationParam, RequestId,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use testwright_tools::visible;

/// Maximum characters of an error message, which may quote the client's text.
const MAX_ERROR_LEN: usize = 300;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A message, with the JSON it was parsed from.
#[derive(Debug)]
pub(super) struct ReadMessage {
    pub message: ClientJsonRpcMessage,
    pub json: Value,
}

/// An error for an invalid message.
#[derive(Debug)]
pub(super) struct Unreadable {
    /// Id of the message; `None` if it has no valid id.
    id: Option<RequestId>,
    error: Box<ErrorData>,
    /// Whether it is a notification. Notifications get no response except the HTTP status.
    pub is_notification: bool,
}

impl Unreadable {
    fn new(code: ErrorCode, id: Option<&RequestId>, text: &str) -> Self {
        let text: String = text.chars().take(MAX_ERROR_LEN).collect();
        Unreadable {
            id: id.cloned(),
            error: Box::new(ErrorData::new(code, visible(&text).into_owned(), None)),
            is_notification: false,
        }
    }

    fn request(id: Option<&RequestId>, text: &str) -> Self {
        Self::new(ErrorCode::INVALID_REQUEST, id, text)
    }

    /// Reports a line that is longer than the maximum.
    pub(super) fn too_long(max: usize) -> Self {
        let text = format!("the message is longer than {} MiB", max >> 20);
        Self::request(None, &text)
    }

    /// Reports a request whose id belongs to an unanswered or cancelled request.
    pub(super) fn reused_id(id: &RequestId) -> Self {
        Self::request(Some(id), "another request has this ID: use each ID once")
    }

    /// Returns the response. An unknown id is `null`, as JSON-RPC 2.0 requires. The official Python SDK accepts that,
    /// and rejects a response without an id.
    pub(super) fn answer(&self) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.id, "error": self.error })
    }
}

pub(super) fn read(bytes: &[u8]) -> Result<ReadMessage, Unreadable> {
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let json: Value = serde_json::from_slice(text).map_err(|error| {
        let text = format!("the message is not JSON: {error}");
        Unreadable::new(ErrorCode::PARSE_ERROR, None, &text)
    })?;
    let object = match &json {
        Value::Object(object) => object,
        Value::Array(_) => {
            let text = "batches are not supported: send each message by itself";
            return Err(Unreadable::request(None, text));
        }
        _ => return Err(Unreadable::request(None, "a message must be an object")),
    };
    let has = |key: &str| object.contains_key(key);
    let message = match !has("method") && (has("result") || has("error")) {
        // The id of a response refers to a request by this server.
        true => parse(&json, None),
        false => check_call(object).and_then(|id| parse(&json, id.as_ref())),
    }?;
    Ok(ReadMessage { message, json })
}

fn parse(json: &Value, id: Option<&RequestId>) -> Result<ClientJsonRpcMessage, Unreadable> {
    ClientJsonRpcMessage::deserialize(json).map_err(|_| {
        let text = "the message is not a request, notification or response of JSON-RPC 2.0";
        Unreadable::request(id, text)
    })
}

/// Validates a request or notification, and returns the id of a request.
fn check_call(object: &Map<String, Value>) -> Result<Option<RequestId>, Unreadable> {
    let id = match object.get("id") {
        None => None,
        Some(id) => Some(RequestId::deserialize(id).map_err(|_| {
            let text = "the ID must be a string or an integer of 64 bits";
            Unreadable::request(None, text)
        })?),
    };
    let wrong = |text: &str| Err(Unreadable::request(id.as_ref(), text));
    if object.get("jsonrpc") != Some(&json!("2.0")) {
        return wrong("`jsonrpc` must be \"2.0\"");
    }
    let Some(Value::String(method)) = object.get("method") else {
        return wrong("`method` must be a string");
    };
    if object.contains_key("result") || object.contains_key("error") {
        return wrong("a request has neither `result` nor `error`");
    }
    let params = object.get("params").unwrap_or(&Value::Null);
    match check_params(method, id.is_some(), params) {
        Ok(()) => Ok(id),
        Err(text) => Err(Unreadable {
            is_notification: id.is_none(),
            ..Unreadable::new(ErrorCode::INVALID_PARAMS, id.as_ref(), &text)
        }),
    }
}

fn check_params(method: &str, is_request: bool, params: &Value) -> Result<(), String> {
    if !params.is_object() && !params.is_null() {
        return Err("`params` must be an object".to_owned());
    }
    if params.get("_meta").is_some_and(|meta| !meta.is_object()) {
        return Err("`params._meta` must be an object".to_owned());
    }
    match (method, is_request) {
        ("initialize", true) => read_params::<InitializeRequestParams>(params),
        ("tools/call", true) => read_params::<CallToolRequestParams>(params),
        ("tools/list", true) => read_params::<Option<PaginatedRequestParams>>(params),
        ("notifications/cancelled", false) => read_params::<CancelledNotificationParam>(params),
        ("notifications/progress", false) => read_params::<ProgressNotificationParam>(params),
        _ => Ok(()),
    }
}

fn read_params<P: DeserializeOwned>(params: &Value) -> Result<(), String> {
    match P::deserialize(params) {
        Ok(_) => Ok(()),
        Err(_) if params.is_null() => Err("`params` is missing".to_owned()),
        Err(error) => Err(format!("invalid `params`: {error}")),
    }
}
