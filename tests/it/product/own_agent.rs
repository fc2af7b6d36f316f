//! A program of the user as an approach: its tools, its metered model, its end, and who may name it.

use serde_json::json;

use crate::support::program::{TestDir, assert_exit_code, example, text_reply};

fn answer(test: &str) -> serde_json::Value {
    text_reply(&format!(
        "```python\nfrom slugs import slugify\n\n\n{test}```\n"
    ))
}

#[test]
fn own_agent_resumes_until_gate_accepts() {
    let place = TestDir::new();
    let program = example("agents/minimal.py");
    let approach = format!("command(minimal):python3 '{program}'");
    let passing = answer("def test_short():\n    assert slugify(\"bread\") == \"bread\"\n");
    let outage =
        json!({"error": {"kind": "fatal", "detail": {"message": "no service", "hint": null}}});
    let model = place.recording(&[passing, outage]);
    let output = place
        .run_example(&["--approach", &approach, "--model", &model])
        .output()
        .unwrap();
    assert_exit_code(&output, 3);

    // A record must not start programs.
    assert_exit_code(&place.resume(), 2);
    let failing = "def test_cut_leaves_no_separator_at_the_end():\n    \
                   assert slugify(\"How to bake bread\", max_length=7) == \"how-to\"\n";
    place.recording(&[answer(failing)]);
    let output = place
        .testwright()
        .args(["run", "--approach", &approach, "--resume"])
        .arg(place.path("out"))
        .output()
        .unwrap();
    assert_exit_code(&output, 0);

    let record = place.json("run.json");
    assert_eq!(record["approach"], approach.as_str());
    let usage = &record["usage"];
    assert_eq!(
        (&usage["steps"], &usage["prompt_tokens"]),
        (&json!(2), &json!(2000))
    );
    // The answers before the outage are not repeated.
    let counts = json!({"shell": 1, "revert": 2, "create_file": 2, "submit": 2});
    for (tool, count) in counts.as_object().unwrap() {
        assert_eq!(usage["tool_calls"][tool], *count, "{tool}");
    }
    let answers = place.answers();
    assert_eq!(answers.len(), 7, "{answers:#?}");
    assert!(
        answers
            .iter()
            .any(|text| text.contains("no contributed test fails"))
    );
    // The second request is recorded without the messages of the first.
    let events = place.events();
    let replies = events.iter().filter(|event| event["event"] == "reply");
    let sent: Vec<usize> = replies
        .map(|event| event["messages"].as_array().unwrap().len())
        .collect();
    assert_eq!(sent, [1, 1]);
    let patch = std::fs::read_to_string(place.path("out/test.patch")).unwrap();
    assert!(
        patch.contains("+def test_cut_leaves_no_separator_at_the_end"),
        "{patch}"
    );
}

#[test]
fn failed_program_leaves_reason_but_no_process() {
    let place = TestDir::new();
    let script = place.path("agent.sh");
    let text = "cd \"$(dirname \"$0\")\" && env >variables && echo broken >&2\n\
                sleep 600 & echo $! >pid\nexit 3\n";
    std::fs::write(&script, text).unwrap();
    let model = place.recording(&[text_reply("")]);
    let approach = format!("command:sh '{}'", script.display());
    let output = place
        .run_example(&["--approach", &approach, "--model", &model])
        .env("OPENAI_API_KEY", "the-secret-key")
        .env("TESTWRIGHT_MAX_STEPS", "5")
        .output()
        .unwrap();
    assert_exit_code(&output, 1);
    let record = place.json("run.json");
    assert_eq!(record["outcome"], "nothing");
    assert_eq!(
        record["reason"],
        "the program ended with exit status: 3: broken"
    );
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    assert_eq!(read("out/program.log"), "broken\n");
    let variables = read("variables");
    assert!(
        variables.contains("OPENAI_BASE_URL=http://127.0.0.1:"),
        "{variables}"
    );
    assert!(
        !variables.contains("the-secret-key") && !variables.contains("TESTWRIGHT_"),
        "{variables}"
    );
    // A killed process that was not waited for has no command line.
    let command_line = std::fs::read(format!("/proc/{}/cmdline", read("pid").trim()));
    assert!(command_line.unwrap_or_default().is_empty());
}

#[test]
fn settings_cannot_name_programs() {
    let place = TestDir::new();
    let model = place.recording(&[text_reply("")]);
    let marker = place.path("started");
    let output = place
        .run_example(&["--model", &model])
        .env(
            "TESTWRIGHT_APPROACH",
            format!("command:touch '{}'", marker.display()),
        )
        .output()
        .unwrap();
    assert_exit_code(&output, 2);
    assert!(!marker.exists());
}
