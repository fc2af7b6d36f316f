//! Generates `file-formats.md`, which describes files by the schemas of their types.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

use crate::cli::schema::{FORMATS, subschema};

pub(super) fn page() -> String {
    let mut body = "A field that is `or null` may also be left out. A type is described where it first occurs.\n\n\
                    The *gate* is the fixed set of checks that decides whether a test is accepted. *Golden* patches and tests are the \
                    reference fix and the reference tests of a dataset. The *base suite* is the test files that a prediction touches, \
                    without the prediction. F→P (fail-to-pass) means that a test fails on the old code and passes on the new code; \
                    F→× means that it fails on the old code.\n\n\
                    `test.patch` is a unified diff for `git apply`.\n\n\
                    JSON files and the lines of results have the field `format`, the version of their format. It is 1 now. \
                    Fields may be added without another number; a field that is renamed, removed or has another meaning \
                    makes the number larger. A \
                    trajectory has it in its first line; datasets and predictions have none. `testwright schema NAME` prints the JSON \
                    Schema of a type.\n"
        .to_owned();
    let mut described: Vec<(String, Value)> = Vec::new();
    for format in &FORMATS {
        body += &format!("\n## {}\n\n{}\n", format.title, format.what);
        let mut generator = SchemaGenerator::default();
        for (_, subschema) in format.types {
            subschema(&mut generator);
        }
        for definition in generator.take_definitions(true) {
            if !described.contains(&definition) {
                body += &description(&definition.0, &definition.1, &described);
                described.push(definition);
            }
        }
    }
    super::page("File formats", "the types that are written", &body)
}

/// Returns the section on one type. Fields that it shares with an already described type are not repeated.
fn description(name: &str, schema: &Value, described: &[(String, Value)]) -> String {
    let mut text = format!("\n### `{name}`\n\n");
    if let Some(words) = schema["description"].as_str() {
        text += &format!("{}\n\n", strip_rustdoc(words));
    }
    let mut rows = Vec::new();
    let shared = (described.iter()).find(|(_, other)| {
        schema["properties"].is_object()
            && other["oneOf"].is_array()
            && other["oneOf"] == schema["oneOf"]
    });
    let mut own = schema.clone();
    if let Some((other, _)) = shared {
        own["oneOf"] = Value::Null;
        rows.push(Row {
            name: "(all fields of the type)".to_owned(),
            kind: format!("`{other}`"),
            meaning: String::new(),
        });
    }
    add_rows(&own, &mut rows);
    let has_types = rows.iter().any(|row| !row.kind.is_empty());
    text += match has_types {
        true => "| field | type | meaning |\n|---|---|---|\n",
        false => "| value | meaning |\n|---|---|\n",
    };
    for Row {
        name,
        kind,
        meaning,
    } in rows
    {
        text += &match has_types {
            true => format!("| {name} | {} | {meaning} |\n", super::cell(&kind)),
            false => format!("| {name} | {meaning} |\n"),
        };
    }
    text
}

struct Row {
    name: String,
    kind: String,
    meaning: String,
}

fn add_rows(schema: &Value, rows: &mut Vec<Row>) {
    let meaning = |of: &Value| {
        super::cell(&strip_rustdoc(
            of["description"].as_str().unwrap_or_default(),
        ))
    };
    let mut add = |name: String, kind: String, meaning: String| {
        rows.push(Row {
            name,
            kind,
            meaning,
        });
    };
    for value in schema["enum"].as_array().into_iter().flatten() {
        add(format!("`{value}`"), String::new(), String::new());
    }
    if let Some(value) = schema.get("const") {
        add(format!("`{value}`"), String::new(), meaning(schema));
    }
    let fields = || schema["properties"].as_object().into_iter().flatten();
    let tag = fields().find(|(_, field)| field.get("const").is_some());
    if let Some((field, value)) = tag {
        let content = schema.get("$ref").map(|_| describe_type(schema));
        let name = format!("`\"{field}\": {}`", value["const"]);
        add(name, content.unwrap_or_default(), meaning(schema));
    }
    let dash = if tag.is_some() { "– " } else { "" };
    for (name, field) in fields().filter(|(_, field)| field.get("const").is_none()) {
        add(
            format!("{dash}`{name}`"),
            describe_type(field),
            meaning(field),
        );
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        for variant in schema[key].as_array().into_iter().flatten() {
            add_rows(variant, rows);
        }
    }
}

/// Describes a field's type in words.
fn describe_type(schema: &Value) -> String {
    let any_of = |kinds: &[Value], kind: &dyn Fn(&Value) -> String| {
        let kinds: Vec<String> = kinds.iter().map(kind).collect();
        kinds.join(" or ")
    };
    if let Some(path) = schema["$ref"].as_str() {
        return format!("`{}`", path.rsplit('/').next().unwrap_or(path));
    }
    if let Some(all) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        return any_of(all, &describe_type);
    }
    match &schema["type"] {
        Value::Array(types) => any_of(types, &|name| named(name, schema)),
        Value::Null => "any".to_owned(),
        name => named(name, schema),
    }
}

fn named(name: &Value, schema: &Value) -> String {
    match name.as_str().unwrap_or_default() {
        "array" => match schema["prefixItems"].as_array() {
            Some(items) => {
                let items: Vec<String> = items.iter().map(describe_type).collect();
                format!("list [{}]", items.join(", "))
            }
            None => format!("list of {}", describe_type(&schema["items"])),
        },
        "string" if schema["format"] == "date-time" => "date and time".to_owned(),
        "object" if schema["additionalProperties"].is_object() => {
            format!("map to {}", describe_type(&schema["additionalProperties"]))
        }
        name => name.to_owned(),
    }
}

/// Replaces Rust's link syntax and `None`, which mean nothing outside rustdoc.
fn strip_rustdoc(text: &str) -> String {
    text.replace("[`", "`")
        .replace("`]", "`")
        .replace("`None`", "`null`")
}

#[test]
fn schemas_describe_types() {
    /// A sample type.
    #[derive(JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    #[allow(dead_code)]
    struct One {
        /// First
        /// of [`all`].
        a_b: Option<u8>,
        two: Vec<Two>,
    }
    #[derive(JsonSchema)]
    #[serde(tag = "event", rename_all = "snake_case")]
    #[allow(dead_code)]
    enum Two {
        /// The time is up.
        OutOfTime {
            limit: (u8, String),
        },
        Three(Three),
    }
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Three {
        four: Four,
    }
    #[derive(JsonSchema)]
    #[serde(rename_all = "lowercase")]
    #[allow(dead_code)]
    enum Four {
        Yes,
        /// The answer may change.
        No,
    }
    let mut generator = SchemaGenerator::default();
    subschema::<One>(&mut generator);
    let texts: Vec<String> = (generator.take_definitions(true).iter())
        .map(|(name, schema)| description(name, schema, &[]))
        .collect();
    insta::assert_snapshot!(texts.concat());
}
