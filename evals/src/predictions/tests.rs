#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::dataset::Instance;

fn dataset(ids: &[&str]) -> Dataset {
    let instances = ids
        .iter()
        .map(|id| {
            serde_json::from_value::<Instance>(json!({
                "instance_id": id, "repo": "acme/slugs", "base_commit": "0123abc",
                "problem_statement": "It fails",
            }))
            .unwrap()
        })
        .collect();
    Dataset {
        path: PathBuf::new(),
        sha256: None,
        instances,
    }
}

fn parse(text: &str, name: &str) -> Result<Vec<(Prediction, Option<WarningKind>)>, Vec<Problem>> {
    super::parse(Content::Text(text.to_owned()), name)
}

fn record(id: &str, patch: Value) -> Value {
    json!({"instance_id": id, "model_name_or_path": "m", "model_patch": patch})
}

fn kinds(warnings: &[Warning]) -> Vec<(&str, WarningKind)> {
    warnings
        .iter()
        .map(|r| (r.instance_id.as_str(), r.kind))
        .collect()
}

#[test]
fn all_json_forms_read_alike() {
    let records = [record("a", json!("diff a")), record("b", json!("diff b"))];
    let lines = format!("{}\n{}\n", records[0], records[1]);
    let array = json!(records).to_string();
    let object = json!({
        "a": {"model_name_or_path": "m", "model_patch": "diff a"},
        "b": {"model_name_or_path": "m", "model_patch": "diff b"},
    });
    let read = parse(&lines, "file").unwrap();
    assert_eq!(read.len(), 2);
    assert_eq!(read, parse(&array, "file").unwrap());
    assert_eq!(read, parse(&object.to_string(), "file").unwrap());
    assert_eq!(read, parse(&format!("{object:#}"), "file").unwrap());
    // A single line is a record, not an object by instance.
    assert_eq!(parse(&records[0].to_string(), "file").unwrap(), read[..1]);
}

#[test]
fn bare_patches_take_the_file_name() {
    let read = parse(r#"{"a": "diff a"}"#, "otter").unwrap();
    assert_eq!(read[0].0.model_name_or_path, "otter");
    assert_eq!(read[0].0.model_patch.as_deref(), Some("diff a"));
}

#[test]
fn files_without_patch_field_are_refused() {
    let other = json!({"instance_id": "a", "model": "m", "prediction": "diff"});
    let by_instance = json!({"a": {"model": "m", "prediction": "diff"}, "b": {"output": ""}});
    for (text, fields) in [
        (other.to_string(), "instance_id, model, prediction"),
        (
            json!([other, other]).to_string(),
            "instance_id, model, prediction",
        ),
        (
            format!("{other}\n{other}\n"),
            "instance_id, model, prediction",
        ),
        (
            by_instance.to_string(),
            "instance_id, model, output, prediction",
        ),
    ] {
        let problems = parse(&text, "f").unwrap_err();
        let expected =
            format!("no prediction has the field `model_patch`; the fields are: {fields}");
        assert_eq!(problems[0].message, expected);
    }
    let some = format!("{other}\n{}\n", record("b", json!("diff")));
    assert_eq!(parse(&some, "f").unwrap().len(), 2);
    assert_eq!(parse(r#"{"a": null}"#, "f").unwrap().len(), 1);
    assert_eq!(parse("[]", "f").unwrap().len(), 0);
}

#[test]
fn anomalies_cause_warnings() {
    let lines = [
        record("a", json!("first")),
        record("a", json!("second")),
        record("b", Value::Null),
        record("c", json!(" \n")),
        record("z", json!("diff")),
        json!({"instance_id": "d", "model_name_or_path": "other", "model_patch": "diff"}),
    ]
    .map(|value| value.to_string())
    .join("\n");
    let dataset = dataset(&["a", "b", "c", "d"]);
    let (sets, warnings) = group_by_model(parse(&lines, "f").unwrap(), &dataset, &dataset);
    assert_eq!(sets.len(), 2);
    assert_eq!(
        sets[0].by_instance["a"].model_patch.as_deref(),
        Some("second")
    );
    assert_eq!(sets[0].by_instance["b"].model_patch, None);
    assert_eq!(
        kinds(&warnings),
        [
            ("a", WarningKind::Duplicate),
            ("b", WarningKind::Null),
            ("c", WarningKind::Empty),
            ("z", WarningKind::Unknown),
            ("d", WarningKind::Missing),
            ("a", WarningKind::Missing),
            ("b", WarningKind::Missing),
            ("c", WarningKind::Missing),
        ]
    );
}

#[test]
fn duplicate_keys_act_like_duplicate_records() {
    let object = r#"{"a": "first", "b": "diff", "a": "second"}"#;
    let lines = [
        record("a", json!("first")),
        record("b", json!("diff")),
        record("a", json!("second")),
    ]
    .map(|value| value.to_string())
    .join("\n");
    let dataset = dataset(&["a", "b"]);
    let (sets, warnings) = group_by_model(parse(object, "m").unwrap(), &dataset, &dataset);
    assert_eq!(kinds(&warnings), [("a", WarningKind::Duplicate)]);
    assert_eq!(
        sets[0].by_instance["a"].model_patch.as_deref(),
        Some("second")
    );
    let of_lines = group_by_model(parse(&lines, "m").unwrap(), &dataset, &dataset);
    assert_eq!((sets, warnings), of_lines);
}

#[test]
fn unselected_instances_are_skipped_silently() {
    let lines = [
        record("a", json!("diff")),
        record("b", json!("diff")),
        record("b", Value::Null),
        record("z", json!("diff")),
    ]
    .map(|value| value.to_string())
    .join("\n");
    let (sets, warnings) = group_by_model(
        parse(&lines, "f").unwrap(),
        &dataset(&["a", "b", "c", "d"]),
        &dataset(&["a", "c"]),
    );
    let graded: Vec<&String> = sets[0].by_instance.keys().collect();
    assert_eq!(graded, ["a"]);
    assert_eq!(
        kinds(&warnings),
        [("z", WarningKind::Unknown), ("c", WarningKind::Missing)]
    );
}

#[test]
fn invalid_predictions_are_refused_with_lines() {
    let text = format!(
        "{}\n[1]\n{}\nnonsense\n",
        record("a", json!("x")),
        json!({"model_patch": 3})
    );
    let problems = parse(&text, "f").unwrap_err();
    let lines: Vec<usize> = problems.iter().map(|p| p.line).collect();
    assert_eq!(lines, [2, 3, 4]);
    assert!(problems[1].message.contains("instance_id"), "{problems:?}");
    let object = "{\n\"a\": \"diff\",\n\"b\":\n3, \"c\": null,\n\"d\": []}";
    let problems = parse(object, "f").unwrap_err();
    let lines: Vec<usize> = problems.iter().map(|p| p.line).collect();
    assert_eq!(lines, [3, 5]);
}

#[test]
fn predictions_that_cannot_be_graded_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("predictions.jsonl");
    let dataset = dataset(&["a", "b"]);
    let read_error = |records: &[Value]| {
        let lines: Vec<String> = records.iter().map(Value::to_string).collect();
        std::fs::write(&file, lines.join("\n")).unwrap();
        let read = read(&[&file], &dataset, &dataset);
        read.err().map(|error| error.to_string())
    };
    let message = read_error(&[record("a", Value::Null), record("b", json!(" "))]).unwrap();
    assert!(
        message.ends_with("2 predictions, 0 with a patch in `model_patch`"),
        "{message}"
    );
    let message = read_error(&[record("acme__a", json!("diff"))]).unwrap();
    assert!(
        message.contains("1 prediction, 0 for an instance of"),
        "{message}"
    );
    let message = read_error(&[]).unwrap();
    assert!(
        message.ends_with("predictions.jsonl: the file contains no predictions"),
        "{message}"
    );
    let some = [record("a", Value::Null), record("z", json!("diff"))];
    assert_eq!(read_error(&some), None);
    let (sets, warnings) = read(&[&file], &dataset, &dataset).unwrap();
    assert_eq!(
        summary(&sets, &warnings),
        ["m: 1 prediction, 0 with a patch, 1 missing, 1 not in the dataset"]
    );
}

#[test]
fn named_file_has_one_model() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = dataset(&["a", "b"]);
    let read_as = |text: &str| {
        let path = folder.path().join("predictions.json");
        std::fs::write(&path, text).unwrap();
        let file = PredictionsFile {
            path: &path,
            name: Some("mine"),
        };
        let (sets, _) = read_named(&[file], &dataset, &dataset).map_err(|e| e.to_string())?;
        Ok::<_, String>(sets.into_iter().map(|set| set.model).collect::<Vec<_>>())
    };
    assert_eq!(read_as(r#"{"a": "diff a"}"#).unwrap(), ["mine"]);
    let one = r#"[{"instance_id": "a", "model_name_or_path": "x", "model_patch": "diff"}]"#;
    assert_eq!(read_as(one).unwrap(), ["mine"]);
    let other = r#",{"instance_id": "b", "model_name_or_path": "y", "model_patch": "diff"}]"#;
    let several = one.replace(']', other);
    let error = read_as(&several).unwrap_err();
    assert!(error.contains("the file has several (x, y, …)"), "{error}");
}
