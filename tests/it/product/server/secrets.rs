//! Secrets of a server never appear. The tests plant secrets, and search all files and responses for them.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{ServerProcess, databases, issue, slow_issue};
use crate::support::program::TestDir;
use crate::support::server::{MockServer, Request, Response};

const KEY: &str = "sk-planted-Key0a1b2c3d4e5f";
const DATABASE_PASSWORD: &str = "planted-Database7a8b9c";
const GITHUB_TOKEN: &str = "ghp_plantedGithub1d2e3f";
const OTHER: &str = "planted-Other4f5e6d";
const COLLECTOR_TOKEN: &str = "planted-Collector3c4d5e";
const PLANTED: [&str; 5] = [KEY, DATABASE_PASSWORD, GITHUB_TOKEN, OTHER, COLLECTOR_TOKEN];

/// Returns the planted secrets that appear in a text.
fn leaks(text: &[u8]) -> Vec<&'static str> {
    let text = String::from_utf8_lossy(text);
    PLANTED
        .into_iter()
        .filter(|planted| text.contains(planted))
        .collect()
}

fn assert_clean(what: &str, text: &[u8]) {
    let leaked = leaks(text);
    if leaked.is_empty() {
        return;
    }
    let text = String::from_utf8_lossy(text);
    let line = text.lines().find(|line| !leaks(line.as_bytes()).is_empty());
    panic!("{what} has {leaked:?}: {line:?}");
}

/// Checks every file below a folder. Returns their number.
fn assert_clean_folder(folder: &Path) -> usize {
    let mut read = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            read += assert_clean_folder(&entry.path());
        } else if kind.is_file() {
            let bytes = std::fs::read(entry.path()).unwrap();
            assert_clean(&entry.path().display().to_string(), &bytes);
            read += 1;
        }
    }
    read
}

/// Starts a model service that rejects each call and quotes all that it received.
fn refusing_model() -> MockServer {
    MockServer::start(|request: &Request| {
        let sent: Vec<String> = request
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        let message = format!("incorrect API key provided: {KEY}; you sent {sent:?}");
        let mut response = Response::json(json!({"error": {"message": message, "code": KEY}}));
        response.status = 401;
        response
            .with("content-type", "application/json")
            .with("www-authenticate", format!("Bearer realm=\"{KEY}\""))
    })
}

/// Starts a collector of spans that rejects each request and quotes its authorization.
fn refusing_collector() -> MockServer {
    MockServer::start(|request: &Request| {
        let sent = request.header("authorization").unwrap_or_default();
        let mut response = Response::json(json!({"message": format!("you sent {sent}")}));
        response.status = 401;
        response.with("content-type", "application/json")
    })
}

/// Starts a model service that searches its sandbox for secrets, then gives up.
fn curious_model() -> MockServer {
    MockServer::start(|request: &Request| {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        let turn = messages.iter().filter(|m| m["role"] == "assistant").count();
        let code = "import os, glob; print(dict(os.environ))\n\
                    for path in glob.glob('/proc/*/environ'):\n    \
                        try: print(open(path, 'rb').read())\n    \
                        except OSError as error: print(error)\n";
        let function =
            json!({"name": "run_python", "arguments": json!({"code": code}).to_string()});
        let calls =
            json!([{"id": format!("call{turn}"), "type": "function", "function": function}]);
        let (message, finish) = match turn {
            0 => (
                json!({"role": "assistant", "tool_calls": calls}),
                "tool_calls",
            ),
            _ => (
                json!({"role": "assistant", "content": "I found nothing."}),
                "stop",
            ),
        };
        Response::json(json!({
            "choices": [{"index": 0, "finish_reason": finish, "message": message}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
        }))
        .with("content-type", "application/json")
    })
}

fn plant(command: &mut Command) {
    command
        .env("OPENAI_API_KEY", KEY)
        .env("GITHUB_TOKEN", GITHUB_TOKEN)
        .env("PLANTED_SECRET", OTHER)
        .env("TESTWRIGHT_LOG", "trace");
}

/// Starts a server with full logging, on a database with a password.
fn start(
    place: &TestDir,
    url: Option<&str>,
    model: Option<&MockServer>,
    collector: &MockServer,
    name: &str,
) -> ServerProcess {
    let mut command = place.testwright();
    plant(&mut command);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url);
    let headers = format!("authorization=Bearer%20{COLLECTOR_TOKEN}");
    command.env("OTEL_EXPORTER_OTLP_HEADERS", headers);
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]);
    command.arg(place.path(name));
    command.args(["--allow-repository", &crate::support::program::example("*")]);
    if let Some(url) = url {
        command.env("TESTWRIGHT_DATABASE", url);
    }
    if let Some(model) = model {
        command.env("TESTWRIGHT_MODEL_BASE_URL", format!("{}/v1", model.url));
    }
    let log = place.path(&format!("{name}.log"));
    command.stdout(File::create(place.path(&format!("{name}.out"))).unwrap());
    ServerProcess::logged(command, &log)
}

/// Checks everything that a client can read.
fn assert_clean_answers(daemon: &ServerProcess, runs: &[String]) {
    let mut paths: Vec<String> = [
        "/",
        "/new",
        "/settings",
        "/workers",
        "/metrics",
        "/v1/runs",
        "/v1/health",
        "/v1/ready",
        "/v1/workers",
        "/v1/openapi.json",
        "/nothing",
    ]
    .map(str::to_owned)
    .to_vec();
    for run in runs {
        for what in ["", "/events", "/patch", "/evidence", "/trajectory"] {
            paths.push(format!("/v1/runs/{run}{what}"));
        }
        paths.push(format!("/runs/{run}"));
    }
    for path in paths {
        let answer = format!("{:?}", daemon.client.get(&path));
        assert_clean(&path, answer.as_bytes());
    }
}

fn with_password(url: &str) -> String {
    url.replacen(
        "testwright@",
        &format!("testwright:{DATABASE_PASSWORD}@"),
        1,
    )
}

#[test]
fn planted_secrets_never_appear() {
    for database in databases::all() {
        let place = TestDir::new();
        let url = database.url.as_deref().map(with_password);
        let collector = refusing_collector();
        let mut log = 0;
        for (name, model, status) in [
            ("accepted", None, "accepted"),
            ("refusing", Some(refusing_model()), "infrastructure"),
            ("curious", Some(curious_model()), "nothing"),
        ] {
            let daemon = start(&place, url.as_deref(), model.as_ref(), &collector, name);
            let mut request = slow_issue();
            if model.is_none() {
                // This run must not call a service, although a key is set.
                request = issue();
                request["approach"] = json!("snippet");
            }
            let run = daemon.run(&request);
            daemon.wait_for(&run, status);
            let body = daemon.client.get(&format!("/v1/runs/{run}")).body;
            let is_echoed = body.contains("incorrect API key provided");
            assert_eq!(is_echoed, name == "refusing", "{body}");
            assert_clean_answers(&daemon, &[run]);
            if let Some(model) = &model {
                let keys = model.requests(|r| r.header("authorization").map(str::to_owned));
                assert!(!keys.is_empty(), "the model was asked");
                assert!(keys.iter().flatten().all(|key| key.contains(KEY)));
            }
            assert_eq!(daemon.terminate(), Some(0));
            log += std::fs::metadata(place.path(&format!("{name}.log")))
                .unwrap()
                .len();
        }
        let tokens = collector.requests(|r| r.header("authorization").map(str::to_owned));
        assert!(!tokens.is_empty(), "spans were sent");
        assert!(tokens.iter().flatten().all(|t| t.contains(COLLECTOR_TOKEN)));
        // The spans must not contain the other secrets either.
        let spans = collector.requests(|request| request.body.clone());
        assert_clean("spans", spans.concat().as_bytes());
        assert!(log > 10_000, "the log is one of all details");
        // This covers the logs and the data folders with the SQLite databases.
        assert!(assert_clean_folder(&place.path("")) > 6);
    }
}

#[test]
fn database_errors_omit_password() {
    let place = TestDir::new();
    let p = DATABASE_PASSWORD;
    let mut addresses = Vec::new();
    for url in [
        format!("postgres://user:{p}@127.0.0.1:1/none"),
        format!("postgres://user:{p}@127.0.0.1:port/none"),
        format!("postgres://user:{p}/none"),
        format!("postgres://127.0.0.1:1/none?user=u&password={p}"),
        format!("mysql://user:{p}@127.0.0.1/none"),
        format!("user:{p}@127.0.0.1"),
        p.to_owned(),
        format!("sqlite:/nowhere/x.db?password={p}"),
    ] {
        addresses.push(url);
    }
    // Each process waits a while for its database, so they run concurrently.
    std::thread::scope(|scope| {
        for url in &addresses {
            for command in ["serve", "worker"] {
                let place = &place;
                scope.spawn(move || assert_refused(place, command, url));
            }
        }
    });
}

fn assert_refused(place: &TestDir, command: &str, url: &str) {
    let mut program = place.testwright();
    plant(&mut program);
    program.args([command, "--data"]).arg(place.path("data"));
    let output = program.env("TESTWRIGHT_DATABASE", url).output().unwrap();
    assert_ne!(output.status.code(), Some(0), "{url}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("open the database"), "{url}: {stderr}");
    assert_clean(url, &output.stderr);
    assert_clean(url, &output.stdout);
}

#[test]
fn search_finds_planted_secrets() {
    let place = TestDir::new();
    std::fs::write(place.path("file"), format!("\0\u{1}{KEY}\n")).unwrap();
    let result = std::panic::catch_unwind(|| assert_clean_folder(&place.path("")));
    assert!(result.is_err());
}
