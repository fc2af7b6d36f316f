//! MCP over streamable HTTP, without sessions and streams: each message is a POST, and its answer is JSON.

use serde_json::{Value, json};
use testwright_tools::tool::AnyTool;

/// Versions of the protocol; the first one is offered to clients with another version.
const PROTOCOL_VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

const NOT_JSON: i64 = -32700;
const UNKNOWN_METHOD: i64 = -32601;
const INVALID_PARAMETERS: i64 = -32602;
/// Code of the error after the end of the run.
pub(super) const RUN_ENDED: i64 = -32000;

/// The answer of a tool.
pub(super) struct ToolReply {
    pub(super) text: String,
    pub(super) refused: bool,
    /// Whether the gate accepted a submission; `None` if there was none.
    pub(super) accepted: Option<bool>,
}

/// A message of the program.
pub(super) enum Incoming {
    /// A call of a tool.
    Call {
        id: Value,
        name: String,
        arguments: Value,
    },
    /// A request, with its answer.
    Answered(Value),
    /// A message that needs no answer.
    Notification,
}

/// Reads a message.
pub(super) fn read(body: &[u8], tools: &[&'static dyn AnyTool]) -> Incoming {
    let Ok(message) = serde_json::from_slice::<Value>(body) else {
        return Incoming::Answered(error(&Value::Null, NOT_JSON, "the message is not JSON"));
    };
    let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
        return Incoming::Notification;
    };
    let parameters = &message["params"];
    Incoming::Answered(match method {
        "initialize" => answer(id, &initialized(parameters)),
        "ping" => answer(id, &json!({})),
        "tools/list" => {
            let tools: Vec<Value> = tools.iter().map(|tool| describe(*tool)).collect();
            answer(id, &json!({ "tools": tools }))
        }
        "tools/call" => match (parameters["name"].as_str(), &parameters["arguments"]) {
            (Some(name), Value::Null | Value::Object(_)) => {
                let arguments = parameters["arguments"].as_object().cloned();
                return Incoming::Call {
                    id: id.clone(),
                    name: name.to_owned(),
                    arguments: Value::Object(arguments.unwrap_or_default()),
                };
            }
            _ => error(
                id,
                INVALID_PARAMETERS,
                "`name` is missing, or `arguments` is not an object",
            ),
        },
        other => {
            let message = format!("there is no method `{other}`");
            error(id, UNKNOWN_METHOD, &message)
        }
    })
}

fn initialized(parameters: &Value) -> Value {
    let requested = parameters["protocolVersion"].as_str();
    let known = PROTOCOL_VERSIONS
        .into_iter()
        .find(|version| Some(*version) == requested);
    json!({
        "protocolVersion": known.unwrap_or(PROTOCOL_VERSIONS[0]),
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "testwright", "version": env!("CARGO_PKG_VERSION") },
    })
}

/// Describes a tool as models see it.
fn describe(tool: &dyn AnyTool) -> Value {
    let spec = tool.spec();
    json!({
        "name": spec.name,
        "title": tool.title(),
        "description": spec.description,
        "inputSchema": spec.parameters,
    })
}

/// Returns the answer to a call of a tool.
pub(super) fn result(id: &Value, reply: &ToolReply) -> Value {
    let mut result = json!({
        "content": [{ "type": "text", "text": reply.text }],
        "isError": reply.refused,
    });
    if let Some(accepted) = reply.accepted {
        result["structuredContent"] = json!({ "accepted": accepted });
    }
    answer(id, &result)
}

fn answer(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Returns the answer to a request that failed.
pub(super) fn error(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

#[cfg(test)]
mod tests {
    use testwright_tools::registry;

    use super::*;

    fn read_json(message: &Value) -> Incoming {
        let tools: Vec<_> = registry::for_models().collect();
        read(message.to_string().as_bytes(), &tools)
    }

    #[test]
    fn calls_and_requests_are_distinguished() {
        let message = |method: &str, params: Value| {
            let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
            read_json(&message)
        };
        let call = message(
            "tools/call",
            json!({"name": "shell", "arguments": {"command": "ls"}}),
        );
        assert!(
            matches!(call, Incoming::Call { id, name, arguments } if id == 7 && name == "shell" && arguments["command"] == "ls")
        );
        let version = json!({"protocolVersion": "2025-06-18"});
        assert!(
            matches!(message("initialize", version), Incoming::Answered(answer) if answer["result"]["protocolVersion"] == "2025-06-18")
        );
        assert!(
            matches!(message("tools/list", json!({})), Incoming::Answered(answer) if answer["result"]["tools"][0]["inputSchema"]["type"] == "object")
        );
        assert!(
            matches!(message("server/discover", json!({})), Incoming::Answered(answer) if answer["error"]["code"] == UNKNOWN_METHOD)
        );
        assert!(
            matches!(message("tools/call", json!({"name": "shell", "arguments": ["ls"]})), Incoming::Answered(answer) if answer["error"]["code"] == INVALID_PARAMETERS)
        );
        let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert!(matches!(read_json(&notification), Incoming::Notification));
    }
}
