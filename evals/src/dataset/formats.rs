//! Converts records of datasets derived from SWE-bench to SWE-bench's own format.
//!
//! - SWT-bench's harness names the patches `golden_code_patch` and `golden_test_patch`.
//! - Datasets with prompts (SWE-bench's "oracle" and "BM25", SWT-bench's "zsb" and "zsp") wrap `patch` in tags. Those
//!   of SWT-bench swap the patches: `patch` holds the test patch, and `test_patch` the code patch.
//! - Records with only a prompt contain the issue in it, between tags.
//! - Tables may turn texts, such as versions, into numbers.

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

/// Returns a field's text, unless it is blank.
fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    let text = fields.get(name)?.as_str()?;
    (!text.trim().is_empty()).then_some(text)
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(begin)?;
    rest.rsplit_once(end).map(|(inside, _)| inside)
}

/// Removes the tags, and swaps the patches if only `patch` contains tests.
fn unwrap_patch(fields: &mut Map<String, Value>) {
    let inside = text(fields, "patch").and_then(|patch| {
        let patch = patch.trim().strip_prefix("<patch>")?;
        patch.strip_suffix("</patch>")
    });
    let Some(inside) = inside.map(normalize_patch) else {
        return;
    };
    let tests = text(fields, "test_patch").map(normalize_patch);
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

/// Removes surrounding empty lines, and adds the final newline that `git apply` requires.
fn normalize_patch(patch: &str) -> String {
    format!("{}\n", patch.trim_matches(['\n', '\r']))
}

/// Returns whether a patch only changes test files, judged by their names.
fn is_of_tests(patch: &str) -> bool {
    let layout = Layout::default();
    let paths = patch
        .lines()
        .filter_map(|line| line.strip_prefix("+++ b/").or(line.strip_prefix("--- a/")));
    let mut paths = paths.peekable();
    paths.peek().is_some() && paths.all(|path| layout.is_test_path(path.trim_end()))
}

#[cfg(test)]
mod tests;
