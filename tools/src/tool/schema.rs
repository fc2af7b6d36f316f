//! Builds a tool's schema from its argument type, in the form that models get.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::ToolSpec;

pub(super) fn spec<A: JsonSchema>(name: &str, description: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: concise(parameters::<A>()),
    }
}

/// Removes everything that a model does not need from a schema, since every character is sent with each call. Examples
/// are only for refusals. Rarely useful fields are marked `unlisted`; fields that need no description are marked
/// `plain`.
fn concise(mut schema: Value) -> Value {
    if let Some(object) = schema.as_object_mut() {
        for key in ["examples", "additionalProperties", "default"] {
            object.remove(key);
        }
        for value in object.values_mut() {
            if let Some(properties) = value.as_object_mut() {
                properties.retain(|_, property| property.get("unlisted").is_none());
                for property in properties.values_mut().filter_map(Value::as_object_mut) {
                    let is_the_file = property.get("description") == Some(&"The file.".into());
                    if property.remove("plain").is_some() || is_the_file {
                        property.remove("description");
                    }
                }
            }
        }
        for value in object.values_mut() {
            *value = concise(value.take());
        }
    }
    schema
}

/// Returns the schema of a tool's data for programs. Types used in several places are in `$defs`.
pub(super) fn data<D: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let schema = settings.into_generator().into_root_schema_for::<D>();
    schema.to_value()
}

/// Returns the schema of an argument struct, without references, titles, formats or nulls.
pub(super) fn parameters<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<A>()
        .to_value();
    clean(&mut schema);
    if let Some(object) = schema.as_object_mut() {
        // The tool's description already says what the struct is for.
        object.remove("description");
        object
            .entry("properties")
            .or_insert_with(|| Value::Object(Map::new()));
    }
    schema
}

fn clean(value: &mut Value) {
    let Some(object) = value.as_object_mut() else {
        if let Some(items) = value.as_array_mut() {
            items.iter_mut().for_each(clean);
        }
        return;
    };
    for key in ["title", "$schema", "format"] {
        object.remove(key);
    }
    // Line ends inside a paragraph come from source wrapping.
    if let Some(Value::String(text)) = object.get_mut("description") {
        let paragraphs: Vec<String> = text.split("\n\n").map(|p| p.replace('\n', " ")).collect();
        *text = paragraphs.join("\n\n");
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
    if let Some(Value::Array(types)) = object.get("type") {
        let plain: Vec<&Value> = types.iter().filter(|t| *t != "null").collect();
        if let [only] = plain.as_slice() {
            let only = (*only).clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = object.get("anyOf") {
        let plain: Vec<&Value> = choices
            .iter()
            .filter(|c| c.get("type") != Some(&"null".into()))
            .collect();
        if let [Value::Object(only)] = plain.as_slice() {
            let only = only.clone();
            object.remove("anyOf");
            for (key, inner) in only {
                object.entry(key).or_insert(inner);
            }
        }
    }
    // `minimum: 0` of unsigned numbers tells a model nothing useful.
    if object.get("minimum") == Some(&0.into()) {
        object.remove("minimum");
    }
    for (key, inner) in object.iter_mut() {
        match key.as_str() {
            "properties" => {
                for property in inner
                    .as_object_mut()
                    .into_iter()
                    .flat_map(|p| p.values_mut())
                {
                    clean(property);
                }
            }
            "examples" | "default" | "enum" | "const" | "required" => {}
            _ => clean(inner),
        }
    }
}
