//! `try_tests`: runs tests in the environment that verification rejected.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use testwright_sandboxes::environment::{SampleSettings, SampledTest, TestSample};
use testwright_sandboxes::sandbox::Limits;
use testwright_tools::tool::{ToolError, ToolSpec};

/// Name of the tool.
pub(super) const NAME: &str = "try_tests";

/// Maximum tests of one call.
const MAX_TESTS: usize = 20;
/// Seconds after which no further test starts.
const SECONDS: u64 = 60;
/// Maximum seconds of one test.
const TEST_SECONDS: u64 = 20;
/// Maximum different reasons that are listed.
const MAX_REASONS: usize = 4;
/// Maximum lines of a failure's text.
const MAX_LINES: usize = 20;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Arguments {
    /// Test files, relative to the repository. Default: all.
    files: Vec<String>,
}

pub(super) fn spec() -> ToolSpec {
    ToolSpec::of_host::<Arguments>(
        NAME,
        "Runs up to 20 tests of these files in the environment that was built last, even if it was rejected, and shows \
         their failures. It builds nothing.",
    )
}

/// Returns the settings for a call.
pub(super) fn settings(arguments: Value) -> Result<SampleSettings, ToolError> {
    let arguments = spec().check(arguments)?;
    let arguments: Arguments = serde_json::from_value(arguments)
        .map_err(|error| ToolError::Refused(format!("This call was not carried out: {error}")))?;
    let is_option = |file: &String| file.starts_with('-') || file.starts_with('/');
    if let Some(file) = arguments.files.iter().find(|file| is_option(file)) {
        return Err(ToolError::Refused(format!(
            "This call was not carried out: `{file}` is not a path relative to the repository."
        )));
    }
    Ok(SampleSettings {
        files: arguments.files,
        tests: MAX_TESTS,
        seed: 0,
        test_seconds: TEST_SECONDS,
        seconds: SECONDS,
        limits: Limits::default(),
    })
}

/// Describes results for a model: the counts, then the commonest failures with the text of one each.
pub(super) fn describe(sample: &TestSample) -> String {
    let counts = match sample.counts() {
        counts if counts.is_empty() => "none run".to_owned(),
        counts => counts,
    };
    let mut text = format!(
        "Tests: {} collected in {} files; {counts}.",
        sample.collected, sample.files
    );
    if let Some(reason) = &sample.cut_short {
        text.push_str(&format!("\nIncomplete: {reason}"));
    }
    let broken = sample.broken.iter();
    for (reason, files) in most_common(broken.map(|(file, reason)| (reason.as_str(), file))) {
        text.push_str(&format!(
            "\nCannot be collected ({}, first {}): {reason}",
            files.len(),
            files[0]
        ));
    }
    let has_failed = |test: &&SampledTest| test.outcome == "failed" || test.outcome == "error";
    let failed = sample.tests.iter().filter(has_failed);
    for (_, tests) in most_common(failed.map(|test| (last_line(&test.text), test))) {
        let first = tests[0];
        text.push_str(&format!(
            "\n{} like {} ({}):\n{}",
            tests.len(),
            first.id,
            first.outcome,
            last_lines(&first.text, MAX_LINES)
        ));
    }
    text
}

fn last_line(text: &str) -> &str {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.next_back().unwrap_or_default()
}

/// Groups items by reason, the most common first.
fn most_common<'a, T>(items: impl Iterator<Item = (&'a str, T)>) -> Vec<(&'a str, Vec<T>)> {
    let mut groups: BTreeMap<&str, Vec<T>> = BTreeMap::new();
    for (reason, item) in items {
        groups.entry(reason).or_default().push(item);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, items)| std::cmp::Reverse(items.len()));
    groups.truncate(MAX_REASONS);
    groups
}

/// Returns the last lines of a text.
fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn test(id: &str, outcome: &str, text: &str) -> SampledTest {
        SampledTest {
            id: id.to_owned(),
            outcome: outcome.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn failures_are_grouped_by_last_line() {
        let sample = TestSample {
            collected: 9,
            files: 2,
            broken: vec![("t/test_c.py".to_owned(), "ImportError: x".to_owned())],
            tests: vec![
                test("a", "passed", ""),
                test("b", "error", "setup\nE   OSError: no"),
                test("c", "failed", "E   KeyError: 'A'"),
                test("d", "error", "other\nE   OSError: no"),
            ],
            cut_short: None,
        };
        assert_eq!(
            describe(&sample),
            "Tests: 9 collected in 2 files; 1 passed, 1 failed, 2 error.\nCannot be collected (1, first t/test_c.py): \
             ImportError: x\n2 like b (error):\nsetup\nE   OSError: no\n1 like c (failed):\nE   KeyError: 'A'"
        );
    }

    #[test]
    fn options_are_refused_as_files() {
        assert!(settings(json!({"files": ["--pdb"]})).is_err());
        assert!(settings(json!({"files": ["/etc"]})).is_err());
        assert_eq!(settings(json!({"files": "a.py"})).unwrap().files, ["a.py"]);
    }
}
