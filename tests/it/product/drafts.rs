//! Several drafts in one run: each starts from scratch, the matrix selects one, and low confidence withholds the test.

use serde_json::{Value, json};

use crate::support::program::{TestDir, assert_exit_code, calls, text_reply};

/// An assertion of the behaviour that the issue asks for.
const RIGHT: &str = "assert slugify(\"How to bake bread\", max_length=7) == \"how-to\"";
/// An assertion that the issue does not support.
const WRONG: &str = "assert slugify(\"How to bake bread\", max_length=7) == \"how-to_\"";

fn edit(new: &str) -> Value {
    json!({"path": "src/slugs/slug.py", "old": "slug[:max_length]", "new": new})
}

/// Returns one reply that contains a whole draft.
fn draft(name: &str, assertion: &str, fix: &str) -> Value {
    let code = format!("def {name}():\n    {assertion}\n");
    calls(&[
        (
            "insert_function",
            json!({"path": "tests/test_slug.py", "code": code}),
        ),
        ("run_pytest", json!({})),
        ("try_fix", json!({"edits": [edit(fix)]})),
        (
            "submit",
            json!({"reason": "\"how-to\" is what the issue asks for"}),
        ),
    ])
}

/// Returns three drafts. The first one passes only with its own fix.
fn replies() -> Vec<Value> {
    let wrong_fix = "slug[:max_length - 1] + \"_\" if max_length == 7 else slug[:max_length]";
    vec![
        draft("test_first", WRONG, wrong_fix),
        text_reply("YES\nThe same call."),
        draft("test_second", RIGHT, "slug[:max_length].strip(\"-\")"),
        text_reply("YES\nThe same wrong value."),
        draft("test_third", RIGHT, "slug[:max_length].rstrip(\"-\")"),
        text_reply("YES\nThe same wrong value."),
    ]
}

fn run(place: &TestDir, model: &str, arguments: &[&str]) -> std::process::Output {
    let all = ["--approach", "testwright", "--model", model];
    let mut command = place.run_example(&all);
    command.args(arguments).output().unwrap()
}

fn of_kind<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|e| e["event"] == kind).collect()
}

#[test]
fn draft_with_most_agreement_is_selected() {
    let place = TestDir::new();
    let model = place.recording(&replies());
    let output = run(&place, &model, &["--effort", "high", "--json"]);
    assert_exit_code(&output, 0);
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["approach"], "testwright:drafts=on");
    let patch = std::fs::read_to_string(place.path("out/test.patch")).unwrap();
    assert!(patch.contains("def test_second"), "{patch}");
    assert!(!patch.contains("test_first"), "{patch}");
    // The fixes are its own, the third draft's, and the first draft's, with which it still fails.
    let fixes = record["evidence"]["fixes"].as_array().unwrap();
    assert_eq!(fixes.len(), 3);
    assert_eq!(record["evidence"]["steps"], 3);
    let events = place.events();
    let chosen = of_kind(&events, "stage");
    insta::assert_snapshot!(chosen[0]["result"].as_str().unwrap(), @r"
    draft 1 passes with 1 of 3 candidate fixes
    draft 2 passes with 2 of 3 candidate fixes
    draft 3 passes with 2 of 3 candidate fixes
    chosen: draft 2
    ");
    assert_eq!(of_kind(&events, "draft_ended").len(), 3);
    // Each draft starts with the same messages, without those of earlier drafts.
    let messages = of_kind(&events, "message");
    let text = |at: usize| messages[at]["message"].to_string();
    assert_eq!(text(0), text(2));
    let task = text(1);
    let task = task.trim_end_matches(['"', '}']);
    assert!(text(3).starts_with(task) && text(5).starts_with(task));
    assert!(text(3).contains("First write a test that passes"));
    assert!(text(5).contains("First find the code at fault"));

    let replayed = place
        .testwright()
        .args(["replay", "--json"])
        .arg(place.path("out"))
        .output()
        .unwrap();
    assert_exit_code(&replayed, 0);
}

#[test]
fn drafts_resume_from_any_point() {
    let place = TestDir::new();
    let model = place.recording(&replies());
    assert_exit_code(&run(&place, &model, &["--effort", "high"]), 0);
    let patch = std::fs::read_to_string(place.path("out/test.patch")).unwrap();
    let trajectory = std::fs::read_to_string(place.path("out/trajectory.jsonl")).unwrap();
    let lines: Vec<&str> = trajectory.lines().collect();
    let replies = replies();
    // The run is cut after each draft and during the selection.
    let ends = (0..lines.len())
        .filter(|at| lines[*at].contains("\"draft_ended\"") || lines[*at].contains("\"stage-"));
    let ends: Vec<usize> = ends.collect();
    assert!(ends.len() > 5, "{ends:?}");
    for end in [ends[0], ends[1], ends[3], ends[ends.len() - 1]] {
        let prefix = &lines[..=end];
        std::fs::write(place.path("out/trajectory.jsonl"), prefix.join("\n") + "\n").unwrap();
        let replied = prefix
            .iter()
            .filter(|line| line.contains("\"event\":\"reply\""))
            .count();
        place.recording(&replies[replied..]);
        let output = place.resume();
        assert_exit_code(&output, 0);
        let again = std::fs::read_to_string(place.path("out/test.patch")).unwrap();
        assert_eq!(again, patch, "cut at line {end}");
    }
}

#[test]
fn exhausted_draft_keeps_others_budget() {
    let place = TestDir::new();
    // Different calls, since a run without progress ends early.
    let look = |n: usize| calls(&[("search", json!({"pattern": format!("max_length.{{{n}}}")}))]);
    let mut all: Vec<_> = (0..8).map(look).collect();
    all.extend(replies().into_iter().skip(2));
    let model = place.recording(&all);
    let output = run(&place, &model, &["--effort", "high", "--max-steps", "24"]);
    assert_exit_code(&output, 0);
    let events = place.events();
    let ended = of_kind(&events, "draft_ended");
    let limits: Vec<&Value> = ended.iter().map(|event| &event["limit"]).collect();
    assert_eq!(limits, [&json!("steps"), &Value::Null, &Value::Null]);
    assert_eq!(place.json("run.json")["usage"]["steps"], 10);
    // Cut after the first draft's steps, that draft ends at the same step again.
    let trajectory = std::fs::read_to_string(place.path("out/trajectory.jsonl")).unwrap();
    let end = trajectory
        .find("{\"event\":\"draft_ended\",\"number\":2")
        .unwrap();
    std::fs::write(place.path("out/trajectory.jsonl"), &trajectory[..end]).unwrap();
    place.recording(&replies()[4..]);
    let output = place.resume();
    assert_exit_code(&output, 0);
    assert_eq!(place.json("run.json")["usage"]["steps"], 10);
    // The same holds if another reason ended the draft.
    let cut = trajectory[..end].replace(
        "\"number\":1,\"limit\":\"steps\"",
        "\"number\":1,\"reason\":\"the tool server ended\"",
    );
    assert_ne!(cut, trajectory[..end]);
    std::fs::write(place.path("out/trajectory.jsonl"), cut).unwrap();
    place.recording(&replies()[4..]);
    let output = place.resume();
    assert_exit_code(&output, 0);
    assert_eq!(place.json("run.json")["usage"]["steps"], 10);
}

#[test]
fn two_agreeing_drafts_are_enough() {
    let place = TestDir::new();
    let mut all = replies().split_off(2);
    // This test is in a new package with an empty `__init__.py`.
    let code = format!("from slugs.slug import slugify\n\n\ndef test_other():\n    {RIGHT}\n");
    let fix = "slug[:max_length].rstrip(\"-\")";
    all[2] = calls(&[
        ("edit", json!({"path": "tests/é/__init__.py", "new": ""})),
        (
            "edit",
            json!({"path": "tests/é/test_other.py", "new": code}),
        ),
        ("run_pytest", json!({})),
        ("try_fix", json!({"edits": [edit(fix)]})),
        (
            "submit",
            json!({"reason": "\"how-to\" is what the issue asks for"}),
        ),
    ]);
    let model = place.recording(&all);
    let output = run(&place, &model, &["--effort", "high"]);
    assert_exit_code(&output, 0);
    let events = place.events();
    assert_eq!(of_kind(&events, "draft_ended").len(), 2);
    let chosen = of_kind(&events, "stage");
    insta::assert_snapshot!(chosen[0]["result"].as_str().unwrap(), @r"
    draft 1 passes with 2 of 2 candidate fixes
    draft 2 passes with 2 of 2 candidate fixes
    two drafts agree, and no further one was written
    chosen: draft 1
    ");
    // Each trial on a draft uses exactly that draft's files.
    let states: Vec<String> = of_kind(&events, "state")
        .iter()
        .map(|state| state["files"].to_string())
        .collect();
    let last = states.last().unwrap();
    assert!(last.contains("tests/é/__init__.py"), "{last}");
}

#[test]
fn full_context_ends_only_its_draft() {
    let place = TestDir::new();
    let full = || json!({"error": {"kind": "context_full", "detail": "too long"}});
    let all = [vec![full()], replies().split_off(2)].concat();
    let model = place.recording(&all);
    let output = run(&place, &model, &["--effort", "high"]);
    assert_exit_code(&output, 0);
    let events = place.events();
    assert_eq!(of_kind(&events, "no_reply").len(), 1);
    assert_eq!(of_kind(&events, "draft_ended")[0]["reason"], "too long");
    // The resumed run reaches the full context again.
    let patch = std::fs::read_to_string(place.path("out/test.patch")).unwrap();
    let trajectory = std::fs::read_to_string(place.path("out/trajectory.jsonl")).unwrap();
    let end = trajectory
        .find("{\"event\":\"draft_ended\",\"number\":2")
        .unwrap();
    std::fs::write(place.path("out/trajectory.jsonl"), &trajectory[..end]).unwrap();
    place.recording(&all[3..]);
    let output = place.resume();
    assert_exit_code(&output, 0);
    let again = std::fs::read_to_string(place.path("out/test.patch")).unwrap();
    assert_eq!(again, patch);
}

#[test]
fn rejected_drafts_end_as_first() {
    let place = TestDir::new();
    let gives_up = || text_reply("I stop here.");
    let model = place.recording(&vec![gives_up(); 9]);
    let output = run(&place, &model, &["--effort", "high"]);
    assert_exit_code(&output, 1);
    let record = place.json("run.json");
    assert_eq!(record["outcome"], "nothing");
    assert_eq!(
        record["reason"],
        "the model stopped without calling a tool; its last reply: I stop here."
    );
}

#[test]
fn test_with_low_confidence_is_withheld() {
    let place = TestDir::new();
    let model = place.recording(&replies()[2..4]);
    let output = run(&place, &model, &["--min-confidence", "0.99"]);
    assert_exit_code(&output, 1);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        stdout.contains("withheld: the confidence of 0.98 is below 0.99"),
        "{stdout}"
    );
    assert!(place.path("out/withheld.patch").exists());
    assert!(!place.path("out/test.patch").exists());
    assert_eq!(place.json("run.json")["outcome"], "withheld");
    let inspect_output = place
        .testwright()
        .arg("inspect")
        .arg(place.path("out"))
        .output()
        .unwrap();
    let inspect_stdout = String::from_utf8_lossy(&inspect_output.stdout).into_owned();
    assert!(
        inspect_stdout.contains("+def test_second"),
        "{inspect_stdout}"
    );
    let mut replay = place.testwright();
    let output = replay
        .arg("replay")
        .arg(place.path("out"))
        .output()
        .unwrap();
    assert_exit_code(&output, 0);
    for wrong in ["1.5", "-0.1", "NaN"] {
        let refused = run(&place, &model, &[&format!("--min-confidence={wrong}")]);
        assert_exit_code(&refused, 2);
    }
}
