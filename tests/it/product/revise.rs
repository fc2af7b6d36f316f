//! Wishes of users: hints, test files, and the revision of an ended run's test.

use serde_json::{Value, json};

use crate::support::program::{TestDir, assert_exit_code, calls, text_reply};

const NAME: &str = "test_cut_leaves_no_separator_at_the_end";
const TEST: &str = "def test_cut_leaves_no_separator_at_the_end():\n    \
                    assert slugify(\"How to bake bread\", max_length=7) == \"how-to\"\n";
const REVISED: &str = "def test_cut_leaves_no_separator_at_the_end():\n    \
                       slug = slugify(\"How to bake bread\", max_length=7)\n    \
                       assert slug == \"how-to\"\n";

#[test]
fn hint_and_test_file_bind_run_and_revision() {
    let place = TestDir::new();
    let file = "tests/test_slug.py";
    let submit = || calls(&[("submit", json!({"reason": "I expected 'how-to'."}))]);
    let elsewhere = format!("from slugs import slugify\n\n\n{TEST}");
    let model = place.recording(&[
        calls(&[(
            "edit",
            json!({"path": "tests/test_cut.py", "new": elsewhere}),
        )]),
        submit(),
        calls(&[
            ("edit", json!({"path": "tests/test_cut.py"})),
            ("insert_function", json!({"path": file, "code": TEST})),
        ]),
        submit(),
        text_reply("YES\nThe same value."),
    ]);
    let arguments = [
        "--approach",
        "testwright:fix=off",
        "--model",
        &model,
        "--hint",
        "No mocks.",
        "--test-file",
        file,
    ];
    assert_exit_code(&place.run_example(&arguments).output().unwrap(), 0);
    let refusal = &place.answers()[1];
    let expected = "the user wants no test file changed but tests/test_slug.py";
    assert!(refusal.contains(expected), "{refusal}");
    let wish = "<user_wish>\nThe user who started this run asks, beyond the issue:\nNo mocks.\n\
                Change no test file but: tests/test_slug.py\n</user_wish>";
    let events = place.events();
    let prompt = |event: &Value| event["message"]["content"].as_str().map(str::to_owned);
    let has_wish = |text: &str| text.contains(wish);
    assert!(events.iter().filter_map(prompt).any(|text| has_wish(&text)));
    let mut reviews = events.iter().filter(|event| event["purpose"] == "review");
    assert!(reviews.any(|event| has_wish(event["messages"][0]["content"].as_str().unwrap())));
    let first_test = std::fs::read_to_string(place.path("out/test.patch")).unwrap();

    let model = place.recording(&[
        calls(&[(
            "edit",
            json!({"path": file, "function": NAME, "new": REVISED}),
        )]),
        submit(),
        text_reply("YES\nThe same value."),
    ]);
    let mut command = place.testwright();
    command.arg("revise").arg(place.path("out"));
    command.args(["Use a variable.", "--model", &model, "--out"]);
    let output = command.arg(place.path("second")).output().unwrap();
    assert_exit_code(&output, 0);
    let stdout = String::from_utf8_lossy(&output.stdout);
    let (_, difference) = stdout.split_once("Changes since ").unwrap();
    for line in [
        "--- a/tests/test_slug.py",
        "-    assert slugify(\"How to bake bread\", max_length=7) == \"how-to\"",
        "+    assert slug == \"how-to\"",
    ] {
        assert!(difference.lines().any(|shown| shown == line), "{stdout}");
    }
    let record = std::fs::read(place.path("second/run.json")).unwrap();
    let inputs = &serde_json::from_slice::<Value>(&record).unwrap()["extra_inputs"];
    assert_eq!(inputs["hint"], "No mocks.\n\nUse a variable.");
    assert_eq!(inputs["test_files"], json!([file]));
    assert_eq!(inputs["revises"]["run"], json!(place.path("out")));
    // The example is in a subfolder of this repository.
    let of_example = first_test.replace("examples/slugs/", "");
    assert_eq!(inputs["revises"]["patch"], json!(of_example));
    let kept = std::fs::read_to_string(place.path("out/test.patch")).unwrap();
    assert_eq!(kept, first_test);

    // Resumed just before its end, the run costs the same and prints the same difference.
    let trajectory = place.path("second/trajectory.jsonl");
    let events = std::fs::read_to_string(&trajectory).unwrap();
    let end = events.find("{\"event\":\"ended\"").unwrap();
    std::fs::write(&trajectory, &events[..end]).unwrap();
    let mut command = place.testwright();
    command.args(["run", "--resume"]).arg(place.path("second"));
    let output = command.output().unwrap();
    assert_exit_code(&output, 0);
    let stdout = String::from_utf8_lossy(&output.stdout);
    let (_, resumed) = stdout.split_once("Changes since ").unwrap();
    assert_eq!(resumed, difference);
    let usage = |record: &[u8]| {
        let usage = &serde_json::from_slice::<Value>(record).unwrap()["usage"];
        ["model_calls", "prompt_tokens", "token_shares"].map(|name| usage[name].clone())
    };
    let resumed = std::fs::read(place.path("second/run.json")).unwrap();
    assert_eq!(usage(&resumed), usage(&record));
}

#[test]
fn test_of_rules_cannot_be_revised() {
    let place = TestDir::new();
    let output = place
        .run_example(&["--hint", "No mocks."])
        .output()
        .unwrap();
    assert_exit_code(&output, 0);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("the hint is ignored"), "{stderr}");
    let mut command = place.testwright();
    let output = command
        .arg("revise")
        .arg(place.path("out"))
        .arg("Shorter.")
        .output();
    let output = output.unwrap();
    assert_exit_code(&output, 2);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("only an agent with a language model"),
        "{stderr}"
    );
}
