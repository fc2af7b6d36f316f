//! `testwright check`, for given tests and for the predictions of a dataset.

use std::process::Command;

use serde_json::{Value, json};

use crate::product::eval::repository::{GOOD as NEGATIVE, Repository, lines};
use crate::support::program::{TestDir, assert_exit_code, calls, example, text_reply};
use crate::support::server::{MockServer, Request, Response};

pub(super) const GOOD: &str = "from slugs import slugify\n\n\ndef test_cut():\n    \
                    assert slugify(\"How to bake bread\", max_length=7) == \"how-to\"\n";
pub(super) const PASSING: &str = "from slugs import slugify\n\n\ndef test_bread():\n    assert slugify(\"bread\") == \"bread\"\n";
/// A test that runs the code, and fails whatever it does.
const CONSTANT: &str = "from slugs import slugify\n\n\ndef test_cut():\n    slug = slugify(\"bread\"); assert False, slug\n";

/// Returns the command with these tests: the path and content of a Python file, or the name and content of another file.
fn check(place: &TestDir, tests: &[(&str, &str)]) -> Command {
    let mut command = place.testwright();
    command.args(["check", &example("issue.md"), "--repo", &example("slugs")]);
    command.args(["--python", "3.11"]);
    for (number, (name, text)) in tests.iter().enumerate() {
        let file = match name.ends_with(".py") {
            true => place.path(&format!("{number}.py")),
            false => place.path(name),
        };
        std::fs::write(&file, text).unwrap();
        command.arg(match name.ends_with(".py") {
            true => format!("{name}={}", file.display()),
            false => file.display().to_string(),
        });
    }
    command
}

/// Returns the command that checks `predictions.jsonl` for `dataset.jsonl`.
fn check_dataset(place: &TestDir, arguments: &[&str]) -> Command {
    let mut command = place.testwright();
    command.args(["check", "--workers", "2"]).args(arguments);
    command.arg("--dataset").arg(place.path("dataset.jsonl"));
    let predictions = place.path("predictions.jsonl");
    command.arg("--predictions").arg(predictions);
    command.arg("--repositories");
    command.arg(place.path("repositories").join("{owner}+{name}"));
    command.arg("--out").arg(place.path("out"));
    command
}

fn has_finding(evidence: &Value, rule: &str) -> bool {
    let findings = evidence["findings"].as_array().unwrap();
    findings.iter().any(|finding| finding["rule"] == rule)
}

#[test]
fn given_tests_are_judged_with_evidence() {
    let place = TestDir::new();
    let code = std::fs::read_to_string(example("slugs/src/slugs/slug.py")).unwrap();
    let length = format!(
        "import slugs.slug\n\n\ndef test_bread():\n    assert slugs.slugify(\"bread\") == \"bread\"\n    \
         assert len(open(slugs.slug.__file__, \"rb\").read()) != {}\n",
        code.len()
    );
    let code: Vec<&str> = code.lines().collect();
    let [.., docstring, cut] = code[..] else {
        panic!("the file has only a line")
    };
    let edit = format!(
        "--- a/src/slugs/slug.py\n+++ b/src/slugs/slug.py\n@@ -{line},2 +{line},2 @@\n {docstring}\n-{cut}\n+{cut}.strip(\"-\")\n",
        line = code.len() - 1
    );
    let misplaced = edit.replace("slug.py", "no.py");
    let tests = [
        ("tests/test_given.py", GOOD),
        ("tests/test_given.py", PASSING),
        ("tests/test_given.py", &*length),
        ("edit.patch", &*edit),
        ("misplaced.diff", &*misplaced),
        ("tests/test_given.py", CONSTANT),
    ];
    let output = check(&place, &tests).arg("--json").output().unwrap();
    assert_exit_code(&output, 1);
    let checked: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let accepted: Vec<&Value> = checked.iter().map(|check| &check["accepted"]).collect();
    let expected = [true, false, false, false, false, false];
    assert_eq!(accepted, expected, "{checked:#?}");

    let failure = &checked[0]["failing"][0];
    assert_eq!(failure["id"], "tests/test_given.py::test_cut");
    assert_eq!(failure["class"], "assertion");
    assert_eq!(failure["placebo_held"], true);
    assert_eq!(failure["message_in_issue"], true);
    assert_eq!(failure["exception_in_issue"], false);
    assert_eq!(failure["code_in_issue"], json!(["slugify"]));
    let reruns = failure["reruns"].as_array().unwrap();
    assert!(reruns.len() >= 3 && reruns.iter().all(|rerun| rerun["failed_again"] == true));

    assert!(has_finding(&checked[1], "fails"), "{:#}", checked[1]);
    let passing = json!(["tests/test_given.py::test_bread"]);
    assert_eq!(checked[1]["passing"], passing);
    assert!(
        has_finding(&checked[2], "holds_with_placebo"),
        "{:#}",
        checked[2]
    );
    assert_eq!(checked[2]["failing"][0]["placebo_held"], false);
    assert!(has_finding(&checked[3], "tests_only"), "{:#}", checked[3]);
    let refused = checked[4]["refused"].as_str().unwrap();
    assert!(refused.contains("the patch does not apply"), "{refused}");
    assert!(has_finding(&checked[5], "sound"), "{:#}", checked[5]);
    for check in &checked[1..] {
        assert!(check["probability"].as_f64().unwrap() <= 0.1, "{check:#}");
    }
}

#[test]
fn accepted_test_ends_with_zero() {
    let place = TestDir::new();
    let tests = [("tests/test_given.py", GOOD)];
    let output = check(&place, &tests).output().unwrap();
    assert_exit_code(&output, 0);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        stdout.starts_with("accepted tests/test_given.py="),
        "{stdout}"
    );
    for row in [
        "\n  fails      assertion: AssertionError: assert 'how-to-' == 'how-to'",
        "\n  issue      “",
        "\n  reruns     another hash seed and user: failed again",
        "\n  placebo    failed again",
        "\n  confidence 0.",
    ] {
        assert!(stdout.contains(row), "{row}: {stdout}");
    }
}

#[test]
fn unreadable_test_is_usage_error() {
    let place = TestDir::new();
    for (tests, argument, cause) in [
        (vec![], "no.patch", "the file no.patch does not exist"),
        (vec![], "a.py=no.py", "the file no.py does not exist"),
        (
            vec![("notes.txt", "notes")],
            "",
            "it is neither a patch nor a Python file",
        ),
        (vec![("a.patch", "notes")], "", "it contains no diff"),
        (
            vec![("../outside.py", GOOD)],
            "",
            "it is outside the repository",
        ),
    ] {
        let mut command = check(&place, &tests);
        command.args(Some(argument).filter(|argument| !argument.is_empty()));
        let output = command.output().unwrap();
        assert_exit_code(&output, 2);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            stderr.contains(cause) && stderr.contains("\n  hint: "),
            "{stderr}"
        );
    }
    let without_test = place
        .testwright()
        .args(["check", &example("issue.md")])
        .output()
        .unwrap();
    assert_exit_code(&without_test, 2);
}

#[test]
fn predictions_are_checked_once_without_golden_patches() {
    let place = TestDir::new();
    let repository = Repository::new(place.path("repositories/example+sums"), None);
    let mut instance = repository.instance("plain", "add(1, -2) gives 0, and I expected -1.");
    for golden in ["patch", "test_patch", "FAIL_TO_PASS", "PASS_TO_PASS"] {
        instance.as_object_mut().unwrap().remove(golden);
    }
    lines(&place.path("dataset.jsonl"), &[instance]);
    let passing =
        repository.append_tests_patch("\n\ndef test_short():\n    assert add(1, 1) == 2\n");
    let prediction = |model: &str, patch: Option<&str>| json!({"instance_id": "plain", "model_name_or_path": model, "model_patch": patch});
    let good = prediction("good", Some(&repository.append_tests_patch(NEGATIVE)));
    let check_with = |arguments: &[&str], second: Value| {
        let predictions = [good.clone(), second, prediction("nothing", None)];
        lines(&place.path("predictions.jsonl"), &predictions);
        let output = check_dataset(&place, arguments).output().unwrap();
        assert_exit_code(&output, 0);
        let stdout = String::from_utf8_lossy(&output.stdout);
        let expected = "2 predictions: 1 accepted, 1 not accepted, 0 could not be checked\n";
        assert_eq!(stdout, expected);
        let stored = std::fs::read_to_string(place.path("out/checks.jsonl")).unwrap();
        let records = stored
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let stderr = String::from_utf8_lossy(&output.stderr);
        let new = stderr.lines().filter(|line| line.starts_with("plain "));
        let newly_checked = new.count();
        (records.collect::<Vec<Value>>(), newly_checked)
    };
    let check = |second: Value| check_with(&[], second);
    let second = prediction("second", Some(&passing));
    let (records, newly_checked) = check(second.clone());
    assert_eq!((records.len(), newly_checked), (2, 2));
    assert_eq!(records[0]["prediction"], "good");
    assert_eq!(records[0]["evidence"]["accepted"], true, "{records:#?}");
    assert!(has_finding(&records[1]["evidence"], "fails"));
    assert_eq!(check(second), (records.clone(), 0));

    // Another patch of the same prediction set replaces the earlier result.
    let changed = passing.replace("test_short", "test_brief");
    let (again, newly_checked) = check(prediction("second", Some(&changed)));
    assert_eq!((again.len(), newly_checked), (2, 1));
    assert_eq!(again[0], records[0]);
    assert_ne!(again[1]["sha256"], records[1]["sha256"]);

    // Of the accepted predictions, those with the minimum are kept.
    for (minimum, kept) in [("0", vec!["good"]), ("1", Vec::new())] {
        check_with(
            &["--min-confidence", minimum],
            prediction("second", Some(&changed)),
        );
        let text = std::fs::read_to_string(place.path("out/kept.jsonl")).unwrap();
        let names = text.lines().map(|line| {
            let prediction: Value = serde_json::from_str(line).unwrap();
            prediction["model_name_or_path"]
                .as_str()
                .unwrap()
                .to_owned()
        });
        assert_eq!(names.collect::<Vec<_>>(), kept);
    }
}

/// Returns the replies of a model that fixes the code and agrees with the test.
fn agreeing_replies(path: &str, old: &str, new: &str) -> [Value; 3] {
    let edit = json!({"edits": [{"path": path, "old": old, "new": new}]});
    [
        calls(&[("try_fix", edit)]),
        calls(&[("submit", json!({"reason": "The fix makes it pass."}))]),
        text_reply("YES\nIt fails as the issue says."),
    ]
}

/// Returns the replies of a model that agrees with [`GOOD`].
fn replies_to_good() -> [Value; 3] {
    let code = std::fs::read_to_string(example("slugs/src/slugs/slug.py")).unwrap();
    let cut = code.lines().next_back().unwrap();
    let new = format!("{cut}.strip(\"-\")");
    agreeing_replies("src/slugs/slug.py", cut, &new)
}

/// Records a model that agrees with [`GOOD`].
pub(super) fn agreeing_model(place: &TestDir) -> String {
    place.recording(&replies_to_good())
}

/// Starts a model service with these replies; the last one is the review.
fn model_service(replies: [Value; 3]) -> MockServer {
    MockServer::start(move |request: &Request| {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        let turn = messages.iter().filter(|m| m["role"] == "assistant").count();
        let reply = match body["tools"].is_null() {
            true => &replies[2],
            false => &replies[turn],
        };
        let calls = reply["calls"].as_array().unwrap().iter().map(|call| {
            let arguments = call["arguments"].to_string();
            let function = json!({"name": call["name"], "arguments": arguments});
            json!({"id": call["id"], "type": "function", "function": function})
        });
        let calls: Vec<Value> = calls.collect();
        let mut message = json!({"role": "assistant", "content": reply["content"]});
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        Response::json(json!({
            "choices": [{"index": 0, "finish_reason": reply["finish"], "message": message}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 10},
        }))
        .with("content-type", "application/json")
    })
}

#[test]
fn model_adds_fixes_and_review() {
    let place = TestDir::new();
    let model = agreeing_model(&place);
    // The second test passes on the old code, so the model is not asked about it.
    let tests = [
        ("tests/test_given.py", GOOD),
        ("tests/test_given.py", PASSING),
    ];
    let mut command = check(&place, &tests);
    let output = command
        .current_dir(place.path("."))
        .args(["--json", "--model", &model])
        .output()
        .unwrap();
    assert_exit_code(&output, 1);
    let checked: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(checked[0]["review"]["verdict"], "yes", "{checked:#?}");
    let probability = |check: &Value| check["probability"].as_f64().unwrap();
    assert!(probability(&checked[0]) > 0.9 && probability(&checked[1]) < 0.2);
    let outcomes = &checked[0]["fixes"][0]["outcomes"];
    assert_eq!(
        *outcomes,
        json!([["tests/test_given.py::test_cut", "passed"]])
    );
    assert!(checked[1].get("review").is_none() && checked[1].get("fixes").is_none());
    let runs = std::fs::read_dir(place.path("testwright-runs")).unwrap();
    let run = runs.map(|run| run.unwrap().path()).next().unwrap();
    assert!(run.join("1/trajectory.jsonl").exists() && !run.join("2").exists());
}

#[test]
fn custom_prompt_shows_test_after_system_message() {
    let place = TestDir::new();
    std::fs::create_dir_all(place.path("prompts/check")).unwrap();
    let prompt = place.path("prompts/check/test.md");
    std::fs::write(prompt, "Mine: {{ test }}\n\n{{ result }}\n").unwrap();
    let service = model_service(replies_to_good());
    let mut command = check(&place, &[("tests/test_given.py", GOOD)]);
    command.current_dir(place.path("."));
    command
        .args(["--model", "m", "--prompts"])
        .arg(place.path("prompts"));
    command.env("TESTWRIGHT_MODEL_BASE_URL", format!("{}/v1", service.url));
    assert_exit_code(&command.output().unwrap(), 0);
    let requests = service.requests(|request| request.body.clone());
    let first: Value = serde_json::from_str(&requests[0]).unwrap();
    // The test ran before the conversation, which has no answer of a tool yet.
    let messages = first["messages"].as_array().unwrap();
    let roles: Vec<&Value> = messages.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user"]);
    let task = messages[1]["content"].as_str().unwrap();
    assert!(task.contains("\n\nMine: diff --git"), "{task}");
}

#[test]
fn dataset_check_with_model_resumes_without_calls() {
    let place = TestDir::new();
    let repository = Repository::new(place.path("repositories/example+sums"), None);
    let issue = "add(1, -2) gives 0, and I expected -1.";
    lines(
        &place.path("dataset.jsonl"),
        &[repository.instance("plain", issue)],
    );
    let patch = repository.append_tests_patch(NEGATIVE);
    let prediction =
        json!({"instance_id": "plain", "model_name_or_path": "good", "model_patch": patch});
    lines(&place.path("predictions.jsonl"), &[prediction]);
    let (old, new) = ("return a + b + 1", "return a + b");
    let service = model_service(agreeing_replies("pkg/calc.py", old, new));
    let check = |arguments: &[&str]| {
        let mut command = check_dataset(&place, arguments);
        command.args(["--model", "m"]);
        command.env("TESTWRIGHT_MODEL_BASE_URL", format!("{}/v1", service.url));
        assert_exit_code(&command.output().unwrap(), 0);
        let stored = std::fs::read_to_string(place.path("out/checks.jsonl")).unwrap();
        let record: Value = serde_json::from_str(stored.trim()).unwrap();
        (record, service.requests(|_| ()).len())
    };
    let (record, calls) = check(&[]);
    assert_eq!(record["evidence"]["review"]["verdict"], "yes", "{record:#}");
    assert_eq!(calls, 3);
    assert_eq!(check(&[]), (record.clone(), 3));

    // Another limit may give another result.
    let (again, calls) = check(&["--max-steps", "5"]);
    assert_ne!(again["sha256"], record["sha256"]);
    assert_eq!(calls, 6);
    let runs = std::fs::read_dir(place.path("out/runs")).unwrap();
    let folders = runs.filter(|run| run.as_ref().unwrap().path().is_dir());
    assert_eq!(folders.count(), 2);
}
