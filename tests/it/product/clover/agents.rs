//! `testwright clover eval --approach cover`: agents on problems of task III, in real sandboxes, with a scripted model.

use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{CloverBench, git, str};
use crate::support::program::assert_exit_code;
use crate::support::server::{MockServer, Request, Response};

/// Tests to append. Each golden test contains a text that occurs nowhere else.
const MORE_TESTS: &str = "\
from shapes import Box, describe


def test_large():
    assert describe(Box(30, 20)) == 'Wide and large.', 'this box has to be large'
";
const HIDDEN: [&str; 2] = ["this box has to be wide", "this box has to be large"];

/// Returns code that searches all readable files, except system files, for golden tests and for code that is shown.
fn search_code() -> String {
    let hex = |text: &str| text.bytes().map(|b| format!("{b:02x}")).collect::<String>();
    format!(
        "import os
texts = {{bytes.fromhex(text): what for text, what in [
    ('{}', 'hidden'), ('{}', 'hidden'), ('{}', 'shown')]}}
for folder, folders, names in os.walk('/'):
    if folder == '/':
        folders[:] = [name for name in folders if name not in ('proc', 'sys', 'dev', 'usr')]
    for name in names:
        path = os.path.join(folder, name)
        try:
            if not os.path.isfile(path) or os.path.getsize(path) > 20_000_000:
                continue
            with open(path, 'rb') as file:
                content = file.read()
        except OSError:
            continue
        for text, what in texts.items():
            if text in content:
                print('found what is', what, 'in', path)
",
        hex(HIDDEN[0]),
        hex(HIDDEN[1]),
        hex("def describe(box)")
    )
}

/// The test that a problem asks for, found by the agent's prompt.
struct TargetTest {
    path: &'static str,
    name: &'static str,
    /// Header of the test function.
    header: &'static str,
    /// Expected result of `describe`, as a Python expression.
    words: &'static str,
}

const TARGET_TESTS: [TargetTest; 2] = [
    TargetTest {
        path: "tests/test_boxes.py",
        name: "TestWords.test_describe",
        header: "def test_describe(self):",
        words: "self.limit",
    },
    TargetTest {
        path: "tests/test_more.py",
        name: "test_large",
        header: "def test_large():",
        words: "'Wide and large.'",
    },
];

type Calls = Vec<(&'static str, Value)>;

impl TargetTest {
    fn of_prompt(prompt: &str) -> &'static TargetTest {
        let id = |test: &TargetTest| format!("{}::{}", test.path, test.name.replace('.', "::"));
        let is_mentioned =
            |test: &&TargetTest| prompt.contains(&format!("the test `{}`", id(test)));
        TARGET_TESTS
            .iter()
            .find(is_mentioned)
            .unwrap_or_else(|| panic!("{prompt}"))
    }

    fn write(&self, statement: &str) -> (&'static str, Value) {
        let code = format!("{}\n    {statement}\n", self.header);
        let arguments = json!({"path": self.path, "function": self.name, "new": code});
        ("edit", arguments)
    }

    fn missing_edit(&self) -> (&'static str, Value) {
        self.write("assert Box(20, 10).area() == 200")
    }

    fn covering_edit(&self) -> (&'static str, Value) {
        self.write(&format!("assert describe(Box(20, 10)) == {}", self.words))
    }

    /// Returns the calls of a model in this turn, counted from 0. An empty list ends the run.
    fn script(&self, model: &str, turn: usize) -> Calls {
        match (model, turn) {
            ("good", 0) => vec![
                ("search", json!({"pattern": "has to be (wide|large)"})),
                ("open_file", json!({"path": self.path})),
                ("run_python", json!({"code": search_code(), "timeout": 120})),
            ],
            ("good", 1) => vec![self.missing_edit(), ("cover", json!({}))],
            ("good", _) | ("killed", 1) => vec![
                self.covering_edit(),
                ("cover", json!({})),
                ("submit", json!({})),
            ],
            ("lazy", 0) => vec![self.covering_edit()],
            ("wasteful" | "killed", 0) => vec![self.missing_edit()],
            ("wasteful", _) => vec![("open_file", json!({"path": self.path}))],
            _ => Vec::new(),
        }
    }
}

fn turn(body: &Value) -> usize {
    let messages = body["messages"].as_array().unwrap().iter();
    messages
        .filter(|message| message["role"] == "assistant")
        .count()
}

/// Answers a request with tools by the script, and a single call with a test that misses the lines.
fn answer(request: &Request, problems: &[Value]) -> Response {
    let body: Value = serde_json::from_str(&request.body).unwrap();
    let prompt = body["messages"][1]["content"].as_str().unwrap();
    let model = str(&body, "model");
    let mut message = json!({"role": "assistant", "content": "I am done."});
    let mut finish = "stop";
    if body["tools"].is_null() {
        let is_match =
            |problem: &&Value| prompt.contains(&format!("of `{}`.", str(problem, "test")));
        let text = &problems.iter().find(is_match).unwrap()["text"];
        let indent = str(text, "indent");
        let [before, header, after] = ["before", "header", "after"].map(|part| str(text, part));
        message["content"] = json!(format!(
            "```python\n{before}{header}{indent}assert Box(20, 10).area() == 200\n{after}\n```"
        ));
    } else {
        let calls = TargetTest::of_prompt(prompt).script(model, turn(&body));
        let call = |(at, (name, arguments)): (usize, &(&str, Value))| {
            let function = json!({"name": name, "arguments": arguments.to_string()});
            let id = format!("call-{}-{at}", turn(&body));
            json!({"id": id, "type": "function", "function": function})
        };
        if !calls.is_empty() {
            message["tool_calls"] = calls.iter().enumerate().map(call).collect();
            finish = "tool_calls";
        }
    }
    let tokens = if model == "wasteful" { 30_000 } else { 1_000 };
    Response::json(json!({
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": {"prompt_tokens": tokens, "completion_tokens": 50, "total_tokens": tokens + 50},
    }))
    .with("content-type", "application/json")
}

impl CloverBench {
    /// Builds a benchmark and returns two problems of task III.
    fn with_block_problems() -> (CloverBench, Vec<Value>) {
        let bench = CloverBench::new();
        std::fs::write(bench.path("shapes/tests/test_more.py"), MORE_TESTS).unwrap();
        git(&bench.path("shapes"), &["add", "-A"]);
        git(&bench.path("shapes"), &["commit", "-qm", "More tests"]);
        assert_exit_code(&bench.build("problems", &["--tasks", "3"]), 0);
        let problems = bench.lines("problems/problems.jsonl");
        assert_eq!(problems.len(), 2, "{problems:?}");
        (bench, problems)
    }
}

const TASK: [&str; 4] = ["--tasks", "3", "--context", "64k"];

fn agent_requests(server: &MockServer, model: &str) -> Vec<Value> {
    let bodies = server.requests(|request| serde_json::from_str::<Value>(&request.body).unwrap());
    let is_agent_request = |body: &Value| !body["tools"].is_null() && str(body, "model") == model;
    bodies.into_iter().filter(is_agent_request).collect()
}

#[test]
fn agents_and_single_calls_share_report() {
    let (bench, problems) = CloverBench::with_block_problems();
    let server = MockServer::start_parallel(move |request| answer(request, &problems));
    let models = ["--models", "good,lazy,idle,wasteful"];
    let approaches = ["--approach", "single-call,cover"];
    let words = [&TASK[..], &models, &approaches].concat();
    let output = bench.eval(&server, &words);
    assert_exit_code(&output, 0);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = |system: &str| {
        let mut rows = report["rows"].as_array().unwrap().iter();
        rows.find(|row| row["system"] == system).unwrap().clone()
    };
    let figures = |system: &str| {
        let row = row(system);
        let rate = |name: &str| row[name]["rate"].as_f64().unwrap();
        let cost = |name: &str| row["cost"][name].as_f64().unwrap();
        (
            rate("executed"),
            rate("success"),
            cost("calls"),
            cost("tokens"),
        )
    };
    // Only the coverage feedback differs: the agent's first test is that of the single call.
    assert_eq!(figures("single-call@good"), (1.0, 0.0, 1.0, 1_050.0));
    assert_eq!(figures("cover@good"), (1.0, 1.0, 3.0, 3_150.0));
    // A test that is not submitted is judged as the agent left it.
    assert_eq!(figures("cover@lazy"), (1.0, 1.0, 4.0, 4_200.0));
    assert_eq!(figures("cover@idle"), (0.0, 0.0, 3.0, 3_150.0));
    assert_eq!(row("cover@idle")["classes"], json!({"no_reply": 2}));
    // A third call would not fit into 64,000 tokens.
    assert_eq!(figures("cover@wasteful"), (1.0, 0.0, 2.0, 60_100.0));
    let pair =
        |pair: &&Value| pair["first"] == "cover@good" && pair["second"] == "single-call@good";
    let pair = report["pairs"]
        .as_array()
        .unwrap()
        .iter()
        .find(pair)
        .unwrap();
    assert_eq!(pair["compared"]["only_first"], json!(2), "{pair}");

    // Golden tests cannot be found in any file, but the shown code can.
    let requests = agent_requests(&server, "good");
    let last = requests.iter().filter(|body| turn(body) == 2);
    let last_requests: Vec<String> = last.map(Value::to_string).collect();
    assert_eq!(last_requests.len(), 2);
    for last_request in &last_requests {
        assert!(
            last_request.contains("found what is shown in"),
            "{last_request}"
        );
        assert!(
            !last_request.contains("found what is hidden in"),
            "{last_request}"
        );
        assert!(
            !last_request.contains("ended by the deadline"),
            "{last_request}"
        );
        assert!(last_request.contains("Still missed"), "{last_request}");
    }
    let bodies = server.requests(|request| request.body.clone());
    for hidden in HIDDEN {
        let leak = bodies.iter().find(|body| body.contains(hidden));
        assert_eq!(leak, None, "{hidden}");
    }

    // A second evaluation makes no calls.
    assert_exit_code(&bench.eval(&server, &words), 0);
    assert_eq!(server.requests(|_| ()).len(), bodies.len());

    let error_text = |words: &[&str]| {
        let output: Output = bench.eval(&server, words);
        assert_exit_code(&output, 2);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let other_task = error_text(&["--models", "good", "--approach", "cover"]);
    assert!(other_task.contains("add --tasks 3"), "{other_task}");
    let unknown = error_text(&[&TASK[..], &["--models", "good", "--approach", "otter"]].concat());
    assert!(unknown.contains("single-call and cover"), "{unknown}");
}

#[test]
fn killed_evaluation_repeats_only_call_in_flight() {
    let (bench, problems) = CloverBench::with_block_problems();
    let begun = Arc::new(AtomicUsize::new(0));
    let counter = begun.clone();
    let server = MockServer::start_parallel(move |request| {
        // The second call hangs until the process is killed.
        if counter.fetch_add(1, Ordering::SeqCst) == 1 {
            std::thread::sleep(Duration::from_secs(600));
        }
        answer(request, &problems)
    });
    let agent = ["--models", "killed", "--approach", "cover", "--limit", "1"];
    let words = [&TASK[..], &agent].concat();
    let mut command: Command = bench.evaluation(&server, &words);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while begun.load(Ordering::SeqCst) < 2 {
        assert!(
            started.elapsed() < Duration::from_secs(300),
            "it never asked twice"
        );
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let output = bench.eval(&server, &words);
    assert_exit_code(&output, 0);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["rows"][0]["success"]["rate"], json!(1.0), "{report}");
    assert_eq!(report["rows"][0]["cost"]["calls"], json!(2.0), "{report}");
    let turns: Vec<usize> = agent_requests(&server, "killed").iter().map(turn).collect();
    assert_eq!(turns, [0, 1], "the first call was answered once");
    assert_eq!(begun.load(Ordering::SeqCst), 3);
}
