//! Comparisons on the server: the list, the report, its links to runs, and cancellation.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testwright_server::store::{ComparisonReport, JobId, NewComparison, NewRun, Store};

use super::client::Reply;
use super::{ServerProcess, databases};
use crate::product::compare::{ComparisonBench, answered, service};
use crate::support::program::TestDir;
use crate::support::server::MockServer;

#[tokio::test(flavor = "multi_thread")]
async fn comparison_is_listed_and_cancelled() {
    for database in databases::all() {
        let place = TestDir::new();
        let daemon =
            ServerProcess::start_with(&place, &database, None, "data", &["--workers", "0"]);
        let embedded = Store::url_in(&place.path("data"));
        let store = Store::open(database.url.as_deref().unwrap_or(&embedded))
            .await
            .unwrap();
        let client = &daemon.client;
        assert_eq!(
            client.get("/v1/comparisons").json()["comparisons"],
            json!([])
        );
        assert!(
            client
                .get("/comparisons")
                .body
                .contains("No comparisons yet")
        );

        let id = JobId::new(testwright_server::store::now());
        let hostile = "<script>alert(1)</script>.jsonl";
        let plan = json!({"systems": [{"approach": "otter:planner=off", "model": "m"}, {"approach": "snippet", "model": "snippet"}],
            "instances": [{"id": "a"}, {"id": "b"}], "samples": 3});
        let compared = NewComparison {
            id: &id,
            owner: "compare",
            name: hostile,
            plan: &plan.to_string(),
            max_dollars: Some(2.5),
        };
        store.put_comparison(&compared).await.unwrap();
        let new = NewRun {
            request: "{}".to_owned(),
            title: String::new(),
            repository: "o/n".to_owned(),
            approach: "otter:planner=off".to_owned(),
            model: "m".to_owned(),
            idempotency_key: Some(format!("{id}/runs/otter%3Aplanner=off/m/1/a")),
            owner: "compare".to_owned(),
            batch: id.to_string(),
            traceparent: None,
        };
        let (run, _) = store.add_run(&new).await.unwrap();

        let listed = client.get("/v1/comparisons").json();
        let comparison = &listed["comparisons"][0];
        assert_eq!(
            comparison["systems"],
            json!(["otter:planner=off@m", "snippet"])
        );
        assert_eq!(comparison["runs"], json!({"queued": 1}));
        assert_eq!(comparison["has_report"], json!(false));
        assert_eq!(comparison["status"], "running");
        let address = format!("/v1/comparisons/{id}");
        assert_eq!(client.get(&address).json(), *comparison);
        assert_eq!(client.get(&format!("{address}/report")).status, 404);
        assert_eq!(client.get("/v1/comparisons/..%2f..").status, 404);
        let page = client.get("/comparisons").body;
        assert!(
            page.contains("&lt;script&gt;alert(1)") && page.contains("not graded yet"),
            "{page}"
        );

        let report = ComparisonReport {
            report: json!({"systems": []}).to_string(),
            page: "<!doctype html><title>Report</title>".to_owned(),
        };
        store.put_comparison_report(&id, &report).await.unwrap();
        assert_eq!(
            client.get(&format!("{address}/report")).json(),
            json!({"systems": []})
        );
        let shown = client.get(&format!("/comparisons/{id}/report"));
        assert_eq!(shown.body, report.page);
        let policy = shown.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("sandbox ") && !policy.contains("allow-same-origin"),
            "{policy}"
        );
        // The report's link encodes the already encoded folder name again.
        let link = format!("/comparisons/{id}/runs/otter%253Aplanner=off/m/1/a/trajectory.html");
        let found = client.get(&link);
        assert_eq!(
            found.header("location"),
            Some(format!("/runs/{}", run.id).as_str()),
            "{found:?}"
        );
        let missing = client.get(&format!("/comparisons/{id}/runs/a%00"));
        assert_eq!(missing.status, 404, "{missing:?}");

        let ended = client.send("POST", &format!("{address}/cancel"), &[], "");
        assert_eq!(
            (ended.status, &ended.json()["runs"]),
            (202, &json!({"cancelled": 1}))
        );
        assert_eq!(ended.json()["status"], "cancelled");
        // The command that owns the comparison resumes it, not the server.
        let retried = client.send("POST", &format!("{address}/retry"), &[], "");
        assert_eq!(retried.status, 409, "{retried:?}");
        let is_cancelled = async || store.cancel_late_jobs(&id).await.unwrap();
        assert!(is_cancelled().await);
        store.put_comparison(&compared).await.unwrap();
        assert!(!is_cancelled().await);
    }
}

fn start(
    bench: &ComparisonBench,
    database: &databases::Database,
    server: &MockServer,
    data: &str,
) -> ServerProcess {
    let own = bench.place.path("repositories/*").display().to_string();
    let prices = bench.place.path("prices.toml").display().to_string();
    let words = [
        "--workers",
        "2",
        "--allow-repository",
        &own,
        "--config",
        &prices,
    ];
    ServerProcess::start_with(&bench.place, database, Some(server), data, &words)
}

/// Returns a request to compare the two instances of the bench.
fn request(bench: &ComparisonBench) -> Value {
    let dataset = std::fs::read_to_string(bench.place.path("dataset.jsonl")).unwrap();
    let instances = dataset
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    json!({
        "name": "sums",
        "instances": instances.collect::<Vec<Value>>(),
        "approaches": ["zero-shot-plus", "zero-shot-file", "libro"],
        "models": ["m"],
        "limits": {"dollars": 50},
        "repositories": bench.place.path("repositories/{owner}+{name}"),
    })
}

fn post(daemon: &ServerProcess, key: &str, request: &Value) -> Reply {
    let headers = [
        ("content-type", "application/json"),
        ("idempotency-key", key),
    ];
    let body = request.to_string();
    daemon
        .client
        .send("POST", "/v1/comparisons", &headers, &body)
}

fn wait_for(daemon: &ServerProcess, id: &str, status: &str) -> Value {
    let begun = Instant::now();
    loop {
        let shown = daemon.client.get(&format!("/v1/comparisons/{id}")).json();
        if shown["status"] == status {
            return shown;
        }
        assert!(begun.elapsed() < Duration::from_secs(240), "{shown}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn requested_comparison_survives_killed_server() {
    let (whole, undisturbed) = service(Duration::ZERO);
    let bench = ComparisonBench::new(&whole);
    let daemon = start(&bench, &databases::embedded(), &whole, "data");
    let id = post(&daemon, "one", &request(&bench)).json()["id"].to_string();
    wait_for(&daemon, id.trim_matches('"'), "done");
    drop(daemon);
    for database in databases::all() {
        let (server, bill) = service(Duration::from_millis(60));
        let bench = ComparisonBench::new(&server);
        let mut first = start(&bench, &database, &server, "data");
        let made = post(&first, "one", &request(&bench));
        assert_eq!(made.status, 201, "{made:?}");
        let id = made.json()["id"].as_str().unwrap().to_owned();
        let place = format!("/v1/comparisons/{id}");
        assert_eq!(made.header("location"), Some(place.as_str()));
        let again = post(&first, "one", &request(&bench));
        assert_eq!((again.status, &again.json()["id"]), (200, &json!(id)));
        let mut other = request(&bench);
        other["samples"] = json!(2);
        assert_eq!(post(&first, "one", &other).status, 409);
        let begun = Instant::now();
        while bill.lock().unwrap().calls < 3 {
            assert!(begun.elapsed() < Duration::from_secs(120), "no call");
            std::thread::sleep(Duration::from_millis(20));
        }
        first.child.kill().unwrap();
        first.child.wait().unwrap();
        database.restart();

        // With Postgres, the second server has its own disk.
        let data = if database.url.is_some() {
            "other"
        } else {
            "data"
        };
        let second = start(&bench, &database, &server, data);
        let done = wait_for(&second, &id, "done");
        assert_eq!(done["has_report"], true, "{done}");
        let runs = done["runs"].as_object().unwrap();
        let runs: i64 = runs.values().filter_map(Value::as_i64).sum();
        assert_eq!(runs, 6, "{done}");
        assert!(done["dollars"].as_f64().unwrap() >= bill.lock().unwrap().dollars());
        let report = second.client.get(&format!("{place}/report")).json();
        let rates = report["systems"].as_array().unwrap().iter();
        let rates = rates.map(|system| {
            (
                system["name"].clone(),
                system["fail_to_pass"]["value"].clone(),
            )
        });
        // The folder is removed, but its files are in the artifact store.
        let listed = second.client.get(&format!("{place}/artifacts")).json();
        let listed = listed["artifacts"].as_array().unwrap();
        for name in [
            "report.csv",
            "runs.csv",
            "runs.jsonl",
            "predictions.tar.gz",
            "grading.tar.gz",
        ] {
            let found = listed.iter().find(|artifact| artifact["name"] == name);
            assert!(found.unwrap_or(&Value::Null)["bytes"].as_i64() > Some(0));
        }
        let table = second.client.get(&format!("{place}/artifacts/report.csv"));
        assert_eq!(
            table.header("content-type"),
            Some("text/csv; charset=utf-8")
        );
        assert!(table.body.contains("zero-shot-plus"), "{}", table.body);
        for path in ["artifacts/none.csv", "artifacts/..%2Freport.csv"] {
            assert_eq!(second.client.get(&format!("{place}/{path}")).status, 404);
        }
        let wanted = [
            ("zero-shot-plus@m", 1.0),
            ("zero-shot-file@m", 0.0),
            ("libro@m", 1.0),
        ];
        let mut rates: Vec<_> = rates.collect();
        let mut wanted = wanted.map(|(name, rate)| (json!(name), json!(rate)));
        rates.sort_by_key(|rate| rate.0.to_string());
        wanted.sort_by_key(|rate| rate.0.to_string());
        assert_eq!(rates, wanted);
        // Only calls in flight are repeated.
        let (with, without) = (answered(&bill), answered(&undisturbed));
        assert!((without..=without + 4).contains(&with), "{with} {without}");
        let retried = second
            .client
            .send("POST", &format!("{place}/retry"), &[], "");
        assert_eq!(retried.status, 409, "{retried:?}");
        assert_eq!(second.terminate(), Some(0));
    }
}

#[test]
fn requested_comparison_is_cancelled_and_resumed() {
    let (server, bill) = service(Duration::from_millis(400));
    let bench = ComparisonBench::new(&server);
    let daemon = start(&bench, &databases::embedded(), &server, "data");
    let made = post(&daemon, "one", &request(&bench));
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let begun = Instant::now();
    while bill.lock().unwrap().calls < 1 {
        assert!(begun.elapsed() < Duration::from_secs(120), "no call");
        std::thread::sleep(Duration::from_millis(20));
    }
    let place = format!("/v1/comparisons/{id}");
    let cancelled = daemon
        .client
        .send("POST", &format!("{place}/cancel"), &[], "");
    assert_eq!(cancelled.json()["status"], "cancelled", "{cancelled:?}");
    let begun = Instant::now();
    let is_running = || {
        let runs = daemon.client.get(&place).json()["runs"].clone();
        runs["running"].is_i64() || runs["queued"].is_i64()
    };
    while is_running() {
        assert!(begun.elapsed() < Duration::from_secs(60), "runs go on");
        std::thread::sleep(Duration::from_millis(100));
    }
    let retried = daemon
        .client
        .send("POST", &format!("{place}/retry"), &[], "");
    assert_eq!(
        (retried.status, &retried.json()["status"]),
        (202, &json!("queued"))
    );
    let done = wait_for(&daemon, &id, "done");
    assert_eq!(done["message"], Value::Null, "{done}");
    assert_eq!(done["has_report"], true);
    let late = daemon
        .client
        .send("POST", &format!("{place}/cancel"), &[], "");
    assert_eq!(late.status, 409, "{late:?}");
    let page = daemon.client.get(&format!("/comparisons/{id}")).body;
    let files = daemon.client.get(&format!("{place}/artifacts")).json();
    let name = files["artifacts"][0]["name"].as_str().unwrap();
    let link = format!("<a href=\"{place}/artifacts/{name}\">{name}</a>");
    assert!(page.contains(&link), "{link}: {page}");
}

#[test]
fn invalid_comparisons_are_rejected() {
    let (server, _) = service(Duration::ZERO);
    let bench = ComparisonBench::new(&server);
    let daemon = start(&bench, &databases::embedded(), &server, "data");
    let instance = request(&bench)["instances"][0].clone();
    let with = |field: &str, value: Value| {
        let mut changed = instance.clone();
        changed[field] = value;
        json!([changed])
    };
    for (changes, reason) in [
        (
            json!({"instances": []}),
            "`approaches` or `instances` is empty",
        ),
        (
            json!({"approaches": []}),
            "`approaches` or `instances` is empty",
        ),
        (
            json!({"approaches": ["none-such"]}),
            "find the approach `none-such`",
        ),
        (json!({"approaches": ["libro", "libro"]}), "is named twice"),
        (
            json!({"approaches": vec!["libro"; 21]}),
            "there are 21 approaches",
        ),
        (json!({"models": ["free"]}), "has no price in the settings"),
        (
            json!({"models": ["replay:/etc/passwd"]}),
            "recordings are disabled on this server",
        ),
        (json!({"samples": 0}), "`samples` is not between 1 and 100"),
        (
            json!({"test_seconds": 100_000}),
            "`test_seconds` is not between 1 and 7200",
        ),
        (
            json!({"limits": {"steps": 0}}),
            "`steps` is not greater than zero",
        ),
        (
            json!({"name": "a\nb"}),
            "read `name`: it contains an invisible character",
        ),
        (
            json!({"instances": with("repo", json!("../etc"))}),
            "`repo` is not OWNER/NAME",
        ),
        (
            json!({"instances": with("base_commit", json!("--upload-pack=id"))}),
            "`base_commit` is not the hash",
        ),
        (
            json!({"instances": [instance, instance]}),
            "first in instance 1",
        ),
        (
            json!({"repositories": "/etc/{name}"}),
            "this server does not allow it",
        ),
        (
            json!({"repositories": "ext::sh -c {name}"}),
            "it contains blanks, special characters or `..`",
        ),
        (
            json!({"repositories": "http://169.254.169.254/{name}"}),
            "this server does not allow it",
        ),
        (json!({"more": 1}), "unknown field"),
    ] {
        let mut request = request(&bench);
        let changes = changes.as_object().unwrap().clone();
        request.as_object_mut().unwrap().extend(changes);
        let refused = daemon.client.post("/v1/comparisons", &request);
        assert_eq!(refused.status, 422, "{reason}: {refused:?}");
        let kind = refused.header("content-type");
        assert_eq!(kind, Some("application/problem+json"));
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(reason), "{reason}: {detail}");
    }
    let listed = daemon.client.get("/v1/comparisons").json();
    assert_eq!(listed["comparisons"], json!([]));
}
