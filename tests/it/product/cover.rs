//! `testwright cover`, from the model's first draft to the patch.

use serde_json::json;

use crate::support::program::{TestDir, assert_exit_code, calls, example};

const IDLE: &str = "def test_cut():\n    slugify(\"How to\", max_length=3)\n";
const CUT: &str = "def test_cut():\n    assert slugify(\"How to\", max_length=3) == \"how\"\n";
const REFUSED: &str = "import pytest\n\ndef test_length():\n    with pytest.raises(ValueError):\n        slugify(\"How to\", max_length=0)\n";

/// Returns the line of `slugify` that rejects a length.
fn raise() -> usize {
    let code = std::fs::read_to_string(format!("{}/src/slugs/slug.py", example("slugs"))).unwrap();
    let mut lines = code.lines();
    lines
        .position(|line| line.contains("raise ValueError("))
        .unwrap()
        + 1
}

fn cover(place: &TestDir, targets: &[&str], model: &str) -> std::process::Output {
    let mut command = place.testwright();
    command.arg("cover").args(targets);
    command.args(["--repo", &example("slugs"), "--model", model, "--out"]);
    command.arg(place.path("out")).output().unwrap()
}

#[test]
fn passing_test_that_covers_lines_is_accepted() {
    let place = TestDir::new();
    let insert = |code: &str| {
        (
            "insert_function",
            json!({"path": "tests/test_slug.py", "code": code}),
        )
    };
    let rewrite = json!({"path": "tests/test_slug.py", "function": "test_cut", "new": CUT});
    let model = place.recording(&[
        calls(&[insert(IDLE), ("submit", json!({}))]),
        calls(&[("edit", rewrite), ("cover", json!({}))]),
        calls(&[insert(REFUSED), ("cover", json!({})), ("submit", json!({}))]),
    ]);
    let raise = raise();
    let lines = format!("src/slugs/slug.py:{}-{raise}", raise - 1);
    let output = cover(&place, &[&lines, "src/slugs/slug.py::truncate"], &model);
    assert_exit_code(&output, 0);

    let answers: Vec<String> = place
        .events()
        .iter()
        .filter(|event| event["event"] == "answer")
        .map(|event| event["result"]["content"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        answers[1].contains("asserts nothing of what the code does"),
        "{answers:#?}"
    );
    let missed = format!("src/slugs/slug.py:{raise}: line {} `if ", raise - 1);
    assert!(answers[1].contains(&missed), "{answers:#?}");
    assert!(answers[3].contains(&missed), "{answers:#?}");
    assert!(answers[5].contains("All wanted lines run."), "{answers:#?}");

    let evidence = place.json("evidence.json");
    assert_eq!(evidence["passing"].as_array().unwrap().len(), 2);
    let covered = evidence["covered"]["src/slugs/slug.py"].as_array().unwrap();
    assert!(covered.contains(&json!(raise)), "{covered:?}");
    let patch = std::fs::read_to_string(place.path("out/test.patch")).unwrap();
    assert!(patch.contains("+def test_cut():"), "{patch}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        stdout.contains("runs       src/slugs/slug.py, lines "),
        "{stdout}"
    );
}

#[test]
fn invalid_target_is_rejected_with_candidates() {
    let place = TestDir::new();
    let model = place.recording(&[]);
    for (target, cause) in [
        ("src/slugs/slug.py", "it names neither a function nor lines"),
        ("src/slugs/slug.py:90-99", "has the lines 1-"),
        ("src/slugs/slug.py::slugfy", "the nearest is `slugify`"),
        (
            "src/slugs/no.py::f",
            "the repository has no file src/slugs/no.py",
        ),
        ("README.md:1-2", "is not a Python file"),
    ] {
        let output = cover(&place, &[target], &model);
        assert_exit_code(&output, 2);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(cause), "{target}: {stderr}");
    }
}
