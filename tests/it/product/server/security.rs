//! Requests that try to exceed their permissions: read files of the server, reach other addresses of its services, or
//! make lists unreadable.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testwright_server::store::{NewMatrix, NewRun, Store};

use super::mcp_client::McpClient;
use super::{ServerProcess, databases, issue, stored_run};
use crate::support::program::{TestDir, example};
use crate::support::server::{MockServer, Request, Response};

/// A secret that no client may read.
const PLANTED: &str = "hunter2-password";

/// Returns spellings of a model's name that could slip past a check of its text.
fn spellings(name: &str) -> Vec<String> {
    let around = [
        " ", "\t", "\n", "\r\n", "\u{a0}", "\u{3000}", "\u{feff}", "\u{200b}", "\0", "\u{1b}[m",
    ];
    let before = around.map(|blank| format!("{blank}{name}"));
    let after = around.map(|blank| format!("{name}{blank}"));
    [&before[..], &after[..]].concat()
}

fn with(field: &str, value: impl Into<Value>) -> Value {
    let mut request = issue();
    request["approach"] = json!("testwright");
    request[field] = value.into();
    request
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn azure(place: &TestDir, server: &MockServer) -> ServerProcess {
    let mut command = place.testwright();
    command
        .env("TESTWRIGHT_MODEL_BASE_URL", format!("{}/below", server.url))
        .env("TESTWRIGHT_MODEL_AZURE_API_VERSION", "2024-10-21")
        .env("AZURE_OPENAI_API_KEY", "the-operators-key")
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--workers",
            "2",
            "--data",
        ])
        .arg(place.path("data"))
        .args(["--allow-repository", &example("*")]);
    ServerProcess::logged(command, &place.path("log"))
}

/// Returns everything that clients can read about a finished run.
fn everything_about(daemon: &ServerProcess, run: &str) -> String {
    let begun = Instant::now();
    while ["queued", "running"].contains(&daemon.status(run).as_str()) {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "the run does not end"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let api = [
        "",
        "/events",
        "/trajectory",
        "/artifacts/run.json",
        "/artifacts/trajectory.jsonl",
    ];
    let paths = api.map(|what| format!("/v1/runs/{run}{what}"));
    let paths = paths
        .into_iter()
        .chain([format!("/runs/{run}"), "/".to_owned()]);
    paths.map(|path| daemon.client.get(&path).body).collect()
}

/// Returns the peak memory of a process in bytes.
fn peak_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
    kilobytes.parse::<u64>().unwrap() << 10
}

#[tokio::test(flavor = "multi_thread")]
async fn recordings_are_refused_in_every_spelling() {
    let place = TestDir::new();
    std::fs::write(place.path("secret"), format!("\"{PLANTED}\"\n")).unwrap();
    let model = MockServer::start(|_| Response::status(500));
    let daemon = ServerProcess::start(&place, &databases::all()[0], Some(&model));
    let (client, own) = (&daemon.client, format!("http://{}", daemon.client.address));
    let mcp = McpClient::over_http(&daemon).await;
    let secret = place.path("secret").display().to_string();
    let names = ["replay:", "replay-by-order:"].map(|prefix| format!("{prefix}{secret}"));
    let spelled = names.iter().flat_map(|name| spellings(name));
    for name in names.iter().cloned().chain(spelled) {
        let made = client.post("/v1/runs", &with("model", name.clone()));
        assert_eq!(made.status, 422, "{name:?}: {made:?}");
        assert!(made.body.contains("`model`"), "{name:?}: {made:?}");
        let comparison =
            json!({"name": "n", "instances": [{}], "approaches": ["libro"], "models": [name]});
        let made = client.post("/v1/comparisons", &comparison);
        assert_eq!(made.status, 422, "{name:?}: {made:?}");
        assert!(made.body.contains("`models`"), "{name:?}: {made:?}");
        let form = format!(
            "issue=It+fails&repository={}&approach=testwright&model={}",
            encoded(&example("slugs")),
            encoded(&name)
        );
        let kind = ("content-type", "application/x-www-form-urlencoded");
        let made = client.send("POST", "/new", &[kind, ("origin", &own)], &form);
        assert_eq!(made.status, 422, "{name:?}: {made:?}");
        let refusal = mcp
            .refusal("write_failing_test", with("model", name.clone()))
            .await;
        assert!(refusal.contains("`model`"), "{name:?}: {refusal}");
    }
    assert_eq!(client.get("/v1/runs").json()["runs"], json!([]));
    // With another prefix it is a model name for the service, not a file.
    let run = daemon.run(&with("model", format!("openai/replay:{secret}")));
    client.send("POST", &format!("/v1/runs/{run}/cancel"), &[], "");
    assert!(!everything_about(&daemon, &run).contains(PLANTED));
}

/// An older version may have stored names that are rejected now.
#[tokio::test(flavor = "multi_thread")]
async fn stored_names_with_spaces_are_not_replayed() {
    let place = TestDir::new();
    std::fs::write(place.path("secret"), format!("\"{PLANTED}\"\n")).unwrap();
    let daemon = ServerProcess::start(&place, &databases::all()[0], None);
    let url = format!("sqlite:{}", place.path("data/testwright.db").display());
    let store = Store::open(&url).await.unwrap();
    let model = format!(" replay:{}", place.path("secret").display());
    let run = NewRun {
        request: with("model", model.clone()).to_string(),
        repository: example("slugs"),
        approach: "testwright".to_owned(),
        model,
        ..stored_run("local", "")
    };
    let run = store.add_run(&run).await.unwrap().0.id.to_string();
    // A worker must reject it too.
    let retried = daemon
        .client
        .send("POST", &format!("/v1/runs/{run}/retry"), &[], "");
    assert_eq!(retried.status, 202, "{retried:?}");
    let told = everything_about(&daemon, &run);
    assert!(told.contains("blank"), "{told}");
    assert!(!told.contains(PLANTED), "{told}");
}

#[test]
fn irregular_recordings_are_not_read() {
    let place = TestDir::new();
    let path = |name: &str| place.path(name);
    std::fs::write(path("text"), format!("\"{PLANTED}\"\n")).unwrap();
    std::fs::write(path("number"), "32768\n").unwrap();
    std::fs::write(
        path("field"),
        format!("{{\"model\": \"m\", \"digest\": [\"{PLANTED}\"]}}\n"),
    )
    .unwrap();
    std::fs::File::create(path("sparse"))
        .unwrap()
        .set_len(700 << 20)
        .unwrap();
    std::os::unix::fs::symlink(path("text"), path("link")).unwrap();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(path("pipe"))
            .status()
            .unwrap()
            .success()
    );
    let daemon = ServerProcess::start_with(
        &place,
        &databases::all()[0],
        None,
        "data",
        &["--allow-recordings", "--workers", "4"],
    );
    let before = peak_memory(daemon.child.id());
    let files = ["text", "number", "field", "sparse", "link", "pipe"]
        .map(|name| path(name).display().to_string());
    let files = files
        .into_iter()
        .chain(["/dev/zero", "/dev/tty", "/"].map(str::to_owned));
    let runs: Vec<(String, String)> = files
        .map(|file| (daemon.run(&with("model", format!("replay:{file}"))), file))
        .collect();
    for (run, file) in runs {
        let told = everything_about(&daemon, &run);
        assert_eq!(daemon.status(&run), "infrastructure", "{file}");
        for content in [PLANTED, "32768", "invalid type"] {
            assert!(!told.contains(content), "{file}: {told}");
        }
    }
    let grown = peak_memory(daemon.child.id()) - before;
    assert!(grown < 200 << 20, "{grown} bytes more");
}

#[test]
fn azure_deployments_are_one_path_segment() {
    let place = TestDir::new();
    let server = MockServer::start(|_| {
        let mut refused =
            Response::json(json!({"key": PLANTED, "error": {"message": "no such deployment"}}));
        refused.status = 400;
        refused.with("content-type", "application/json")
    });
    let daemon = azure(&place, &server);
    let hostile = [
        "../../../key/generate?models=all#",
        "..",
        ".",
        "a/b",
        "a%2f..",
        "a?b",
        "a#b",
        "a\\b",
        "ä",
        "a b",
        "a;b",
    ];
    for name in hostile {
        let made = daemon
            .client
            .post("/v1/runs", &with("model", format!("azure/{name}")));
        assert_eq!(made.status, 422, "{name}: {made:?}");
        // Every model is a deployment here, with any prefix. Only the worker detects that.
        let made = daemon.client.post("/v1/runs", &with("model", name));
        if made.status == 201 {
            let told = everything_about(&daemon, made.json()["id"].as_str().unwrap());
            assert!(told.contains("deployment"), "{name}: {told}");
        }
    }
    assert_eq!(server.requests(|request| request.path.clone()), [""; 0]);
    for name in ["azure/my-gpt.4_1", "my-gpt.4_1"] {
        let run = daemon.run(&with("model", name));
        let told = everything_about(&daemon, &run);
        assert!(told.contains("no such deployment"), "{told}");
        assert!(!told.contains(PLANTED), "{told}");
    }
    let path = "/below/openai/deployments/my-gpt.4_1/chat/completions?api-version=2024-10-21";
    assert_eq!(server.requests(|request| request.path.clone()), [path; 2]);
}

/// Prices and limits depend on the name, but the deployment accepts any name.
#[test]
fn configured_deployment_has_one_name() {
    let place = TestDir::new();
    let mut command = place.testwright();
    command
        .env("TESTWRIGHT_MODEL_BASE_URL", "http://127.0.0.1:1")
        .env("TESTWRIGHT_MODEL_AZURE_DEPLOYMENT", "prod")
        .env("TESTWRIGHT_MODEL", "gpt-5")
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--workers",
            "0",
            "--data",
        ])
        .arg(place.path("data"))
        .args(["--allow-repository", &example("*")]);
    let daemon = ServerProcess::logged(command, &place.path("log"));
    for (name, status) in [
        ("cheap", 422),
        ("azure/cheap", 422),
        ("prod", 201),
        ("azure/prod", 201),
        ("gpt-5", 201),
    ] {
        let made = daemon.client.post("/v1/runs", &with("model", name));
        assert_eq!(made.status, status, "{name}: {made:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_call_bodies_stay_on_server() {
    let place = TestDir::new();
    let bodies = [
        json!({"key": PLANTED}).to_string(),
        json!({"error": {"message": "the quota is used up", "key": PLANTED}}).to_string(),
        json!({"error": {"key": PLANTED}}).to_string(),
        format!("<html>{PLANTED}</html>"),
        format!("\"{PLANTED}\""),
    ];
    let answers = bodies.clone();
    let model = MockServer::start_parallel(move |request: &Request| {
        let asked: Value = serde_json::from_str(&request.body).unwrap();
        let number: usize = asked["model"].as_str().unwrap().parse().unwrap();
        Response {
            status: 400,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: answers[number].clone(),
        }
    });
    let database = &databases::all()[0];
    let daemon =
        ServerProcess::start_with(&place, database, Some(&model), "data", &["--workers", "6"]);
    let mcp = McpClient::over_http(&daemon).await;
    let run = |number: usize| daemon.run(&with("model", number.to_string()));
    let runs: Vec<String> = (0..bodies.len()).map(run).collect();
    let told = mcp.call("write_failing_test", with("model", "0")).await;
    assert_eq!(told["status"], "infrastructure", "{told}");
    assert!(!told.to_string().contains(PLANTED), "{told}");
    for (run, body) in runs.iter().zip(&bodies) {
        let told = everything_about(&daemon, run);
        assert!(!told.contains(PLANTED), "{body}: {told}");
        assert!(told.contains("answered 400"), "{body}: {told}");
        let is_said = told.contains("the quota is used up");
        assert_eq!(is_said, body.contains("the quota"), "{body}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_and_unknown_fields_are_rejected() {
    let place = TestDir::new();
    let daemon = ServerProcess::start_idle(&place);
    let mcp = McpClient::over_http(&daemon).await;
    let repository = example("slugs");
    let patch = json!([{"name": "p", "patch": "x"}]);
    let case = |field: &str, value: &str| {
        let mut case = json!({"path": "tests/test_x.py", "content": "", "tests": []});
        case[field] = if field == "tests" {
            json!([value])
        } else {
            json!(value)
        };
        json!({"repository": repository, "cases": [case]})
    };
    let texts = [
        "m".repeat(300_000),
        " x".to_owned(),
        "x\u{a0}".to_owned(),
        "x\ny".to_owned(),
        "x\u{202e}y".to_owned(),
    ];
    for text in &texts {
        let requests = [
            ("/v1/runs", "model", with("model", text.as_str())),
            ("/v1/runs", "approach", with("approach", text.as_str())),
            ("/v1/runs", "commit", with("commit", text.as_str())),
            ("/v1/runs", "repository", with("repository", text.as_str())),
            (
                "/v1/comparisons",
                "name",
                json!({"name": text, "instances": [{}], "approaches": ["libro"], "models": ["m"]}),
            ),
            (
                "/v1/comparisons",
                "models",
                json!({"name": "n", "instances": [{}], "approaches": ["libro"], "models": [text]}),
            ),
            (
                "/v1/comparisons",
                "approaches",
                json!({"name": "n", "instances": [{}], "approaches": [text], "models": ["m"]}),
            ),
            (
                "/v1/comparisons",
                "repositories",
                json!({"name": "n", "instances": [{}], "approaches": ["libro"], "models": ["m"], "repositories": text}),
            ),
            (
                "/v1/matrices",
                "commit",
                json!({"repository": repository, "commit": text, "tests": patch, "patches": patch}),
            ),
            (
                "/v1/matrices",
                "repository",
                json!({"repository": text, "tests": patch, "patches": patch}),
            ),
            (
                "/v1/matrices",
                "tests",
                json!({"repository": repository, "tests": [{"name": text, "patch": "x"}], "patches": patch}),
            ),
            (
                "/v1/matrices",
                "tests",
                json!({"repository": repository, "tests": [{"name": "t", "run": text}], "patches": patch}),
            ),
            (
                "/v1/matrices",
                "patches",
                json!({"repository": repository, "tests": patch, "patches": [{"name": text, "patch": "x"}]}),
            ),
            (
                "/v1/checks",
                "name",
                json!({"repository": repository, "issue": "It fails", "tests": [{"name": text, "patch": "x"}]}),
            ),
            (
                "/v1/checks",
                "path",
                json!({"repository": repository, "issue": "It fails", "tests": [{"path": text, "content": "x"}]}),
            ),
        ];
        for (address, field, request) in requests {
            let made = daemon.client.post(address, &request);
            assert_eq!(made.status, 422, "{address} {field}");
            assert!(
                made.body.contains(&format!("`{field}`")),
                "{address} {field}: {}",
                made.body
            );
            assert!(
                made.body.len() < 1_000,
                "{address} {field}: it is said back"
            );
        }
        for (tool, field, arguments) in [
            ("write_failing_test", "model", with("model", text.as_str())),
            (
                "check_patch",
                "commit",
                json!({"repository": repository, "commit": text, "tests": patch, "patches": patch}),
            ),
            (
                "check_test",
                "commit",
                json!({"repository": repository, "commit": text, "patch": "x"}),
            ),
            (
                "check_test",
                "path",
                json!({"repository": repository, "path": text, "content": "x"}),
            ),
            ("open_session", "repository", json!({"repository": text})),
            ("verify", "id", case("id", text)),
            ("verify", "path", case("path", text)),
            ("cov", "tests", case("tests", text)),
        ] {
            let refusal = mcp.refusal(tool, arguments).await;
            assert!(
                refusal.contains(&format!("`{field}`")),
                "{tool} {field}: {refusal}"
            );
            assert!(refusal.len() < 1_000, "{tool} {field}: it is said back");
        }
    }
    for (list, filter) in [
        ("runs", "model"),
        ("runs", "owner"),
        ("comparisons", "name"),
        ("matrices", "repository"),
        ("gradings", "owner"),
    ] {
        let long = daemon
            .client
            .get(&format!("/v1/{list}?{filter}={}", "m".repeat(5_000)));
        assert_eq!(long.status, 400, "{list} {filter}: {long:?}");
    }
    assert_eq!(daemon.client.get("/v1/runs").json()["runs"], json!([]));
}

/// An older version accepted texts of any length.
#[tokio::test(flavor = "multi_thread")]
async fn long_stored_texts_leave_lists_readable() {
    let place = TestDir::new();
    let daemon = ServerProcess::start_idle(&place);
    let url = format!("sqlite:{}", place.path("data/testwright.db").display());
    assert!(Path::new(&place.path("data/testwright.db")).is_file());
    let store = Store::open(&url).await.unwrap();
    let long = "m".repeat(300_000);
    let run = NewRun {
        title: long.clone(),
        repository: long.clone(),
        approach: long.clone(),
        model: long.clone(),
        owner: long.clone(),
        ..stored_run("local", "")
    };
    store.add_run(&run).await.unwrap();
    let matrix =
        json!({"repository": long, "commit": null, "issue": long, "tests": [], "patches": []});
    let matrix = NewMatrix {
        request: matrix.to_string(),
        repository: long.clone(),
        owner: long.clone(),
        idempotency_key: None,
    };
    store.add_matrix(&matrix).await.unwrap();
    for path in ["/", "/v1/runs", "/matrices", "/v1/matrices"] {
        let listed = daemon.client.get(path);
        assert_eq!(listed.status, 200, "{path}");
        assert!(listed.body.contains(&"m".repeat(50)), "{path}");
        let own_part = if path.starts_with("/v1") { 0 } else { 25_000 };
        assert!(
            listed.body.len() < own_part + 8_000,
            "{path}: {} bytes",
            listed.body.len()
        );
    }
}
