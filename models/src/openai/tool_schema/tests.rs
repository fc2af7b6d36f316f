use super::*;

fn schema() -> Value {
    json!({
        "$schema": "x", "type": "object", "title": "T", "additionalProperties": false,
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "d"},
            "limit": {"type": ["integer", "null"], "default": null},
            "edit": {"$ref": "#/$defs/Edit"},
            "mode": {"anyOf": [{"type": "string", "enum": ["a", null]}, {"type": "null"}]},
        },
        "required": ["path"],
        "$defs": {"Edit": {"type": "object", "properties": {"old": {"type": "string", "format": "f"}}}},
    })
}

#[test]
fn simple_form_has_few_keywords() {
    let expected = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "d"},
            "limit": {"type": "integer"},
            "edit": {"type": "object", "properties": {"old": {"type": "string"}}},
            "mode": {"type": "string", "enum": ["a"]},
        },
        "required": ["path"],
    });
    assert_eq!(in_form(&schema(), SchemaForm::Simple), expected);
}

#[test]
fn strict_form_requires_all_properties() {
    let strict = in_form(&schema(), SchemaForm::Strict);
    assert_eq!(strict["required"], json!(["path", "limit", "edit", "mode"]));
    assert_eq!(strict["properties"]["path"]["type"], "string");
    assert_eq!(
        strict["properties"]["limit"]["type"],
        json!(["integer", "null"])
    );
    assert_eq!(strict["$defs"]["Edit"]["additionalProperties"], false);
    assert_eq!(
        strict["$defs"]["Edit"]["properties"]["old"]["type"],
        json!(["string", "null"])
    );
    assert_eq!(in_form(&schema(), SchemaForm::Full), schema());
}
