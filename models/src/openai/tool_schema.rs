//! Schemas of tools in the forms that services take.

use serde_json::{Map, Value, json};

/// A form of JSON schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaForm {
    /// The schema as it is.
    Full,
    /// A schema with types, properties, items, enumerations and descriptions alone (Gemini and others).
    Simple,
    /// Every property is required, optional ones may be null, and no others are allowed.
    Strict,
}

/// Keywords of the simple form.
const SIMPLE_KEYWORDS: [&str; 7] = [
    "type",
    "description",
    "properties",
    "required",
    "items",
    "enum",
    "nullable",
];

/// Returns a schema in another form.
pub(super) fn in_form(schema: &Value, form: SchemaForm) -> Value {
    match form {
        SchemaForm::Full => schema.clone(),
        SchemaForm::Simple => simple(schema, schema),
        SchemaForm::Strict => strict(schema),
    }
}

fn simple(schema: &Value, root: &Value) -> Value {
    let Some(fields) = schema.as_object() else {
        // `true` allows anything.
        return json!({});
    };
    if let Some(target) = fields.get("$ref").and_then(Value::as_str)
        && let Some(target) = root.pointer(target.trim_start_matches('#'))
        && target != root
    {
        return simple(target, &Value::Null);
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        let options = fields.get(key).and_then(Value::as_array);
        let first = options.and_then(|options| options.iter().find(|o| o["type"] != "null"));
        if let Some(first) = first {
            let mut chosen = simple(first, root);
            if let (Some(chosen), Some(text)) = (chosen.as_object_mut(), fields.get("description"))
            {
                chosen.insert("description".to_owned(), text.clone());
            }
            return chosen;
        }
    }
    let mut simple_fields = Map::new();
    for (key, value) in fields {
        if !SIMPLE_KEYWORDS.contains(&key.as_str()) {
            continue;
        }
        let value = match key.as_str() {
            "type" => match value.as_array() {
                Some(types) => types.iter().find(|t| **t != "null").cloned(),
                None => Some(value.clone()),
            },
            "properties" => value.as_object().map(|properties| {
                let properties = properties.iter();
                let simple = properties.map(|(name, inner)| (name.clone(), simple(inner, root)));
                Value::Object(simple.collect())
            }),
            "items" => Some(simple(value, root)),
            "enum" => value.as_array().map(|values| {
                let values = values.iter().filter(|value| !value.is_null());
                Value::Array(values.cloned().collect())
            }),
            _ => Some(value.clone()),
        };
        simple_fields.extend(value.map(|value| (key.clone(), value)));
    }
    Value::Object(simple_fields)
}

fn strict(schema: &Value) -> Value {
    let mut schema = schema.clone();
    match &mut schema {
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                if key != "properties" {
                    *value = strict(value);
                }
            }
            fields.remove("default");
            if fields.get("type").is_some_and(|kind| kind == "object") {
                close(fields);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = strict(item)),
        _ => {}
    }
    schema
}

/// Requires all properties of an object, and allows no others.
fn close(fields: &mut Map<String, Value>) {
    let required: Vec<Value> = fields
        .get("required")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let properties = fields
        .entry("properties")
        .or_insert_with(|| json!({}))
        .as_object_mut();
    let mut names = Vec::new();
    for (name, property) in properties.into_iter().flatten() {
        *property = strict(property);
        if !required.contains(&json!(name)) {
            make_nullable(property);
        }
        names.push(json!(name));
    }
    fields.insert("required".to_owned(), Value::Array(names));
    fields.insert("additionalProperties".to_owned(), json!(false));
}

fn make_nullable(property: &mut Value) {
    let Some(kind) = property.get_mut("type") else {
        return;
    };
    match kind {
        Value::String(one) => *kind = json!([one, "null"]),
        Value::Array(many) if !many.contains(&json!("null")) => many.push(json!("null")),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
