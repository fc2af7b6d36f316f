#![allow(clippy::unwrap_used)]
use serde_json::json;

use super::*;

fn tool(properties: Value, required: Value) -> ToolSpec {
    ToolSpec {
        name: "search".to_owned(),
        description: String::new(),
        parameters: json!({"type": "object", "properties": properties, "required": required}),
    }
}

fn arguments_for(tool: &ToolSpec, value: Value) -> Value {
    Value::Object(fitted(object(value, true).unwrap(), tool))
}

#[test]
fn wrapped_arguments_are_unwrapped() {
    let search = tool(json!({"pattern": {}, "max_hits": {}}), json!(["pattern"]));
    let inner = json!({"pattern": "x"});
    let encoded = inner.to_string();
    for value in [
        inner.clone(),
        json!({"arguments": inner}),
        json!({"arguments": encoded}),
        json!({"input": inner}),
        json!({"parameters": inner}),
        json!({"kwargs": inner}),
        json!({"": inner}),
        json!({"search": inner}),
        json!({"name": "search", "arguments": inner}),
        json!({"function": {"name": "search", "arguments": encoded}}),
        json!({"arguments": {"arguments": inner}}),
        json!({"arguments": [inner]}),
        json!({"arguments": {"Pattern": "x"}}),
        json!({"arguments": format!("```json\n{encoded}\n```")}),
        json!({"arguments": "<parameter=pattern>x</parameter>"}),
        json!({"parameters": [{"name": "pattern", "value": "x"}]}),
        json!([{"key": "pattern", "value": "x"}]),
        json!({"args": [], "kwargs": inner}),
        json!({"thought": "I look.", "arguments": inner}),
        json!({"action": "search", "action_input": inner}),
        json!({"arguments": inner, "max_hits": null}),
        json!({"type": "object", "properties": inner, "required": ["pattern"]}),
        json!({"tool_calls": [{"function": {"name": "search", "arguments": encoded}}]}),
        json!([inner]),
        json!(encoded),
        json!(json!(encoded).to_string()),
        json!(format!("```json\n{encoded}\n```")),
        json!(format!("{encoded}<|call|>")),
        json!(format!("json{encoded}")),
        json!(format!("<|message|>{encoded}<|end|>")),
        json!(format!("{encoded}</tool_call>")),
        json!(format!("{{}}{encoded}")),
        json!(format!("null{encoded}")),
        json!(format!("{{{encoded}}}")),
        json!(format!("{encoded}\n</function>")),
        json!(format!("{encoded}</parameter>\n</invoke>")),
        json!(format!("{encoded}{encoded}")),
        json!(format!("{encoded}}}")),
        json!({"\"pattern\"": "x"}),
        json!({" pattern": "x"}),
        json!({"Pattern": "x"}),
    ] {
        assert_eq!(arguments_for(&search, value.clone()), inner, "{value}");
    }
    assert_eq!(
        arguments_for(&search, json!({"pattern": "x", "maxHits": 3})),
        json!({"pattern": "x", "max_hits": 3})
    );
    assert_eq!(
        arguments_for(&search, json!("{\"pattern\": \"</parameter>x\"}</invoke>")),
        json!({"pattern": "</parameter>x"})
    );
}

#[test]
fn own_fields_are_not_unwrapped() {
    let own = tool(json!({"input": {}, "pattern": {}}), json!(["input"]));
    for value in [
        json!({"input": {"pattern": "x"}}),
        json!({"code": {"other": "x"}}),
        json!({"a": {"pattern": "x"}, "b": {"pattern": "y"}}),
        json!({"pattern": "x", "Pattern": "y"}),
    ] {
        assert_eq!(arguments_for(&own, value.clone()), value, "{value}");
    }
    // A tool without required parameters may be called with placeholders.
    let optional = tool(json!({"tests": {}}), json!([]));
    for value in [
        json!({"arguments": null}),
        json!({"dummy": ""}),
        json!({"arguments": {}}),
        json!([]),
    ] {
        assert_eq!(
            arguments_for(&optional, value.clone()),
            json!({}),
            "{value}"
        );
    }
    for text in [
        "{\"pattern\": \"x\"}{\"pattern\": \"y\"}",
        "{\"pattern\": \"x\"} and more",
        "x",
        "\"x\"",
        "[1]",
    ] {
        assert!(object(json!(text), true).is_err(), "{text}");
    }
}
