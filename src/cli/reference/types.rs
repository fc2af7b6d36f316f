//! Generates `file-formats.md`, which describes files by the schemas of their types.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;
use testwright_agent::gate::Evidence;
use testwright_agent::job::Record;
use testwright_agent::trajectory::Event;
use testwright_comparisons::check::CheckRecord;
use testwright_comparisons::compare::report::ComparisonReport;
use testwright_comparisons::compare::{Plan, RunRecord};
use testwright_evals::predictions::Prediction;
use testwright_evals::report::{GradingReport, RunMetadata};
use testwright_evals::selection::{SelectionResult, SelectionSummary};
use testwright_evals::{Instance, InstanceResult};
use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::recipe::Recipe;

/// A file format.
struct Format {
    title: &'static str,
    what: &'static str,
    /// Types of its content.
    types: &'static [fn(&mut SchemaGenerator)],
}

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}

const FORMATS: [Format; 12] = [
    Format {
        title: "evidence.json",
        what: "Evidence for an accepted test. One JSON object, an `Evidence`.",
        types: &[add::<Evidence>],
    },
    Format {
        title: "trajectory.jsonl",
        what: "Everything that happened in a run. JSON lines; each line is an `Event`.",
        types: &[add::<Event>],
    },
    Format {
        title: "run.json of a run",
        what: "Settings, versions, isolation, outcome and usage. One JSON object, a `Record`. Its `environment` is an `Environment`.",
        types: &[add::<Record>, add::<Environment>],
    },
    Format {
        title: "datasets",
        what: "Input of `testwright eval --dataset`: JSON lines, a JSON list, or Parquet, with the field names of SWE-bench. Each \
               row is an `Instance`; other fields are ignored.",
        types: &[add::<Instance>],
    },
    Format {
        title: "predictions",
        what: "Input of `testwright eval --predictions`: JSON lines or a JSON list. Each row is a `Prediction`.",
        types: &[add::<Prediction>],
    },
    Format {
        title: "results.jsonl",
        what: "Graded predictions. JSON lines; each line is an `InstanceResult`.",
        types: &[add::<InstanceResult>],
    },
    Format {
        title: "checks.jsonl",
        what: "Predictions checked by `testwright check --dataset`. JSON lines; each line is a `CheckRecord`. `testwright check --json` prints \
               a list of `CheckEvidence`, each with the name of its `test`.",
        types: &[add::<CheckRecord>],
    },
    Format {
        title: "report.json",
        what: "The figures of `report.md` and `report.html`. One JSON object, a `GradingReport`. The folder's `run.json` is a `RunMetadata`.",
        types: &[add::<GradingReport>, add::<RunMetadata>],
    },
    Format {
        title: "comparison.json and runs.jsonl",
        what: "The plan of a comparison, a `Plan`; and the results of its runs, as JSON lines of type `RunRecord`.",
        types: &[add::<Plan>, add::<RunRecord>],
    },
    Format {
        title: "report.json of a comparison",
        what: "The figures of its `report.md` and `report.html`. One JSON object, a `ComparisonReport`.",
        types: &[add::<ComparisonReport>],
    },
    Format {
        title: "selection.json",
        what: "Code patches selected by tests: `summaries` for each set of tests, and `results` for each patch.",
        types: &[add::<SelectionSummary>, add::<SelectionResult>],
    },
    Format {
        title: "testwright.toml [environment]",
        what: "The build of an environment, a `Recipe`, in the repository's own `testwright.toml` or a file given with `--config`.",
        types: &[add::<Recipe>],
    },
];

pub(super) fn page() -> String {
    let mut body = "A field that is `or null` may also be left out. A type is described where it first occurs.\n\n\
                    The *gate* is the fixed set of checks that decides whether a test is accepted. *Golden* patches and tests are the \
                    reference fix and the reference tests of a dataset. The *base suite* is the test files that a prediction touches, \
                    without the prediction. F→P (fail-to-pass) means that a test fails on the old code and passes on the new code; \
                    F→× means that it fails on the old code.\n\n\
                    `test.patch` is a unified diff for `git apply`.\n"
        .to_owned();
    let mut described: Vec<(String, Value)> = Vec::new();
    for format in FORMATS {
        body += &format!("\n## {}\n\n{}\n", format.title, format.what);
        let mut generator = SchemaGenerator::default();
        for add in format.types {
            add(&mut generator);
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
    add::<One>(&mut generator);
    let texts: Vec<String> = (generator.take_definitions(true).iter())
        .map(|(name, schema)| description(name, schema, &[]))
        .collect();
    insta::assert_snapshot!(texts.concat());
}
