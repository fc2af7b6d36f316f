//! Several calls in one message, some of which depend on a failed call.

use serde_json::{Value, json};

use crate::support::program::{TestDir, assert_exit_code, calls, text_reply};

const TEST: &str =
    "def test_cut():\n    assert slugify(\"How to bake bread\", max_length=7) == \"how-to\"\n";

fn insert(code: &str) -> (&'static str, Value) {
    let arguments = json!({"path": "tests/test_slug.py", "code": code});
    ("insert_function", arguments)
}

fn edit(old: &str, new: &str) -> Value {
    json!({"path": "src/slugs/slug.py", "old": old, "new": new})
}

#[test]
fn refused_edit_skips_dependent_calls() {
    let place = TestDir::new();
    let fix = json!({"edits": [edit("slug[:max_length]", "slug[:max_length].strip(\"-\")")]});
    let model = place.recording(&[
        calls(&[
            insert("def test_cut(:\n    pass\n"),
            ("run_pytest", json!({})),
            ("run_python", json!({"code": "print(1 + 1)"})),
            ("try_fix", fix),
            ("submit", json!({})),
        ]),
        calls(&[
            insert(TEST),
            ("run_pytest", json!({})),
            ("try_fix", json!({})),
            ("submit", json!({"reason": "x"})),
        ]),
        text_reply("YES\nThe same."),
    ]);
    let output = place
        .run_example(&["--approach", "testwright", "--model", &model])
        .output()
        .unwrap();
    assert_exit_code(&output, 0);
    let answers = place.answers();
    for (at, expected) in [
        (1, "Skipped: the edit above was refused."),
        (2, "2"),
        (
            3,
            "Your fix is kept: call `try_fix` without `edits` to try it.",
        ),
        (4, "Skipped: the edit above was refused."),
        (
            7,
            "The test that you added or changed passes with this fix.",
        ),
    ] {
        assert!(answers[at].contains(expected), "{expected}: {answers:#?}");
    }
}

#[test]
fn submission_needs_supporting_calls_before_it() {
    let place = TestDir::new();
    let wrong = edit("slug[:max_length]", "slug[:max_length + 1]");
    let right = edit("slug[:max_length + 1]", "slug[:max_length].strip(\"-\")");
    let model = place.recording(&[
        calls(&[
            insert("def test_cut():\n    assert slugify(\"bread\") == \"bread\"\n"),
            ("run_pytest", json!({})),
            ("submit", json!({})),
        ]),
        calls(&[
            (
                "edit",
                json!({
                    "path": "tests/test_slug.py",
                    "old": "def test_cut():\n    assert slugify(\"bread\") == \"bread\"",
                    "new": TEST.trim_end(),
                }),
            ),
            ("try_fix", json!({"edits": [wrong]})),
            ("submit", json!({})),
        ]),
        calls(&[
            ("try_fix", json!({"edits": [right], "on_top": true})),
            ("submit", json!({"reason": "x"})),
        ]),
        text_reply("YES\nThe same."),
    ]);
    let output = place
        .run_example(&["--approach", "testwright", "--model", &model])
        .output()
        .unwrap();
    assert_exit_code(&output, 0);
    let answers = place.answers();
    for (at, expected) in [
        (2, "Not carried out: in the run before it no test fails"),
        (
            5,
            "Not carried out: with the fix before it the tests do not all pass.",
        ),
        (
            6,
            "The test that you added or changed passes with this fix.",
        ),
    ] {
        assert!(answers[at].contains(expected), "{expected}: {answers:#?}");
    }
}

#[test]
fn unchanged_submission_is_answered_at_once() {
    let place = TestDir::new();
    let model = place.recording(&[
        calls(&[
            insert("def test_cut():\n    assert slugify(\"bread\") == \"bread\"\n"),
            ("submit", json!({})),
        ]),
        calls(&[("submit", json!({}))]),
        calls(&[
            insert(&TEST.replace("test_cut", "test_cut_again")),
            ("submit", json!({})),
        ]),
    ]);
    let steps = ["--max-steps", "3"];
    let output = place
        .run_example(&["--approach", "testwright", "--model", &model])
        .args(steps)
        .output()
        .unwrap();
    assert_exit_code(&output, 1);
    let answers = place.answers();
    let passes = "no contributed test fails on this code";
    let unchanged = "Nothing has changed since the last submission";
    assert!(answers[1].contains(passes), "{answers:#?}");
    assert!(
        answers[2].starts_with(unchanged) && answers[2].contains(passes),
        "{answers:#?}"
    );
    assert!(!answers[4].contains(unchanged), "{answers:#?}");
}
