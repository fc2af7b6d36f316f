#![allow(clippy::unwrap_used)]
use serde_json::json;

use super::*;

const CODE: &str =
    "diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-1\n+2\n";
const TEST: &str = "diff --git a/tests/test_a.py b/tests/test_a.py\n--- /dev/null\n+++ b/tests/test_a.py\n@@ -0,0 +1 @@\n+3\n";

fn adapted(record: Value) -> Value {
    let Value::Object(mut fields) = record else {
        unreachable!()
    };
    adapt(&mut fields);
    Value::Object(fields)
}

fn patches(record: &Value) -> (&str, &str) {
    let of = |name: &str| record[name].as_str().unwrap();
    (of("patch"), of("test_patch"))
}

#[test]
fn swt_bench_patch_names_are_mapped() {
    let record = adapted(json!({"golden_code_patch": CODE, "golden_test_patch": TEST}));
    assert_eq!(patches(&record), (CODE, TEST));
    // The usual names take precedence, and no field is lost.
    let record = adapted(json!({"patch": CODE, "golden_code_patch": "x", "test_patch": TEST}));
    assert_eq!(patches(&record), (CODE, TEST));
    assert_eq!(record["golden_code_patch"], "x");
}

#[test]
fn tagged_patches_are_unwrapped_and_sorted() {
    let tagged = |patch: &str| format!("<patch>\n{patch}\n</patch>");
    let swe = adapted(json!({"patch": tagged(CODE), "test_patch": TEST}));
    assert_eq!(patches(&swe), (CODE, TEST));
    let swt = adapted(json!({"patch": tagged(TEST), "test_patch": CODE.trim_end()}));
    assert_eq!(patches(&swt), (CODE, TEST));
    // Patches without tags are never swapped.
    let plain = adapted(json!({"patch": TEST, "test_patch": CODE}));
    assert_eq!(patches(&plain), (TEST, CODE));
}

#[test]
fn issue_falls_back_to_the_prompt() {
    let prompt = "Some words.\n<issue>\nIt fails\n\n</issue>\n<code>\n</code>";
    let record = adapted(json!({"text": prompt}));
    assert_eq!(record["problem_statement"], "It fails");
    let record = adapted(json!({"text": prompt, "problem_statement": "Other"}));
    assert_eq!(record["problem_statement"], "Other");
    assert_eq!(adapted(json!({"text": "It"})), json!({"text": "It"}));
}

#[test]
fn numeric_versions_become_text() {
    let record = adapted(json!({"version": 3.1, "stars": 5}));
    assert_eq!(record, json!({"version": "3.1", "stars": 5}));
}
