//! Records in the formats that datasets made from SWE-bench have, brought into SWE-bench's own.
//!
//! - SWT-bench's harness calls the patches `golden_code_patch` and `golden_test_patch`.
//! - The datasets with prompts (SWE-bench's "oracle" and "BM25", SWT-bench's "zsb" and "zsp") put `patch` between tags; those
//!   of SWT-bench hold the test patch in `patch` and the code patch in `test_patch`.
//! - Records that have nothing but a prompt hold the issue in it, between tags.
//! - Numbers where texts are meant, as tables make them of versions.

use serde_json::{Map, Value};
use testwright_tools::workspace::Layout;

pub(super) fn adapt(fields: &mut Map<String, Value>) {
    for (other, own) in [
        ("golden_code_patch", "patch"),
        ("golden_test_patch", "test_patch"),
    ] {
        if text(fields, own).is_none()
            && let Some(value) = fields.remove(other)
        {
            fields.insert(own.to_owned(), value);
        }
    }
    unwrap_patch(fields);
    if text(fields, "problem_statement").is_none()
        && let Some(issue) = text(fields, "text").and_then(|t| between(t, "<issue>", "</issue>"))
    {
        let issue = Value::String(issue.trim().to_owned());
        fields.insert("problem_statement".to_owned(), issue);
    }
    for name in [
        "version",
        "created_at",
        "base_commit",
        "environment_setup_commit",
    ] {
        if let Some(value) = fields.get_mut(name)
            && let Value::Number(number) = value
        {
            *value = Value::String(number.to_string());
        }
    }
}

/// A text that says something.
fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    let text = fields.get(name)?.as_str()?;
    (!text.trim().is_empty()).then_some(text)
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(begin)?;
    rest.rsplit_once(end).map(|(inside, _)| inside)
}

/// Takes the tags off; and where the patch is of tests and the test patch is not, each gets the other's place.
fn unwrap_patch(fields: &mut Map<String, Value>) {
    let inside = text(fields, "patch").and_then(|patch| {
        let patch = patch.trim().strip_prefix("<patch>")?;
        patch.strip_suffix("</patch>")
    });
    let Some(inside) = inside.map(whole) else {
        return;
    };
    let tests = text(fields, "test_patch").map(whole);
    match tests {
        Some(tests) if is_of_tests(&inside) && !is_of_tests(&tests) => {
            fields.insert("patch".to_owned(), Value::String(tests));
            fields.insert("test_patch".to_owned(), Value::String(inside));
        }
        _ => {
            fields.insert("patch".to_owned(), Value::String(inside));
        }
    }
}

/// Without the empty lines about it, and with the line end that `git apply` asks for.
fn whole(patch: &str) -> String {
    format!("{}\n", patch.trim_matches(['\n', '\r']))
}

/// It changes nothing but test files, by their names.
fn is_of_tests(patch: &str) -> bool {
    let layout = Layout::default();
    let paths = patch
        .lines()
        .filter_map(|line| line.strip_prefix("+++ b/").or(line.strip_prefix("--- a/")));
    let mut found = false;
    for path in paths {
        found = true;
        if !layout.is_test_path(path.trim_end()) {
            return false;
        }
    }
    found
}

#[cfg(test)]
mod tests {
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
    fn swt_bench_names_its_patches_otherwise() {
        let record = adapted(json!({"golden_code_patch": CODE, "golden_test_patch": TEST}));
        assert_eq!(patches(&record), (CODE, TEST));
        // The usual names win, and nothing is thrown away.
        let record = adapted(json!({"patch": CODE, "golden_code_patch": "x", "test_patch": TEST}));
        assert_eq!(patches(&record), (CODE, TEST));
        assert_eq!(record["golden_code_patch"], "x");
    }

    #[test]
    fn patches_between_tags_are_the_code_patch_or_the_test_patch() {
        let tagged = |patch: &str| format!("<patch>\n{patch}\n</patch>");
        let swe = adapted(json!({"patch": tagged(CODE), "test_patch": TEST}));
        assert_eq!(patches(&swe), (CODE, TEST));
        let swt = adapted(json!({"patch": tagged(TEST), "test_patch": CODE.trim_end()}));
        assert_eq!(patches(&swt), (CODE, TEST));
        // Without tags nothing is guessed.
        let plain = adapted(json!({"patch": TEST, "test_patch": CODE}));
        assert_eq!(patches(&plain), (TEST, CODE));
    }

    #[test]
    fn the_issue_is_taken_from_a_prompt_if_it_is_nowhere_else() {
        let prompt = "Some words.\n<issue>\nIt fails\n\n</issue>\n<code>\n</code>";
        let record = adapted(json!({"text": prompt}));
        assert_eq!(record["problem_statement"], "It fails");
        let record = adapted(json!({"text": prompt, "problem_statement": "Other"}));
        assert_eq!(record["problem_statement"], "Other");
        assert_eq!(adapted(json!({"text": "It"})), json!({"text": "It"}));
    }

    #[test]
    fn numbers_become_the_texts_that_are_meant() {
        let record = adapted(json!({"version": 3.1, "stars": 5}));
        assert_eq!(record, json!({"version": "3.1", "stars": 5}));
    }
}
