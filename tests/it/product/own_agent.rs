//! A program of the user as an approach: its tools, its metered model, its end, and who may name it.

use std::process::Stdio;

use serde_json::json;

use crate::support::program::{
    TestDir, assert_exit_code, example, interrupt, text_reply, wait_until,
};

fn answer(test: &str) -> serde_json::Value {
    text_reply(&format!(
        "```python\nfrom slugs import slugify\n\n\n{test}```\n"
    ))
}

fn is_running(pid: &str) -> bool {
    // A killed process that was not waited for has no command line.
    let command_line = std::fs::read(format!("/proc/{pid}/cmdline"));
    !command_line.unwrap_or_default().is_empty()
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
        "the program ended without a test, with exit status 3: broken"
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
    assert!(!is_running(read("pid").trim()));
}

/// Asks the model with a wrong token, and then twice with the right one. Writes the status of each answer.
const ASK: &str = r#"
import json, sys, urllib.error, urllib.request

model = json.load(sys.stdin)["model"]
body = json.dumps({"messages": [{"role": "user", "content": "Hello"}]}).encode()
for token in ["wrong", model["api_key"], model["api_key"]]:
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(model["base_url"] + "/chat/completions", body, headers)
    try:
        print(urllib.request.urlopen(request).status, file=sys.stderr)
    except urllib.error.HTTPError as error:
        print(error.code, file=sys.stderr)
"#;

#[test]
fn model_needs_token_and_stops_at_limit() {
    let place = TestDir::new();
    let script = place.path("ask.py");
    std::fs::write(&script, ASK).unwrap();
    let replies = [text_reply("1"), text_reply("2")];
    let approach = format!("command:python3 '{}'", script.display());
    let output = place
        .run_example(&["--approach", &approach, "--max-steps", "1"])
        .args(["--model", &place.recording(&replies)])
        .output()
        .unwrap();
    assert_exit_code(&output, 1);
    let log = std::fs::read_to_string(place.path("out/program.log")).unwrap();
    assert_eq!(log, "401\n200\n402\n");
    let record = place.json("run.json");
    assert_eq!(record["outcome"], "out_of_budget");
    assert_eq!(record["limit"], "steps");
    assert_eq!(record["usage"]["model_calls"], 1);
}

#[test]
fn interrupt_kills_program_and_its_children() {
    let place = TestDir::new();
    let script = place.path("agent.sh");
    let text =
        "cd \"$(dirname \"$0\")\" || exit\nsleep 600 &\necho $! >started && mv started pid\nwait\n";
    std::fs::write(&script, text).unwrap();
    let approach = format!("command:sh '{}'", script.display());
    let child = place
        .run_example(&["--approach", &approach])
        .args(["--model", &place.recording(&[text_reply("")])])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let file = place.path("pid");
    wait_until("the program starts", || file.exists());
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_exit_code(&output, 130);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains(" --approach 'command:sh "), "{stderr}");
    let pid = std::fs::read_to_string(file).unwrap();
    assert!(!is_running(pid.trim()));
}

#[test]
fn killed_testwright_takes_program_and_children_along() {
    let place = TestDir::new();
    let script = place.path("agent.sh");
    let text = "cd \"$(dirname \"$0\")\" || exit\nsleep 600 &\necho $$ $! >started && mv started pids\nwait\n";
    std::fs::write(&script, text).unwrap();
    let approach = format!("command:sh '{}'", script.display());
    let mut child = place
        .run_example(&["--approach", &approach])
        .args(["--model", &place.recording(&[text_reply("")])])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let file = place.path("pids");
    wait_until("the program starts", || file.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let pids = std::fs::read_to_string(file).unwrap();
    assert_eq!(pids.split_whitespace().count(), 2);
    for pid in pids.split_whitespace() {
        wait_until("the program ends", || !is_running(pid));
    }
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
