//! Complete runs, from the issue to the patch, and interrupted runs.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::program::{
    Boundary, TestDir, assert_exit_code, calls, example, interrupt, text_reply,
};
use crate::support::server::{MockServer, Response};

const TEST: &str = "def test_cut_leaves_no_separator_at_the_end():\n    \
                    assert slugify(\"How to bake bread\", max_length=7) == \"how-to\"\n";
const ID: &str = "tests/test_slug.py::test_cut_leaves_no_separator_at_the_end";

fn insert() -> serde_json::Value {
    calls(&[(
        "insert_function",
        json!({"path": "tests/test_slug.py", "code": TEST}),
    )])
}

fn fix() -> serde_json::Value {
    calls(&[(
        "try_fix",
        json!({"edits": [{
            "path": "src/slugs/slug.py",
            "function": "slugify",
            "new": "def slugify(text, separator=\"-\", max_length=None, lowercase=True):\n    \
                    slug = NOT_WORD.sub(\" \", to_ascii(APOSTROPHE.sub(\"\", text))).strip().replace(\" \", separator)\n    \
                    slug = slug.lower() if lowercase else slug\n    \
                    return slug if max_length is None else slug[:max_length].strip(separator)\n",
        }]}),
    )])
}

#[test]
fn example_is_accepted_without_key() {
    let place = TestDir::new();
    // The limit is on calls of a language model.
    let output = place.run_example(&["--max-steps", "1"]).output().unwrap();
    assert_exit_code(&output, 0);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("A test was accepted."), "{stdout}");

    let record = place.json("run.json");
    assert_eq!(record["outcome"], "accepted");
    assert_eq!(record["approach"], "snippet");
    let isolation = record["sandbox"]["isolation"].as_str().unwrap();
    assert!(
        isolation.contains("no network") || isolation.contains("landlock"),
        "{isolation}"
    );
    let evidence = place.json("evidence.json");
    assert_eq!(evidence["tests"][0]["class"], "assertion");
    let expected = [
        "another hash seed and user: 1 failed again",
        "another hash seed, reversed order: 1 failed again",
        "another hash seed, each test alone: 1 failed again",
        "placebo in the code under test: 1 failed again",
    ];
    assert_eq!(evidence["reruns"], json!(expected));

    // The printed command applies the patch from the current folder.
    let stderr = String::from_utf8_lossy(&output.stderr);
    let mut lines = stderr.lines();
    let command = lines.find_map(|line| line.strip_prefix("or: ")).unwrap();
    let check = format!("{command} --check");
    let applied = Command::new("sh").args(["-c", &check]).output().unwrap();
    assert_exit_code(&applied, 0);
}

#[test]
fn reduced_isolation_is_reported() {
    if !Boundary::all().contains(&Boundary::Landlock) {
        return;
    }
    let place = TestDir::within(Boundary::Landlock);
    let run = place.run_example(&[]).output().unwrap();
    let doctor = place.testwright().arg("doctor").output().unwrap();
    for output in [run, doctor] {
        let bytes = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("reduced isolation: Landlock"), "{text}");
    }
}

/// Within some boundaries code has another path in each sandbox, where the package must be found too.
#[test]
fn example_is_accepted_within_every_boundary() {
    for boundary in Boundary::all() {
        let place = TestDir::within(boundary);
        let output = place
            .run_example(&["--sandbox", boundary.sandbox(), "--python", "3.11"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{boundary:?}: {output:?}");
    }
}

#[test]
fn rejections_are_fed_back_until_acceptance() {
    let place = TestDir::new();
    let passing = "def test_short():\n    assert slugify(\"bread\") == \"bread\"\n";
    let model = place.recording(&[
        calls(&[
            ("search", json!({"pattern": "max_length"})),
            ("no_such_tool", json!({})),
            ("read_function", json!({"name": "slugfy"})),
        ]),
        calls(&[(
            "insert_function",
            json!({"path": "tests/test_slug.py", "code": passing}),
        )]),
        calls(&[("submit", json!({}))]),
        calls(&[("edit", json!({"path": "tests/test_slug.py"}))]),
        insert(),
        calls(&[("submit", json!({"reason": "I expected 'how-to'."}))]),
        fix(),
        calls(&[("submit", json!({}))]),
        text_reply("NO\nIt tests something else."),
        calls(&[("submit", json!({"reason": "it is the issue's own call"}))]),
        text_reply("YES\nThe same wrong value."),
    ]);
    let output = place
        .run_example(&["--approach", "testwright", "--model", &model, "--json"])
        .output()
        .unwrap();
    assert_exit_code(&output, 0);
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["evidence"]["tests"][0]["id"], ID);
    assert_eq!(record["evidence"]["review"]["verdict"], "yes");
    let fixes = record["evidence"]["fixes"].as_array().unwrap();
    assert_eq!(fixes[0]["outcomes"][0], json!([ID, "passed"]));
    assert!(
        fixes[0]["patch"]
            .as_str()
            .unwrap()
            .contains("strip(separator)")
    );
    // The fix was tried in a copy, so the patch does not contain it.
    let patch = std::fs::read_to_string(place.path("out/test.patch")).unwrap();
    assert!(!patch.contains("src/slugs/slug.py"), "{patch}");
    assert_eq!(record["usage"]["steps"], 9);
    assert_eq!(record["usage"]["model_calls"], 11);
    assert_eq!(record["usage"]["prompt_tokens"], 11_000);

    let answers: Vec<String> = place
        .events()
        .iter()
        .filter(|event| event["event"] == "answer")
        .map(|event| event["result"]["content"].as_str().unwrap().to_owned())
        .collect();
    let assert_answered = |text: &str| {
        assert!(
            answers.iter().any(|a| a.contains(text)),
            "{text}: {answers:#?}"
        )
    };
    assert_answered("there is no tool `no_such_tool`");
    assert_answered("slugify");
    assert_answered("no contributed test fails on this code");
    assert_answered("no candidate fix was tried");
    assert_answered("It tests something else.");
}

#[test]
fn rejected_run_ends_with_reason() {
    let place = TestDir::new();
    let model = place.recording(&[insert(), insert(), insert()]);
    let arguments = [
        "--approach",
        "testwright",
        "--model",
        &model,
        "--max-steps",
        "2",
    ];
    let output = place.run_example(&arguments).output().unwrap();
    assert_exit_code(&output, 1);
    assert_eq!(place.json("run.json")["outcome"], "out_of_budget");
    assert!(!place.path("out/test.patch").exists());
    // The folder already contains a run, which must not be overwritten.
    let again = place.run_example(&arguments).output().unwrap();
    assert_exit_code(&again, 2);
    let ended_run = place
        .testwright()
        .args(["run", "--resume"])
        .arg(place.path("out"))
        .output()
        .unwrap();
    assert_exit_code(&ended_run, 2);
}

/// Starts a run whose third step sleeps, and waits until that step runs.
fn sleeping(place: &TestDir) -> std::process::Child {
    let model = place.recording(&[
        calls(&[("search", json!({"pattern": "max_length"}))]),
        insert(),
        calls(&[(
            "run_python",
            json!({"code": "import time; time.sleep(8); print('slept')"}),
        )]),
    ]);
    let mut child = place
        .run_example(&["--approach", "testwright", "--model", &model])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let trajectory = place.path("out/trajectory.jsonl");
    let started = Instant::now();
    loop {
        let written = std::fs::read_to_string(&trajectory).unwrap_or_default();
        if written.contains("time.sleep(8)") {
            return child;
        }
        assert_eq!(
            child.try_wait().unwrap(),
            None,
            "the run has ended: {written}"
        );
        assert!(
            started.elapsed() < Duration::from_secs(300),
            "the run did not get there: {written}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn killed_run_resumes() {
    let place = TestDir::new();
    let mut child = sleeping(&place);
    child.kill().unwrap();
    child.wait().unwrap();
    let before = place.events().len();

    // The resumed run makes only the missing calls.
    place.recording(&[
        calls(&[("submit", json!({}))]),
        fix(),
        calls(&[("submit", json!({}))]),
        text_reply("YES"),
    ]);
    let output = place
        .testwright()
        .args(["run", "--resume"])
        .arg(place.path("out"))
        .output()
        .unwrap();
    assert_exit_code(&output, 0);
    let events = place.events();
    assert_eq!(events[before]["event"], "resumed");
    let slept = events
        .iter()
        .filter(|e| {
            e["result"]["content"]
                .as_str()
                .is_some_and(|c| c.contains("slept"))
        })
        .count();
    assert_eq!(slept, 1, "the call in flight was made again, once");
    let searched = events.iter().filter(|e| e["tool"] == "search").count();
    assert_eq!(searched, 1, "what was answered was not asked again");
    assert!(
        std::fs::read_to_string(place.path("out/test.patch"))
            .unwrap()
            .contains("how-to")
    );
    assert_eq!(place.json("run.json")["usage"]["steps"], 6);

    let replayed = place
        .testwright()
        .args(["replay", "--json"])
        .arg(place.path("out"))
        .output()
        .unwrap();
    assert_exit_code(&replayed, 0);
}

#[test]
fn run_resumes_after_unanswered_review() {
    let place = TestDir::new();
    let submit = calls(&[("submit", json!({"reason": "I expected 'how-to'."}))]);
    let model = place.recording(&[insert(), fix(), submit, text_reply("YES")]);
    let mut command = place.run_example(&["--approach", "testwright", "--model", &model]);
    assert_exit_code(&command.output().unwrap(), 0);
    // The disk is full when the answer to `submit` is written.
    let file = place.path("out/trajectory.jsonl");
    let trajectory = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = trajectory.lines().collect();
    let is_review = |line: &&str| line.contains("\"purpose\":\"review\"");
    let review = lines.iter().position(is_review).unwrap();
    std::fs::write(&file, lines[..=review].join("\n") + "\n").unwrap();
    // The recorded review counts.
    place.recording(&[text_reply("NO")]);
    let mut elsewhere = place.testwright();
    elsewhere.args(["run", "--repo", "/nowhere", "--resume"]);
    let output = elsewhere.arg(place.path("out")).output().unwrap();
    assert_exit_code(&output, 2);
    assert_exit_code(&place.resume(), 0);
    assert_eq!(place.json("run.json")["usage"]["model_calls"], 4);
}

#[test]
fn run_resumes_after_model_failure() {
    let place = TestDir::new();
    let works = std::sync::atomic::AtomicBool::new(false);
    let works: &'static _ = Box::leak(Box::new(works));
    let server = MockServer::start(|_| {
        if works.load(std::sync::atomic::Ordering::SeqCst) {
            Response::json(json!({"choices": [{"index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": "I stop here."}}]}))
            .with("content-type", "application/json")
        } else {
            Response::status(401)
        }
    });
    let url = format!("{}/v1", server.url);
    let output = place
        .run_example(&["--model", "m", "--env", "LEVEL=1"])
        .env("TESTWRIGHT_MODEL_BASE_URL", &url)
        .output()
        .unwrap();
    assert_exit_code(&output, 3);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("failed to get an answer from the model\n  cause: "),
        "{stderr}"
    );
    works.store(true, std::sync::atomic::Ordering::SeqCst);
    let output = place
        .testwright()
        .args(["run", "--resume"])
        .arg(place.path("out"))
        .env("TESTWRIGHT_MODEL_BASE_URL", &url)
        .output()
        .unwrap();
    assert_exit_code(&output, 1);
    let record = place.json("run.json");
    assert_eq!(record["outcome"], "nothing");
    assert_eq!(record["environment"]["env"]["LEVEL"], "1");
}

#[test]
fn ctrl_c_stops_run_and_sandbox() {
    let place = TestDir::new();
    let child = sleeping(&place);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_exit_code(&output, 130);
    assert_eq!(place.json("run.json")["outcome"], "interrupted");
    let hint = format!(
        "hint: testwright run --resume {}",
        place.path("out").display()
    );
    assert!(String::from_utf8_lossy(&output.stderr).contains(&hint));
    let ps_output = Command::new("ps").args(["-eo", "args"]).output().unwrap();
    let processes = String::from_utf8_lossy(&ps_output.stdout);
    assert!(
        !processes.contains(&format!("{}", place.folder.path().display())),
        "{processes}"
    );
}

#[test]
fn replay_reports_different_answers() {
    let place = TestDir::new();
    let output = place.run_example(&[]).output().unwrap();
    assert_exit_code(&output, 0);
    let replay = |place: &TestDir| {
        place
            .testwright()
            .arg("replay")
            .arg(place.path("out"))
            .output()
            .unwrap()
    };
    let same = replay(&place);
    assert_exit_code(&same, 0);
    assert!(String::from_utf8_lossy(&same.stdout).contains("all answers are as recorded"));

    let trajectory = place.path("out/trajectory.jsonl");
    let changed = std::fs::read_to_string(&trajectory)
        .unwrap()
        .replace("1 test: 1 failed", "1 test: 1 passed");
    std::fs::write(&trajectory, changed).unwrap();
    let other = replay(&place);
    assert_exit_code(&other, 1);
    let stdout = String::from_utf8_lossy(&other.stdout).into_owned();
    assert!(
        stdout.contains("run_pytest") && stdout.contains("1 passed"),
        "{stdout}"
    );
}

#[test]
fn missing_repository_is_reported_with_hint() {
    let place = TestDir::new();
    let missing = place.path("missing");
    let mut command = place.testwright();
    command.args(["run", &example("issue.md"), "--repo"]);
    let output = command.arg(&missing).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    let missing = missing.display();
    let lines = [
        format!("error: failed to read the repository {missing}"),
        format!("  cause: there is no repository at {missing} (No such file or directory"),
        "  hint: use a folder".to_owned(),
    ];
    for line in lines {
        assert!(
            stderr.lines().any(|printed| printed.starts_with(&line)),
            "{line}\nnot in:\n{stderr}"
        );
    }
}

/// One compaction removes half of the long content, so a full context needs several.
#[test]
fn run_ends_when_compaction_is_exhausted() {
    let place = TestDir::new();
    let full = || serde_json::json!({"error": {"kind": "context_full", "detail": "too long"}});
    let read = |path| calls(&[("open_file", serde_json::json!({"path": path}))]);
    let all = [
        read("src/slugs/slug.py"),
        read("src/slugs/unique.py"),
        full(),
        full(),
        text_reply("I look again."),
        full(),
    ];
    let model = place.recording(&all);
    let output = place.run_example(&["--model", &model]).output().unwrap();
    // The failure is due to the model, so the exit code is 1 and the run is not retried.
    assert_exit_code(&output, 1);
    let record = place.json("run.json");
    assert_eq!(record["outcome"], "nothing");
    assert_eq!(record["reason"], "too long");
    let compactions = |place: &TestDir| {
        let events = place.events();
        events.iter().filter(|e| e["event"] == "compacted").count()
    };
    assert_eq!(compactions(&place), 2);
    let trajectory = std::fs::read_to_string(place.path("out/trajectory.jsonl")).unwrap();
    let end = trajectory.find("{\"event\":\"no_reply\"").unwrap();
    std::fs::write(place.path("out/trajectory.jsonl"), &trajectory[..end]).unwrap();
    place.recording(&[full()]);
    let output = place.resume();
    assert_exit_code(&output, 1);
    assert_eq!(place.json("run.json")["reason"], "too long");
    assert_eq!(compactions(&place), 2);
}
