//! The reviewer's prompt, its feedback to the author, and the end of a run whose issue cannot fail.

use serde_json::{Value, json};

use crate::support::program::{TestDir, assert_exit_code, calls, example, text_reply};

const TEST: &str = "def cut(text):\n    return slugify(text, max_length=7)\n\n\n\
                    def test_cut_leaves_no_separator_at_the_end():\n    \
                    assert cut(\"How to bake bread\") == \"how-to\"\n    \
                    assert cut(\"a b\") == \"a-b\"\n";

fn fix(limit: &str) -> (&'static str, Value) {
    let arguments = json!({"edits": [{
        "path": "src/slugs/slug.py",
        "function": "slugify",
        "new": format!("def slugify(text, separator=\"-\", max_length=None, lowercase=True):\n    \
                slug = NOT_WORD.sub(\" \", to_ascii(APOSTROPHE.sub(\"\", text))).strip().replace(\" \", separator)\n    \
                slug = slug.lower() if lowercase else slug\n    \
                return slug if max_length is None else slug[:{limit}].strip(separator)\n"),
    }]});
    ("try_fix", arguments)
}

fn insert() -> (&'static str, Value) {
    let arguments = json!({"path": "tests/test_slug.py", "code": TEST});
    ("insert_function", arguments)
}

fn submit(reason: &str) -> Value {
    calls(&[("submit", json!({ "reason": reason }))])
}

/// Returns the reviewer's prompts of a run.
fn reviews(place: &TestDir) -> Vec<String> {
    let events = place.events().into_iter();
    events
        .filter(|event| event["purpose"] == "review")
        .map(|event| event["messages"][0]["content"].as_str().unwrap().to_owned())
        .collect()
}

fn answers(place: &TestDir, tool: &str) -> Vec<String> {
    let events = place.events().into_iter();
    events
        .filter(|event| event["event"] == "answer" && event["tool"] == tool)
        .map(|event| event["result"]["content"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn reviewer_sees_latest_version_of_fixes() {
    let place = TestDir::new();
    let model = place.recording(&[
        calls(&[insert(), fix("undefined_name")]),
        // The second version of the fix is tried with a test that is not yet final.
        calls(&[fix("max_length")]),
        calls(&[(
            "edit",
            json!({
                "path": "tests/test_slug.py",
                "function": "cut",
                "new": "def cut(text):\n    return slugify(text, max_length=6 + 1)\n",
            }),
        )]),
        submit("The issue says \"How to bake bread\" and I use a helper for brevity.\u{1b}[1m"),
        text_reply("UNSURE\nThe second assertion is not in the issue.\nBEYOND: `cut(\"a b\") == \"a-b\"`: no such text there"),
        submit("It is as the issue says."),
        text_reply("UNSURE\nStill."),
    ]);
    let output = place
        .run_example(&["--approach", "testwright", "--model", &model, "--json"])
        .output()
        .unwrap();
    assert_exit_code(&output, 0);
    let reviews = reviews(&place);
    let prompt = &reviews[0];
    for expected in [
        "+def cut(text):\n",
        "+    return slugify(text, max_length=6 + 1)\n",
        "# tests/test_slug.py:",
        "from slugs import",
        "::test_cut_leaves_no_separator_at_the_end fails (new)",
        "with Python 3.",
        "--- a/src/slugs/slug.py\n+++ b/src/slugs/slug.py\n@@",
        "def slugify(text, separator=",
        "Candidate fix 1, tried on the tests as they are submitted: with it all of them pass.",
        "<author_reason>\nThe issue says",
        "I use a helper for brevity.\\u{1b}[1m",
    ] {
        assert!(prompt.contains(expected), "{expected}: {prompt}");
    }
    assert!(!prompt.contains("undefined_name"), "{prompt}");
    // With the fix, the assertion after the failing one ran.
    assert!(!prompt.contains("Not reached"), "{prompt}");
    let answers = answers(&place, "submit");
    assert!(
        answers[0].contains("is not sure that the tests fail"),
        "{answers:?}"
    );
    assert!(
        answers[0].contains("- `cut(\"a b\") == \"a-b\"`: no such text there"),
        "{answers:?}"
    );
    // A verdict other than NO is returned once and appears on the card.
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["evidence"]["review"]["verdict"], "unsure");
    assert_eq!(record["evidence"]["reviews"], 2);
    assert_eq!(record["evidence"]["fixes"][0]["on_submitted_tests"], true);
    assert_eq!(record["evidence"]["fixes"].as_array().unwrap().len(), 1);
}

#[test]
fn unreached_assertions_are_listed() {
    let place = TestDir::new();
    let wrong = fix("max_length + 1");
    let model = place.recording(&[
        calls(&[insert(), wrong]),
        submit("x"),
        text_reply("YES\nIt is."),
    ]);
    let output = place
        .run_example(&["--approach", "testwright", "--model", &model, "--json"])
        .output()
        .unwrap();
    assert_exit_code(&output, 0);
    let prompt = reviews(&place).remove(0);
    assert!(
        prompt.contains("Not reached, so not shown to be right: line "),
        "{prompt}"
    );
    assert!(
        prompt.contains("with it these still fail:\n- tests/"),
        "{prompt}"
    );
}

#[test]
fn changed_test_shows_earlier_version() {
    let place = TestDir::new();
    let old = std::fs::read_to_string(format!("{}/tests/test_slug.py", example("slugs"))).unwrap();
    let name = old
        .lines()
        .find_map(|line| line.strip_prefix("def test_"))
        .and_then(|line| line.split('(').next())
        .unwrap();
    let code = format!(
        "def test_{name}():\n    assert slugify(\"How to bake bread\", max_length=7) == \"how-to\"\n"
    );
    let model = place.recording(&[
        calls(&[
            (
                "edit",
                json!({"path": "tests/test_slug.py", "function": format!("test_{name}"), "new": code}),
            ),
            fix("max_length"),
        ]),
        submit("x"),
        text_reply("YES\nIt is."),
    ]);
    let output = place
        .run_example(&["--approach", "testwright", "--model", &model])
        .output()
        .unwrap();
    assert_exit_code(&output, 0);
    let prompt = reviews(&place).remove(0);
    let expected = format!("test_{name} fails (changed; before the change it passed)");
    assert!(prompt.contains(&expected), "{expected}: {prompt}");
    assert!(prompt.contains("\n-    assert "), "{prompt}");
}

#[test]
fn model_may_give_up_after_trying() {
    let place = TestDir::new();
    let abstain = |reason: &str| json!({"reproducible": false, "reason": reason});
    // The answer is long, so it is cut when the context is full.
    let code = "import sys; [print(n, 'word ' * 8) for n in range(20)]; print(sys.version_info[0])";
    let model = place.recording(&[
        calls(&[("submit", abstain("it needs Python 3.99"))]),
        calls(&[("run_python", json!({ "code": code }))]),
        json!({"error": {"kind": "context_full", "detail": "too long"}}),
        calls(&[("run_pytest", json!({}))]),
        calls(&[("submit", abstain(""))]),
        // Some models write all values as texts.
        calls(&[(
            "submit",
            json!({"reproducible": "false", "reason": "it needs Python 3.99"}),
        )]),
    ]);
    let output = place
        .run_example(&["--approach", "testwright", "--model", &model])
        .output()
        .unwrap();
    assert_exit_code(&output, 1);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        stdout.contains("abstained: ") && stdout.contains("it needs Python 3.99"),
        "{stdout}"
    );
    let answers = answers(&place, "submit");
    assert!(
        answers[0].contains("You have not run anything yet"),
        "{answers:?}"
    );
    assert!(answers[1].contains("Say in `reason`"), "{answers:?}");
    let record = place.json("run.json");
    assert_eq!(record["outcome"], "abstained");
    assert_eq!(record["exit_code"], 1);
    let evidence = place.json("evidence.json");
    // `run_pytest` was rejected because there were no tests.
    assert_eq!(
        evidence["calls"],
        json!([format!("run_python `{code}`: 3")])
    );
    assert!(!place.path("out/test.patch").exists());
}

#[test]
fn fix_is_tried_on_all_submitted_tests() {
    let place = TestDir::new();
    let code = format!(
        "{TEST}\n\ndef test_cut_again():\n    assert cut(\"How to bake bread\") == \"how-to\"\n"
    );
    let insert = json!({"path": "tests/test_slug.py", "code": code});
    let (tool, mut arguments) = fix("max_length");
    arguments["tests"] = json!(["tests/test_slug.py::test_cut_again"]);
    let model = place.recording(&[
        calls(&[("insert_function", insert), (tool, arguments)]),
        submit("x"),
        text_reply("YES\nIt is."),
    ]);
    let output = place
        .run_example(&["--approach", "testwright", "--model", &model, "--json"])
        .output()
        .unwrap();
    assert_exit_code(&output, 0);
    let prompt = reviews(&place).remove(0);
    assert!(
        prompt.contains("tried on the tests as they are submitted: with it all of them pass."),
        "{prompt}"
    );
}
