#![allow(clippy::unwrap_used, clippy::expect_used)]

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::tool::Reply;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The path.
    #[schemars(example = "tests/test_x.py")]
    path: String,
    #[serde(default)]
    lines: Option<u32>,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    exact: bool,
}

struct Probe;

impl Tool for Probe {
    type Args = Args;
    type Data = Value;
    const NAME: &'static str = "probe";
    const DESCRIPTION: &'static str = "Nothing.";
    fn call(&self, _: &mut Context<'_>, _: Args) -> Result<Reply<Value>> {
        Ok(Reply::new("", Value::Null))
    }
}

fn refusal(arguments: Value) -> String {
    match read::<Probe>(arguments) {
        Err(ToolError::Refused(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn harmless_slips_are_repaired() {
    let args =
        read::<Probe>(json!({"path": "a", "lines": "12", "names": "b", "exact": "true"})).unwrap();
    assert_eq!(args.path, "a");
    assert_eq!(
        (args.lines, args.names, args.exact),
        (Some(12), vec!["b".to_owned()], true)
    );
    let args = read::<Probe>(json!(
        "{\"path\": \"a\", \"lines\": null, \"names\": \"[\\\"c\\\"]\"}"
    ))
    .unwrap();
    assert_eq!((args.lines, args.names), (None, vec!["c".to_owned()]));
    assert_eq!(
        read::<Probe>(json!({"path": "a", "lines": 3.0}))
            .unwrap()
            .lines,
        Some(3)
    );
}

#[test]
fn refusals_name_field_and_example() {
    let text = refusal(json!({"file_path": "a"}));
    assert!(
        text.starts_with("This call was not carried out: bad arguments for `probe`: "),
        "{text}"
    );
    assert!(
        text.contains("no field `file_path`") && text.contains("`path`"),
        "{text}"
    );
    assert!(
        text.contains(r#"Example: {"path":"tests/test_x.py"}"#),
        "{text}"
    );
    assert!(refusal(json!({})).contains("`path` is missing (The path)"));
    assert!(
        refusal(json!({"path": "a", "lines": "many"})).contains("`lines` must be a whole number")
    );
    assert!(refusal(json!({"path": ["a"]})).contains("`path` must be a string"));
    assert!(refusal(json!({"path": "a", "names": [1]})).contains("probe"));
    assert!(refusal(json!([1])).contains("not an object"));
    refusal(json!({"path": "a", "lines": -1}));
    refusal(json!({"path": "a", "lines": 1_u64 << 40}));
}

#[test]
fn tool_examples_are_valid_calls() {
    let example = |tool: &dyn AnyTool| {
        let Err(ToolError::Refused(text)) = tool.check(json!({"no such field": 1})) else {
            panic!("{}", tool.name());
        };
        // A tool that needs no arguments has no example.
        let example = text.split_once("Example: ");
        let example = example.map_or("{}", |(_, example)| example);
        serde_json::from_str::<Value>(example).unwrap()
    };
    for tool in crate::registry::with_wanted_lines() {
        let example = example(tool);
        assert!(tool.check(example.clone()).is_ok(), "{example}");
        // `search` has no required fields, but its example must still not be empty.
        let is_empty = example == json!({});
        assert!(!is_empty || tool.name() != "search", "{example}");
    }
}

#[test]
fn schema_has_no_references() {
    let schema = schema::parameters::<Args>();
    let text = schema.to_string();
    for word in ["title", "$schema", "null", "format", "$ref"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
    assert_eq!(schema["properties"]["path"]["description"], "The path.");
    assert_eq!(schema["required"], json!(["path"]));
}
