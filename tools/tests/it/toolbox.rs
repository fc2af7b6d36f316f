//! The built toolbox, driven over its stdio as a host does.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::project::Project;

const TOOLBOX: &str = env!("CARGO_BIN_EXE_toolbox");

/// A client that writes and reads JSON lines.
pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next: u64,
}

impl Client {
    pub fn start(project: &Project) -> Self {
        let mut child = Command::new(TOOLBOX)
            .args([
                "serve",
                "--config",
                &serde_json::to_string(&project.config).unwrap(),
            ])
            .env("SECRET_TOKEN", "hunter2")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut client = Client {
            child,
            stdin,
            stdout,
            next: 0,
        };
        let hello = client.request(
            "initialize",
            &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "0" } }),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "testwright-toolbox");
        client.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    pub fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
    }

    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    fn raw(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        )
    }

    /// Text and data of a call that is not refused.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> (String, Value) {
        let answer = self.raw(tool, arguments);
        assert_ne!(answer["result"]["isError"], true, "{answer:#}");
        (text(&answer), answer["result"]["structuredContent"].clone())
    }

    pub fn refused(&mut self, tool: &str, arguments: &Value) -> String {
        let answer = self.raw(tool, arguments);
        assert_eq!(answer["result"]["isError"], true, "{answer:#}");
        text(&answer)
    }

    /// Closes stdin and waits.
    fn close(mut self) -> bool {
        self.stdin = None;
        self.child.wait().unwrap().success()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(answer: &Value) -> String {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer:#}"))
        .to_owned()
}

const PKG: &str = "def half(n):\n    return n // 2 if n > 0 else 1\n";
const TESTS: &str = "import pkg\n\ndef test_old():\n    assert pkg.half(4) == 2\n";
const NEW: &str = "\ndef test_zero():\n    assert pkg.half(0) == 0\n";

fn project() -> Project {
    Project::new(&[("pkg/__init__.py", PKG), ("tests/test_a.py", TESTS)])
}

fn write(project: &Project, path: &str, content: &str) {
    let path = project.root().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

#[test]
fn lists_tools_with_schemas_and_leaves_out_those_of_the_host() {
    let project = project();
    let mut client = Client::start(&project);
    let answer = client.request("tools/list", &json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|t| t["name"].as_str().unwrap()).collect();
    for name in ["run_pytest", "run_python", "try_fix", "shell", "submit"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    assert!(!names.contains(&"handshake") && !names.contains(&"restore"));
    let run_pytest = tools.iter().find(|t| t["name"] == "run_pytest").unwrap();
    assert_eq!(run_pytest["inputSchema"]["type"], "object");
    assert!(run_pytest["inputSchema"]["properties"]["tests"]["description"].is_string());
    assert!(client.close());
}

#[test]
fn the_handshake_tells_version_and_digest() {
    let project = project();
    let mut client = Client::start(&project);
    let (_, data) = client.call("handshake", &json!({}));
    let digest: String = Sha256::digest(std::fs::read(TOOLBOX).unwrap())
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    assert_eq!(
        data,
        json!({ "version": env!("CARGO_PKG_VERSION"), "digest": digest })
    );
}

#[test]
fn pings_are_answered_while_a_tool_runs_and_the_deadline_ends_it() {
    let project = project();
    let mut client = Client::start(&project);
    let call = client.send(
        "tools/call",
        &json!({
            "name": "shell",
            "arguments": { "command": "echo begun; setsid sleep 1000 & sleep 1000" },
            "_meta": { "testwright/deadline_ms": 1500 },
        }),
    );
    let ping = client.send("ping", &json!({}));
    assert_eq!(client.receive()["id"], ping);
    let answer = client.receive();
    assert_eq!(answer["id"], call);
    assert!(
        text(&answer).starts_with("begun\n(ended by the deadline"),
        "{answer}"
    );
    assert_eq!(answer["result"]["structuredContent"]["timed_out"], true);
    let (left, _) = client.call(
        "shell",
        &json!({ "command": "grep -l '^sleep.1000' /proc/*/cmdline 2>/dev/null | wc -l" }),
    );
    assert_eq!(left, "0");
}

#[test]
fn closing_the_stream_ends_what_runs() {
    let project = project();
    let mut client = Client::start(&project);
    let mark = format!("sleep 98{}", std::process::id());
    client.send(
        "tools/call",
        &json!({ "name": "shell", "arguments": { "command": format!("touch begun; setsid {mark} & {mark}") } }),
    );
    while !project.root().join("begun").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    client.close();
    let running = || {
        let found = Command::new("pgrep").args(["-f", &mark]).output().unwrap();
        String::from_utf8_lossy(&found.stdout).into_owned()
    };
    // A killed process is seen until the kernel comes round to it.
    for _ in 0..100 {
        if running().is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(running(), "");
}

#[test]
fn unknown_tools_and_bad_arguments_are_refused_with_the_nearest() {
    let project = project();
    let mut client = Client::start(&project);
    assert!(
        client
            .refused("run_pytes", &json!({}))
            .contains("run_pytest")
    );
    assert!(
        client
            .refused("run_pytest", &json!({ "keywrd": "x" }))
            .contains("keyword")
    );
    assert!(
        client
            .refused("run_pytest", &json!({}))
            .contains("No test was added")
    );
    assert!(
        client
            .refused("run_pytest", &json!({ "tests": ["../x.py"] }))
            .contains("..")
    );
}

#[test]
fn programs_inherit_no_secrets_and_cannot_reach_the_protocol() {
    let project = project();
    let mut client = Client::start(&project);
    let (text, data) = client.call(
        "run_python",
        &json!({ "code": "import os, pkg\nprint(sorted(os.environ))\nprint(pkg.half(4))" }),
    );
    assert!(
        !text.contains("SECRET") && text.contains("'PATH'"),
        "{text}"
    );
    assert!(text.ends_with("\n2"), "{text}");
    assert_eq!(
        (&data["exit_code"], &data["stderr"]),
        (&json!(0), &json!(""))
    );
    let (text, _) = client.call(
        "run_python",
        &json!({ "code": "print('x')\nopen('/dev/tty')" }),
    );
    assert!(text.contains("File \"snippet.py\", line 2"), "{text}");
    assert!(text.ends_with("(exit status 1)"), "{text}");
    let (text, _) = client.call(
        "run_python",
        &json!({ "code": "print('x')\nwhile 1: pass", "timeout": 1 }),
    );
    assert!(text.starts_with("x\n(ended by the deadline"), "{text}");
}

#[test]
fn run_pytest_takes_the_contributed_tests_and_answers_the_same_twice() {
    let project = project();
    let mut client = Client::start(&project);
    write(&project, "tests/test_a.py", &format!("{TESTS}{NEW}"));
    let (first, data) = client.call("run_pytest", &json!({}));
    insta::assert_snapshot!(first, @r"
    1 test: 1 failed

    FAILED tests/test_a.py::test_zero
      an assertion of the test did not hold
      AssertionError: assert 1 == 0
       +  where 1 = <function half at 0x...>(0)
       +    where <function half at 0x...> = pkg.half
        [test] tests/test_a.py:7 in test_zero: assert pkg.half(0) == 0
    ");
    assert_eq!(data["tests"][0]["outcome"], "failed");
    assert_eq!(first, client.call("run_pytest", &json!({})).0);
    let (text, _) = client.call(
        "run_pytest",
        &json!({ "tests": ["tests/test_a.py::test_zro", "./tests/test_a.py::test_old"] }),
    );
    insta::assert_snapshot!(text, @r"
    1 test: 1 passed, 1 not found

    passed tests/test_a.py::test_old
    not found: tests/test_a.py::test_zro
    nearest to tests/test_a.py::test_zro: tests/test_a.py::test_zero, tests/test_a.py::test_old
    ");
}

#[test]
fn run_pytest_says_why_nothing_ran() {
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        (
            "tests/test_a.py",
            "import pytest\npytest.importorskip('no_such_thing')\ndef test_a(): pass\n",
        ),
        (
            "tests/test_b.py",
            "import pytest\n@pytest.mark.skip(reason='slow today')\ndef test_b(): pass\ndef test_c():\n    pytest.skip('not here')\n",
        ),
    ]);
    let mut client = Client::start(&project);
    let tests =
        json!({ "tests": ["tests/test_a.py::test_a", "tests/test_b.py", "pkg", "nope.py"] });
    let (text, _) = client.call("run_pytest", &tests);
    assert_eq!(
        text,
        "3 tests: 3 skipped, 2 not found\n\nskipped tests/test_b.py::test_b (slow today)\nskipped tests/test_b.py::test_c (not here)\n\
         skipped tests/test_a.py::test_a (could not import 'no_such_thing': No module named 'no_such_thing')\n\
         not found: pkg\nnot found: nope.py\npkg is there, but pytest collects no tests from it"
    );
}

#[test]
fn try_fix_runs_the_tests_on_the_fixed_code() {
    let project = project();
    let mut client = Client::start(&project);
    write(&project, "tests/test_a.py", &format!("{TESTS}{NEW}"));
    let edit = |old: &str, new: &str| json!({ "edits": [{ "path": "pkg/__init__.py", "old": old, "new": new }] });
    assert!(
        client
            .refused("try_fix", &edit("n > 1", "n >= 0"))
            .contains("    2     return n // 2 if n > 0 else 1")
    );
    assert!(
        client
            .refused("try_fix", &edit("n > 0", "n >"))
            .contains("does not parse")
    );
    let test = json!({ "edits": [{ "path": "tests/test_a.py", "old": "== 0", "new": "== 1" }] });
    assert!(client.refused("try_fix", &test).contains("is test code"));
    let (text, _) = client.call("run_pytest", &json!({}));
    assert!(
        text.contains("1 failed"),
        "refused edits left something: {text}"
    );
    let (text, data) = client.call("try_fix", &edit("n > 0", "n >= 0"));
    assert!(
        text.starts_with("The test that you added or changed passes with this fix."),
        "{text}"
    );
    assert_eq!(data["report"]["tests"][0]["outcome"], "passed");
    assert!(
        data["patch"]
            .as_str()
            .unwrap()
            .contains("+    return n // 2 if n >= 0 else 1")
    );
    assert!(!data["patch"].as_str().unwrap().contains("test_zero"));
}

#[test]
fn try_fix_tells_which_neighbours_the_fix_breaks() {
    let old = "import pkg\ndef test_one(): assert pkg.half(1) == 0\ndef test_red(): assert pkg.half(0) == 7\ndef test_green(): assert pkg.half(4) == 2\n";
    let project = Project::new(&[("pkg/__init__.py", PKG), ("tests/test_a.py", old)]);
    let mut client = Client::start(&project);
    write(&project, "tests/test_a.py", &format!("{old}{NEW}"));
    let edits = json!({ "edits": [
        { "path": "pkg/__init__.py", "old": "n // 2 if n > 0 else 1", "new": "(n + 1) // 2" },
        { "path": "pkg/new.py", "new": "x = 1\n" },
    ] });
    let (text, data) = client.call("try_fix", &edits);
    insta::assert_snapshot!(text, @r"
    The test that you added or changed passes with this fix.
    2 of 3 other tests of the same files fail with this fix: 1 passes without it, 1 also fails without it. The fix breaks something, or the old tests ask for what the issue calls wrong.

    With the fix: 1 test: 1 passed

    These pass without the fix:

    FAILED tests/test_a.py::test_one
      an assertion of the test did not hold
      AssertionError: assert 1 == 0
       +  where 1 = <function half at 0x...>(1)
       +    where <function half at 0x...> = pkg.half
        [test] tests/test_a.py:2 in test_one: def test_one(): assert pkg.half(1) == 0

    These fail without the fix too:
    tests/test_a.py::test_red
    ");
    assert_eq!(data["report"]["tests"].as_array().unwrap().len(), 1);
    assert_eq!(data["neighbours"]["good"], 1);
    assert!(data["patch"].as_str().unwrap().contains("pkg/new.py"));
}

#[test]
fn try_fix_runs_the_tests_that_count_before_a_neighbour_that_dies() {
    let old = "import pkg, os\ndef test_dies(): os._exit(3)\ndef test_green(): pass\n";
    let project = Project::new(&[("pkg/__init__.py", PKG), ("tests/test_a.py", old)]);
    let mut client = Client::start(&project);
    write(&project, "tests/test_a.py", &format!("{old}{NEW}"));
    let edit = json!({ "edits": [{ "path": "pkg/__init__.py", "old": "n > 0", "new": "n >= 0" }] });
    let (text, _) = client.call("try_fix", &edit);
    insta::assert_snapshot!(text, @r"
    The test that you added or changed passes with this fix.
    1 other test of the same files fails with this fix: 1 also fails without it.
    Not all of the other tests of the same files ran before pytest ended.

    With the fix: 1 test: 1 passed

    These fail without the fix too:
    tests/test_a.py::test_dies
    ");
}

#[test]
fn try_fix_does_not_blame_the_fix_for_what_the_others_leave_behind() {
    let old = "\
import pkg
LEFT = []
def test_leaves(): LEFT.append(1)
def test_finds(): assert not LEFT
";
    let project = Project::new(&[("pkg/__init__.py", PKG), ("tests/test_a.py", old)]);
    let mut client = Client::start(&project);
    write(&project, "tests/test_a.py", &format!("{old}{NEW}"));
    let edit = json!({ "edits": [{ "path": "pkg/__init__.py", "old": "n > 0", "new": "n >= 0" }] });
    let (text, _) = client.call("try_fix", &edit);
    insta::assert_snapshot!(text, @r"
    The test that you added or changed passes with this fix.
    1 of 2 other tests of the same files fails with this fix: 1 fails only among the others.

    With the fix: 1 test: 1 passed

    These fail only among the others, and pass without them:
    tests/test_a.py::test_finds
    ");
}

#[test]
fn try_fix_counts_all_the_tests_that_were_named() {
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        ("tests/test_a.py", TESTS),
        ("tests/b/test_b.py", "def test_named(): assert 0\n"),
    ]);
    let mut client = Client::start(&project);
    write(&project, "tests/test_a.py", &format!("{TESTS}{NEW}"));
    let (text, data) = client.call(
        "try_fix",
        &json!({
            "edits": [{ "path": "pkg/__init__.py", "old": "n > 0", "new": "n >= 0" }],
            "tests": ["tests/test_a.py::test_zero", "tests/b", "tests/gone.py::test_x"],
        }),
    );
    assert!(
        text.starts_with(
            "1 of the 3 tests that you named pass with this fix.\nThe other test of the same files does not fail."
        ),
        "{text}"
    );
    assert!(
        text.contains("FAILED tests/b/test_b.py::test_named"),
        "{text}"
    );
    assert_eq!(data["report"]["tests"].as_array().unwrap().len(), 2);
    assert_eq!(
        data["report"]["not_found"],
        json!(["tests/gone.py::test_x"])
    );
}

#[test]
fn try_fix_says_why_a_test_did_not_run() {
    let ini = "[pytest]\naddopts = -m \"not slow\"\nmarkers =\n    slow: takes long\n";
    let project = Project::new(&[
        ("tox.ini", ini),
        ("pkg/__init__.py", PKG),
        ("tests/test_a.py", TESTS),
    ]);
    let mut client = Client::start(&project);
    let slow = "\nimport pytest\n@pytest.mark.slow\ndef test_slow(): pass\n";
    write(&project, "tests/test_a.py", &format!("{TESTS}{slow}"));
    let edit = json!({ "edits": [{ "path": "pkg/__init__.py", "old": "n > 0", "new": "n >= 0" }] });
    let (text, _) = client.call("try_fix", &edit);
    insta::assert_snapshot!(text, @r"
    None of the tests that you added or changed ran with this fix.
    The other test of the same files does not fail.

    With the fix: 1 test: 1 skipped

    skipped tests/test_a.py::test_slow (deselected by the options of this run or of the repository)
    ");
}

#[test]
fn submit_keeps_tests_drops_the_rest_and_reruns() {
    let project = project();
    let mut client = Client::start(&project);
    write(&project, "tests/test_a.py", &format!("{TESTS}{NEW}"));
    write(&project, "tests/data/x.txt", "data\n");
    write(&project, "pkg/__init__.py", &PKG.replace("n > 0", "n >= 0"));
    write(&project, "reproduce.py", "print(1)\n");
    write(&project, "tests/conftest.py", "import pytest\n");
    let (text, data) = client.call("submit", &json!({ "reason": "half of zero is zero" }));
    let files: Vec<(&str, bool)> = data["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| (f["path"].as_str().unwrap(), f["kept"].as_bool().unwrap()))
        .collect();
    let expected = [
        ("pkg/__init__.py", false),
        ("reproduce.py", false),
        ("tests/conftest.py", false),
        ("tests/data/x.txt", true),
        ("tests/test_a.py", true),
    ];
    assert_eq!(files, expected);
    assert_eq!(
        std::fs::read_to_string(project.root().join("pkg/__init__.py")).unwrap(),
        PKG
    );
    assert!(!project.root().join("reproduce.py").exists());
    assert!(
        project.root().join("tests/data/x.txt").exists(),
        "kept files are back after the run at the base"
    );
    let patch = data["patch"].as_str().unwrap();
    assert!(
        patch.contains("+def test_zero") && patch.contains("x.txt") && !patch.contains("reproduce")
    );
    assert_eq!(data["problems"][0]["kind"], "conftest");
    assert_eq!(data["contributed"][0]["id"], "tests/test_a.py::test_zero");
    assert_eq!(data["before"], Value::Null, "no existing test failed");
    let old = data["old"]["tests"].as_array().unwrap();
    assert_eq!(old.len(), 2);
    assert_eq!(old[1]["executed"], json!(["pkg/__init__.py"]));
    let reruns = data["reruns"].as_array().unwrap();
    assert_eq!(
        reruns
            .iter()
            .map(|r| r["order"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["given", "reversed", "alone"]
    );
    for rerun in reruns {
        assert_eq!(rerun["report"]["tests"][0]["outcome"], "failed");
    }
    assert!(
        text.contains("test_zero fails: AssertionError: assert 1 == 0 (again in 3 of 3 reruns)"),
        "{text}"
    );
    // The facts have the documented shape.
    serde_json::from_value::<testwright_tools::tools::submission::Submission>(data).unwrap();
}

#[test]
fn submit_tells_how_existing_tests_did_before_if_they_do_not_pass_now() {
    let broken = "\ndef test_red():\n    assert 0\n";
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        (
            "tests/test_a.py",
            &format!("{TESTS}{broken}\nclass TestC:\n    def test_hidden(self): pass\n"),
        ),
    ]);
    let mut client = Client::start(&project);
    let outcomes = |data: &Value| -> Vec<(String, String)> {
        let tests = data["before"]["tests"].as_array().unwrap().iter();
        let word = |v: &Value| v.as_str().unwrap().to_owned();
        tests
            .map(|t| {
                (
                    word(&t["id"]).replace("tests/test_a.py::", ""),
                    word(&t["outcome"]),
                )
            })
            .collect()
    };
    let now = std::fs::read_to_string(project.root().join("tests/test_a.py")).unwrap();
    write(&project, "tests/test_a.py", &format!("{now}{NEW}"));
    let (_, data) = client.call("submit", &json!({}));
    assert_eq!(
        outcomes(&data),
        [("test_red".to_owned(), "failed".to_owned())]
    );
    // `pkg` is gone from under test_old, and the second class of the name hides the first.
    let patched = format!(
        "{}{NEW}\nclass TestC:\n    def test_new(self): pass\n\ndel pkg\n",
        now
    );
    write(&project, "tests/test_a.py", &patched);
    let (_, data) = client.call("submit", &json!({}));
    let mut before = outcomes(&data);
    before.sort();
    let expected = [("test_old", "passed"), ("test_red", "failed")];
    assert_eq!(
        before,
        expected.map(|(id, o)| (id.to_owned(), o.to_owned())),
        "{data:#}"
    );
    assert_eq!(data["problems"][0]["kind"], "deleted_tests", "{data:#}");
    assert_eq!(
        std::fs::read_to_string(project.root().join("tests/test_a.py")).unwrap(),
        patched
    );
}

#[test]
fn submit_names_static_problems() {
    let project = project();
    let mut client = Client::start(&project);
    let kinds = |data: &Value| -> Vec<String> {
        data["problems"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p["kind"].as_str().unwrap().to_owned())
            .collect()
    };
    let (_, data) = client.call("submit", &json!({}));
    assert_eq!(kinds(&data), ["nothing_contributed"]);
    assert_eq!(
        (
            data["patch"].as_str(),
            data["reruns"].as_array().unwrap().len()
        ),
        (Some(""), 0)
    );
    write(
        &project,
        "tests/test_a.py",
        "import pkg\n\n@__import__('pytest').mark.x\ndef test_b(:\n",
    );
    let (_, data) = client.call("submit", &json!({}));
    assert!(kinds(&data).contains(&"syntax".to_owned()), "{data:#}");
    write(
        &project,
        "tests/test_a.py",
        "import pytest\n\n@pytest.mark.xfail\ndef test_b():\n    assert 0\n",
    );
    let (_, data) = client.call("submit", &json!({}));
    assert_eq!(kinds(&data), ["deleted_tests", "vacuous"]);
    std::fs::remove_file(project.root().join("tests/test_a.py")).unwrap();
    let (_, data) = client.call("submit", &json!({}));
    assert_eq!(kinds(&data), ["deleted_tests", "nothing_contributed"]);
    assert_eq!(
        std::fs::read_to_string(project.root().join("tests/test_a.py")).unwrap(),
        TESTS
    );
}

#[test]
fn a_flaky_test_shows_in_the_reruns() {
    let project = project();
    let mut client = Client::start(&project);
    write(
        &project,
        "tests/test_new.py",
        "import os, pkg\ndef test_seed():\n    pkg.half(1)\n    assert os.environ['PYTHONHASHSEED'] == '2'\n",
    );
    let (text, data) = client.call("submit", &json!({}));
    assert_eq!(data["before"], Value::Null);
    assert!(text.contains("(again in 2 of 3 reruns)"), "{text}");
}

#[test]
fn state_goes_out_and_into_a_fresh_workspace() {
    let one = project();
    let mut first = Client::start(&one);
    write(&one, "tests/test_b.py", "def test_x(): pass\n");
    std::fs::remove_file(one.root().join("pkg/__init__.py")).unwrap();
    let (_, state) = first.call("changes", &json!({}));
    let other = project();
    let mut client = Client::start(&other);
    write(&other, "junk.py", "x\n");
    client.call("restore", &state);
    assert_eq!(client.call("changes", &json!({})).1, state);
    assert!(
        !other.root().join("junk.py").exists() && !other.root().join("pkg/__init__.py").exists()
    );
    client.call("restore", &json!({ "files": [] }));
    assert_eq!(client.call("changes", &json!({})).1, json!({ "files": [] }));
}

#[test]
fn describe_counts_what_there_is() {
    let project = project();
    let (text, data) = Client::start(&project).call("describe", &json!({}));
    assert!(text.contains("1 test files, in tests/ (1)."), "{text}");
    assert!(data["python"].as_str().unwrap().starts_with("3."));
    assert!(data["pytest"].is_string());
}

#[test]
fn a_call_by_hand_and_its_exit_codes() {
    let project = project();
    let config = serde_json::to_string(&project.config).unwrap();
    let run = |args: &[&str]| {
        let output = Command::new(TOOLBOX).args(args).output().unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    assert_eq!(
        run(&["--version"]),
        (0, format!("toolbox {}\n", env!("CARGO_PKG_VERSION")))
    );
    assert_eq!(
        run(&[
            "call",
            "shell",
            r#"{"command": "pwd; cat"}"#,
            "--config",
            &config
        ])
        .0,
        0
    );
    assert_eq!(run(&["call", "run_pytest", "{}", "--config", &config]).0, 1);
    assert_eq!(run(&["call", "shell", "{}"]).0, 2);
    let broken = config.replace("base.tar", "no.tar");
    assert_eq!(
        run(&[
            "call",
            "shell",
            r#"{"command": "pwd"}"#,
            "--config",
            &broken
        ])
        .0,
        3
    );
}

#[test]
fn a_trivial_call_is_a_matter_of_milliseconds() {
    let project = project();
    let mut client = Client::start(&project);
    client.call("changes", &json!({}));
    let mut times: Vec<_> = (0..50)
        .map(|_| {
            let started = Instant::now();
            client.request("ping", &json!({}));
            let ping = started.elapsed();
            let started = Instant::now();
            client.call("changes", &json!({}));
            (started.elapsed(), ping)
        })
        .collect();
    times.sort();
    eprintln!("p50 of a call, and of its ping: {:?}", times[25]);
}
