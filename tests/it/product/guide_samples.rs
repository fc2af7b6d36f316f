//! Compares output that the README and the guide show with what the program prints for the example.

use std::process::Output;

use regex::Regex;

use crate::repository::architecture::root;
use crate::support::program::{TestDir, assert_exit_code, example};

/// Returns the fenced sample of a page that begins with this text.
fn sample(page: &str, start: &str) -> String {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let (_, rest) = text.split_once(&format!("```text\n{start}")).unwrap();
    let (rest, _) = rest.split_once("\n```").unwrap();
    format!("{start}{rest}")
}

/// Returns the words of a line, without what differs between machines and runs.
fn masked(line: &str) -> String {
    const MASKS: [(&str, &str); 7] = [
        (
            "^(repository|environment|sandbox|results|apply|or): .*",
            "$1",
        ),
        ("^index .*", "index"),
        (r"^run: cd \S+", "run: cd FOLDER"),
        (r", log in .*", ", log in FILE"),
        (r"\b\d+(\.\d+)? s\b", "N s"),
        (r"\b\d+ packages", "N packages"),
        (r"\b3\.\d+", "3.N"),
    ];
    let words: Vec<&str> = line.split_whitespace().collect();
    MASKS.iter().fold(words.join(" "), |line, (pattern, mask)| {
        let pattern = Regex::new(pattern).unwrap();
        pattern.replace(&line, *mask).into_owned()
    })
}

/// Asserts that the program printed each line of a sample.
#[track_caller]
fn assert_printed(sample: &str, output: &Output) {
    let printed = [&output.stderr[..], &output.stdout].concat();
    let printed = String::from_utf8(printed).unwrap();
    let lines: Vec<String> = printed.lines().map(masked).collect();
    for line in sample.lines().map(masked) {
        assert!(lines.contains(&line), "not printed: {line}\n{printed}");
    }
}

#[test]
fn run_of_example_prints_samples() {
    let place = TestDir::new();
    let mut command = place.testwright();
    command.current_dir(place.folder.path()).args([
        "run",
        &example("issue.md"),
        "--repo",
        &example("slugs"),
    ]);
    let output = command.output().unwrap();
    assert_exit_code(&output, 0);
    for (page, start) in [
        ("docs/src/first-run.md", "repository: "),
        ("README.md", "A test was accepted."),
        ("docs/src/models.md", "note: no model is configured"),
    ] {
        assert_printed(&sample(page, start), &output);
    }
}

#[test]
fn check_of_example_prints_sample() {
    let place = TestDir::new();
    let patch = "--- a/tests/test_slug.py\n+++ b/tests/test_slug.py\n@@ -36 +36,4 @@\n             \
                 slugify(\"bread\", max_length=length)\n+\n+def test_cut():\n+    \
                 assert slugify(\"How to bake bread\", max_length=7) == \"how-to\"\n";
    std::fs::write(place.path("tests.patch"), patch).unwrap();
    let mut command = place.testwright();
    command.current_dir(place.folder.path()).args([
        "check",
        &example("issue.md"),
        "--repo",
        &example("slugs"),
        "tests.patch",
    ]);
    let output = command.output().unwrap();
    assert_exit_code(&output, 0);
    let sample = sample("docs/src/checking.md", "accepted tests.patch");
    assert_printed(&sample, &output);
}

#[test]
fn environment_of_example_prints_sample() {
    let place = TestDir::new();
    let mut command = place.testwright();
    command.args(["environment", "--repo", &example("slugs")]);
    let output = command.output().unwrap();
    assert_exit_code(&output, 0);
    let page = "docs/src/environments.md";
    for start in ["recipe: ", "environment: "] {
        assert_printed(&sample(page, start), &output);
    }
}
