//! Converts a model's arguments to a tool's argument struct. Harmless slips are repaired; other errors are refused
//! with the field, the nearest known one and an example.

use schemars::JsonSchema;
use serde_json::{Map, Value};

use super::{
    AnyTool, Audience, Context, Effect, Result, Route, Tool, ToolAnswer, ToolError, ToolSpec,
    refusal, schema,
};

/// Defines methods that return constants of the tool.
macro_rules! constants {
    ($tool:ident: $($name:ident -> $kind:ty = $constant:ident;)*) => {
        $(fn $name(&self) -> $kind {
            $tool::$constant
        })*
    };
}

impl<T: Tool> AnyTool for T {
    constants! {
        T:
        name -> &'static str = NAME;
        title -> &'static str = TITLE;
        audience -> Audience = AUDIENCE;
        effect -> Effect = EFFECT;
        route -> Route = ROUTE;
        low_level -> bool = LOW_LEVEL;
        seconds -> u64 = SECONDS;
        runs_code -> bool = RUNS_CODE;
        needs_wanted_lines -> bool = NEEDS_WANTED_LINES;
    }

    fn is_destructive(&self) -> bool {
        T::EFFECT == Effect::Writes && T::IS_DESTRUCTIVE
    }

    fn is_idempotent(&self) -> bool {
        T::EFFECT == Effect::Reads || T::IS_IDEMPOTENT
    }

    fn spec(&self) -> ToolSpec {
        schema::spec::<T::Args>(T::NAME, T::DESCRIPTION)
    }

    fn data_schema(&self) -> Value {
        schema::data::<T::Data>()
    }

    fn check(&self, arguments: Value) -> Result<Value> {
        let repaired = repair(T::NAME, &schema::parameters::<T::Args>(), arguments)?;
        read::<T>(repaired.clone())?;
        Ok(repaired)
    }

    fn call(&self, context: &mut Context<'_>, arguments: Value) -> Result<ToolAnswer> {
        let args = read::<T>(arguments)?;
        Tool::call(self, context, args)?.encode()
    }
}

impl ToolSpec {
    /// Returns the specification of a tool that the host carries out itself, without a workspace.
    pub fn of_host<A: JsonSchema>(name: &str, description: &str) -> ToolSpec {
        schema::spec::<A>(name, description)
    }

    /// Checks arguments against the schema, and repairs harmless slips.
    ///
    /// # Errors
    ///
    /// Returns `Refused`, with the field and the nearest known one.
    pub fn check(&self, arguments: Value) -> Result<Value> {
        repair(&self.name, &self.parameters, arguments)
    }
}

fn read<T: Tool>(arguments: Value) -> Result<T::Args> {
    let schema = schema::parameters::<T::Args>();
    let arguments = repair(T::NAME, &schema, arguments)?;
    serde_json::from_value(arguments).map_err(|e| refuse(T::NAME, &schema, &e.to_string()))
}

/// Checks the top level against the schema, and repairs values with only one possible meaning: a number or a list
/// written as a string, one string instead of a list, `null` for an omitted field.
fn repair(tool: &str, schema: &Value, arguments: Value) -> Result<Value> {
    let arguments = match arguments {
        Value::Null => Value::Object(Map::new()),
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        other => other,
    };
    let refused = |what: &str| refuse(tool, schema, what);
    let Value::Object(input_fields) = arguments else {
        return Err(refused("the arguments are not an object"));
    };
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let mut fields = Map::new();
    for (name, value) in input_fields {
        let Some(property) = properties.get(&name) else {
            let nearest = properties
                .keys()
                .map(|k| (strsim::jaro_winkler(k, &name), k))
                .filter(|(score, _)| *score > 0.7)
                .max_by(|a, b| a.0.total_cmp(&b.0));
            let names: Vec<String> = properties.keys().map(|k| format!("`{k}`")).collect();
            let meant = match (nearest, names.is_empty()) {
                (Some((_, nearest)), _) => format!("did you mean `{nearest}`?"),
                (None, true) => "it takes none".to_owned(),
                (None, false) => format!("it takes {}", names.join(", ")),
            };
            return Err(refused(&format!("there is no field `{name}`; {meant}")));
        };
        if value.is_null() {
            continue;
        }
        let type_name = property["type"].as_str().unwrap_or_default();
        let value = coerce(type_name, property, value).map_err(|value| {
            let mut got = value.to_string();
            if got.chars().count() > 40 {
                got = got.chars().take(40).chain("…".chars()).collect();
            }
            let kind = with_article(type_name);
            refused(&format!("`{name}` must be {kind}, not {got}"))
        })?;
        fields.insert(name, value);
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        if !fields.contains_key(name) {
            let description = properties.get(name).and_then(|p| p["description"].as_str());
            let what = description.map(|d| format!(" ({})", d.trim_end_matches('.')));
            let what = what.unwrap_or_default();
            return Err(refused(&format!("`{name}` is missing{what}")));
        }
    }
    Ok(Value::Object(fields))
}

/// Returns the value converted to the wanted type, or the original value as the error.
fn coerce(type_name: &str, property: &Value, value: Value) -> Result<Value, Value> {
    let fits = match type_name {
        "string" => value.is_string(),
        "integer" => value.is_u64() || (value.is_i64() && property.get("minimum").is_none()),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    if fits {
        return Ok(value);
    }
    match (type_name, &value) {
        ("integer", Value::Number(n))
            if n.as_f64()
                .is_some_and(|f| f.fract() == 0.0 && (0.0..9e15).contains(&f)) =>
        {
            // The conversion is exact: the number has no fraction and is in range.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let whole = n.as_f64().unwrap_or_default() as u64;
            return Ok(whole.into());
        }
        ("integer" | "number" | "boolean" | "array" | "object", Value::String(text)) => {
            if let Ok(inner) = serde_json::from_str::<Value>(text.trim())
                && !inner.is_string()
                && let Ok(inner) = coerce(type_name, property, inner)
            {
                return Ok(inner);
            }
            if type_name == "array" {
                return Ok(Value::Array(vec![value]));
            }
        }
        ("string", Value::Number(n)) => return Ok(n.to_string().into()),
        _ => {}
    }
    Err(value)
}

fn with_article(kind: &str) -> &'static str {
    match kind {
        "string" => "a string",
        "integer" => "a whole number from 0",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "an object",
        _ => "another value",
    }
}

fn refuse(tool: &str, schema: &Value, what: &str) -> ToolError {
    let example = example(schema);
    let example = match example.as_object().is_some_and(Map::is_empty) {
        true => String::new(),
        false => format!(" Example: {example}"),
    };
    refusal!("This call was not carried out: bad arguments for `{tool}`: {what}.{example}")
}

/// Returns an example call with the required fields, from the schema's examples. If no field is required, it uses the
/// fields that have an example.
fn example(schema: &Value) -> Value {
    let mut fields = Map::new();
    let properties = schema["properties"].as_object();
    let first_example = |property: &Value| property.get("examples")?.get(0).cloned();
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        let property = properties.and_then(|p| p.get(name));
        let value = property.and_then(first_example).unwrap_or_else(|| {
            match property.and_then(|p| p.get("type")).and_then(Value::as_str) {
                Some("integer" | "number") => 1.into(),
                Some("boolean") => true.into(),
                Some("array") => Value::Array(vec!["…".into()]),
                _ => "…".into(),
            }
        });
        fields.insert(name.to_owned(), value);
    }
    if fields.is_empty() {
        let all = properties.into_iter().flatten();
        fields.extend(
            all.filter_map(|(name, property)| Some((name.clone(), first_example(property)?))),
        );
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests;
