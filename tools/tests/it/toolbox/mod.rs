//! Tests that drive the built toolbox over its stdio, as a host does.

mod collected;
mod runs;
mod submit;
mod try_fix;
mod warm;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::project::Project;

const TOOLBOX: &str = env!("CARGO_BIN_EXE_toolbox");

/// A client that writes and reads JSON lines.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next: u64,
}

impl Client {
    pub(crate) fn start(project: &Project) -> Self {
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

    pub(crate) fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub(crate) fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
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

    /// Returns the text and data of a call, which must not be refused.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> (String, Value) {
        let answer = self.raw(tool, arguments);
        assert_ne!(answer["result"]["isError"], true, "{answer:#}");
        (text(&answer), answer["result"]["structuredContent"].clone())
    }

    pub(crate) fn refused(&mut self, tool: &str, arguments: &Value) -> String {
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
fn tool_list_excludes_host_tools() {
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
    assert!(run_pytest["description"].is_string());
    assert!(client.close());
}

#[test]
fn handshake_reports_version_and_digest() {
    let project = project();
    let mut client = Client::start(&project);
    let (_, data) = client.call("handshake", &json!({}));
    assert_eq!(data["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(data["digest"], testwright_tools::DIGEST);
    assert_eq!(data["digest"].as_str().unwrap().len(), 64);
}

#[test]
fn pings_are_answered_during_calls() {
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
    let (process_count, _) = client.call(
        "shell",
        &json!({ "command": "grep -l '^sleep.1000' /proc/*/cmdline 2>/dev/null | wc -l" }),
    );
    assert_eq!(process_count, "0");
}

#[test]
fn closing_stream_ends_running_programs() {
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
        let output = Command::new("pgrep").args(["-f", &mark]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    // A killed process stays visible until the kernel reaps it.
    for _ in 0..100 {
        if running().is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(running(), "");
}

#[test]
fn unknown_names_are_refused_with_nearest() {
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
fn programs_cannot_reach_secrets_or_protocol() {
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
fn run_pytest_is_repeatable() {
    let project = project();
    let mut client = Client::start(&project);
    write(&project, "tests/test_a.py", &format!("{TESTS}{NEW}"));
    let (first, data) = client.call("run_pytest", &json!({}));
    insta::assert_snapshot!(first, @r"
    1 test: 1 failed

    FAILED tests/test_a.py::test_zero
      an assertion of the test did not hold
      AssertionError: assert 1 == 0
       +  where 1 = <function half at 0x...1>(0)
       +    where <function half at 0x...1> = pkg.half
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
fn run_pytest_explains_empty_runs() {
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
fn state_moves_to_fresh_workspace() {
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
fn describe_counts_files() {
    let project = project();
    let (text, data) = Client::start(&project).call("describe", &json!({}));
    assert!(text.contains("1 test file, in tests/ (1)."), "{text}");
    assert!(data["python"].as_str().unwrap().starts_with("3."));
    assert!(data["pytest"].is_string());
}

#[test]
fn manual_calls_have_exit_codes() {
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
fn trivial_calls_take_milliseconds() {
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
