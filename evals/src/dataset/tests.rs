#![allow(clippy::unwrap_used, clippy::expect_used)]

use serde_json::json;

use super::*;

fn one(id: &str) -> Value {
    json!({
        "instance_id": id, "repo": "acme/slugs", "base_commit": "0123abc",
        "problem_statement": "It fails\n\nLike this", "version": "0.3", "difficulty": 3
    })
}

fn parse(text: &str) -> Result<Vec<Instance>, Vec<Problem>> {
    super::parse(Content::Text(text.to_owned()), "line")
}

fn problems(text: &str) -> Vec<String> {
    parse(text)
        .unwrap_err()
        .iter()
        .map(|problem| problem.describe("line"))
        .collect()
}

#[test]
fn lines_and_arrays_read_alike() {
    let lines = format!("{}\n\n{}\n", one("a"), one("b"));
    let array = serde_json::to_string_pretty(&json!([one("a"), one("b")])).unwrap();
    let instances = parse(&lines).unwrap();
    assert_eq!(instances, parse(&array).unwrap());
    assert_eq!(
        instances,
        parse(&format!("\u{feff}{lines}").replace('\n', "\r\n")).unwrap()
    );
    assert_eq!(
        (
            instances[1].instance_id.as_str(),
            instances[1].version.as_deref()
        ),
        ("b", Some("0.3"))
    );
}

#[test]
fn unknown_fields_are_kept() {
    let instance = parse(&one("a").to_string()).unwrap().remove(0);
    assert_eq!(instance.other["difficulty"], 3);
    assert_eq!(serde_json::to_value(&instance).unwrap(), one("a"));
}

#[test]
fn test_names_parse_from_list_or_text() {
    let with = |value: Value| {
        let mut it = one("a");
        it["FAIL_TO_PASS"] = value;
        parse(&it.to_string()).map(|mut i| i.remove(0).fail_to_pass)
    };
    let two = Some(vec!["t.py::a".to_owned(), "t.py::b[x, \"y\"]".to_owned()]);
    assert_eq!(with(json!(["t.py::a", "t.py::b[x, \"y\"]"])).unwrap(), two);
    assert_eq!(
        with(json!("[\"t.py::a\", \"t.py::b[x, \\\"y\\\"]\"]")).unwrap(),
        two
    );
    assert_eq!(with(Value::Null).unwrap(), None);
    assert_eq!(with(json!("")).unwrap(), None);
    assert_eq!(
        with(json!("t.py::a")).unwrap_err()[0].message,
        "invalid list of test names"
    );
    assert_eq!(with(json!([1])).unwrap_err()[0].line, 1);
}

#[test]
fn all_problems_are_reported_with_lines() {
    let mut lacking = one("c");
    lacking.as_object_mut().unwrap().remove("repo");
    lacking["base_commit"] = json!(" ");
    let mut wrong = one("d");
    wrong["patch"] = json!(5);
    let text = [
        one("a").to_string(),
        "{\"instance_id\": ".to_owned(),
        one("a").to_string(),
        lacking.to_string(),
        "[]".to_owned(),
        wrong.to_string(),
    ];
    assert_eq!(
        problems(&text.join("\n")),
        [
            "line 2: invalid JSON: EOF while parsing a value (column 16)",
            "line 3: duplicate instance_id `a`, first in line 1",
            "line 4: `c`: missing fields: repo, base_commit",
            "line 5: the record is not a JSON object",
            "line 6: invalid type: integer `5`, expected a string",
        ]
    );
}

#[test]
fn every_duplicate_names_the_first_line() {
    assert_eq!(
        problems(&format!("{0}\n{0}\n{0}\n", one("a"))),
        [2, 3].map(|line| format!("line {line}: duplicate instance_id `a`, first in line 1"))
    );
}

#[test]
fn array_problems_have_line_numbers() {
    let mut lacking = one("b");
    lacking.as_object_mut().unwrap().remove("problem_statement");
    let text = format!("\n[\n{},\n{},\n\n{}\n]\n", one("a"), lacking, one("a"));
    assert_eq!(
        problems(&text),
        [
            "line 4: `b`: missing fields: problem_statement",
            "line 6: duplicate instance_id `a`, first in line 3"
        ]
    );
    assert_eq!(
        problems(&format!("[{}\n{}]", one("a"), one("b"))),
        ["line 2: invalid JSON: expected `,` or `]`, found `{`"]
    );
    assert_eq!(
        problems(&format!("[{},", one("a"))),
        ["line 1: the array is not closed"]
    );
    assert_eq!(
        problems(&format!("[{}]\n\nx", one("a"))),
        ["line 3: unexpected text after the array"]
    );
    assert!(problems("[{\"a\": 1,\n\n \"b\": }]")[0].starts_with("line 3: invalid JSON"));
    for empty in ["", "\n\n", "[]", "[ ]"] {
        assert_eq!(problems(empty), ["the file contains no instances"]);
    }
}

#[test]
fn long_problem_lists_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.jsonl");
    std::fs::write(&path, "{\n".repeat(14)).unwrap();
    let message = Dataset::read(&path).unwrap_err().to_string();
    assert!(message.ends_with("; and 4 more"), "{message}");
    assert!(message.contains("data.jsonl: line 1: "), "{message}");
    let missing = Dataset::read(&folder.path().join("none")).unwrap_err();
    assert!(matches!(missing, RecordsError::Read { .. }));
}

#[test]
fn instances_are_found_by_id() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.json");
    std::fs::write(&path, json!([one("a"), one("b")]).to_string()).unwrap();
    let dataset = Dataset::read(&path).unwrap();
    assert_eq!(dataset.get("b").unwrap().instance_id, "b");
    assert_eq!(dataset.get("c"), None);
}
