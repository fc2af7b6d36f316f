//! Requests in the provider's format.

use serde::Serialize;
use serde_json::{Map, Value, json};
use testwright_tools::tool::ToolSpec;

use super::OpenAiSettings;
use super::messages::Messages;
use super::server_capabilities::ServerCapabilities;
use super::tool_schema::{self, SchemaForm};
use crate::Request;

/// A request in the provider's format. Messages are serialized one by one, to avoid a second copy of the
/// conversation.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    pub(super) messages: Messages<'a>,
    #[serde(flatten)]
    fields: Map<String, Value>,
    /// Length of messages and tools in bytes.
    #[serde(skip)]
    pub(super) prompt_length: u64,
}

impl Body<'_> {
    /// Returns whether this field was sent.
    pub(super) fn has(&self, field: &str) -> bool {
        self.fields.contains_key(field)
    }

    /// Returns whether a stream was requested.
    pub(super) fn is_streamed(&self) -> bool {
        self.fields.get("stream") == Some(&Value::Bool(true))
    }

    /// Returns the limit of completion tokens that was sent.
    pub(super) fn sent_tokens(&self) -> Option<u64> {
        let fields = ["max_tokens", "max_completion_tokens"];
        fields
            .iter()
            .find_map(|name| self.fields.get(*name)?.as_u64())
    }
}

pub(super) fn body<'a>(
    request: &'a Request,
    settings: &OpenAiSettings,
    capabilities: ServerCapabilities,
) -> Body<'a> {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(settings.model));
    let messages = Messages::new(request, capabilities);
    let is_native = capabilities.tools_field;
    if is_native && !request.tools.is_empty() {
        let tools = request.tools.iter();
        let tools = tools.map(|spec| tool(spec, capabilities.schemas)).collect();
        body.insert("tools".to_owned(), Value::Array(tools));
        // By default, every server allows several calls in a reply, and reasoning models refuse the field.
        if !request.parallel_calls && capabilities.parallel_field {
            body.insert("parallel_tool_calls".to_owned(), json!(false));
        }
        if let Some(effort) = capabilities.effort {
            body.insert("reasoning_effort".to_owned(), json!(effort));
        }
    }
    if let (Some(temperature), true) = (
        request.temperature.or(settings.temperature),
        capabilities.temperature,
    ) {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    let prompt_length = length(&messages) + body.get("tools").map_or(0, length);
    let requested_tokens = request
        .max_tokens
        .or(settings.max_tokens)
        .or(capabilities.default_limit());
    if let (Some(tokens), Some(field)) = (requested_tokens, capabilities.limit_field.name()) {
        let limit = capabilities.completion_limit(tokens, prompt_length);
        body.insert(field.to_owned(), json!(limit));
    }
    for (field, value) in &settings.extra {
        body.entry(field.clone()).or_insert_with(|| value.clone());
    }
    // Settings cannot override this field: the reply is read accordingly.
    body.insert("stream".to_owned(), json!(capabilities.stream));
    if capabilities.stream && capabilities.usage_in_stream {
        body.insert(
            "stream_options".to_owned(),
            json!({ "include_usage": true }),
        );
    }
    Body {
        fields: body,
        messages,
        prompt_length,
    }
}

/// Returns the length of a value as JSON.
fn length(value: &impl Serialize) -> u64 {
    serde_json::to_string(value).map_or(0, |text| text.len() as u64)
}

fn tool(spec: &ToolSpec, form: SchemaForm) -> Value {
    let mut function = json!({
        "name": spec.name,
        "description": spec.description,
        "parameters": tool_schema::in_form(&spec.parameters, form),
    });
    if form == SchemaForm::Strict {
        function["strict"] = json!(true);
    }
    json!({ "type": "function", "function": function })
}
