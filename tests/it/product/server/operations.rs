//! The server as operators see it: metrics, probes, logs, workers.

use std::process::{Child, Command, Stdio};

use super::client::{Client, Reply};
use super::{ServerProcess, databases, is_slow_step, issue, model, slow_issue, wait_until};
use crate::support::program::TestDir;
use crate::support::server::MockServer;

/// Parses metrics into samples by name and labels.
fn samples(text: &str) -> std::collections::BTreeMap<String, f64> {
    let lines = text
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'));
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    };
    lines.map(sample).collect()
}

#[test]
fn metrics_cover_runs_models_tools_requests() {
    for database in databases::all() {
        let (place, model) = (TestDir::new(), model());
        let daemon = ServerProcess::start(&place, &database, Some(&model));
        let id = daemon.run(&slow_issue());
        daemon.client.follow(&id, 0, |_| false);
        let reply = daemon.client.get("/metrics");
        assert_eq!(
            reply.header("content-type"),
            Some("text/plain; version=0.0.4; charset=utf-8")
        );
        let samples = samples(&reply.body);
        let value = |name: &str| {
            *samples
                .get(name)
                .unwrap_or_else(|| panic!("{name}: {}", reply.body))
        };
        assert_eq!(value(r#"testwright_runs_total{status="accepted"}"#), 1.0);
        assert_eq!(value(r#"testwright_stored_runs{status="accepted"}"#), 1.0);
        assert_eq!(value(r#"testwright_stored_runs{status="queued"}"#), 0.0);
        assert_eq!(value("testwright_running_runs"), 0.0);
        assert_eq!(value("testwright_run_queue_wait_seconds_count"), 1.0);
        let replies = model.requests(|_| ()).len() as f64;
        assert_eq!(value(r#"testwright_model_calls_total{model="m"}"#), replies);
        assert_eq!(
            value(r#"testwright_model_tokens_total{model="m",kind="input"}"#),
            1000.0 * replies
        );
        // The tool slept for 5 seconds.
        assert!(value(r#"testwright_tool_call_duration_seconds_sum{tool="run_python"}"#) > 5.0);
        let route = "/v1/runs/{id}/events";
        let requests = format!(
            r#"testwright_http_requests_total{{method="GET",route="{route}",status="200"}}"#
        );
        assert_eq!(value(&requests), 1.0);
        assert_eq!(value("testwright_event_listeners"), 0.0);
        assert!(value("process_resident_memory_bytes") > 1e6);
        assert!(value("process_cpu_seconds_total") > 0.0);
    }
}

#[test]
fn unknown_paths_add_no_metrics() {
    let place = TestDir::new();
    let daemon = ServerProcess::start_idle(&place);
    let request_id = |reply: &Reply| reply.header("x-request-id").unwrap().to_owned();
    let first = daemon.client.get("/v1/health");
    let second = daemon
        .client
        .send("BREW", "/pot/1", &[("x-request-id", "mine")], "");
    assert_eq!((first.status, second.status), (200, 404));
    assert_ne!(request_id(&first), request_id(&second));
    assert_ne!(request_id(&second), "mine");
    let samples = samples(&daemon.client.get("/metrics").body);
    let foreign = r#"testwright_http_requests_total{method="other",route="none",status="404"}"#;
    assert_eq!(samples[foreign], 1.0);
}

#[test]
fn server_with_broken_database_is_unready() {
    let (place, model) = (TestDir::new(), model());
    let database = &databases::all()[0];
    let daemon = ServerProcess::start(&place, database, Some(&model));
    let ready = |client: &Client| client.get("/v1/ready").status;
    assert_eq!(ready(&daemon.client), 200);
    let newer = |sql: &str| database.execute(&place.path("data"), sql);
    newer("UPDATE _sqlx_migrations SET success = 0 WHERE version = 1");
    let answer = daemon.client.get("/v1/ready");
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(daemon.client.get("/v1/health").status, 200);
    newer("UPDATE _sqlx_migrations SET success = 1 WHERE version = 1");
    assert_eq!(ready(&daemon.client), 200);
}

#[test]
fn requests_and_attempts_are_logged() {
    let (place, model) = (TestDir::new(), model());
    let log = place.path("log");
    let mut command = place.testwright();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]);
    command.arg(place.path("data"));
    command.args(["--allow-repository", &crate::support::program::example("*")]);
    command.env("TESTWRIGHT_MODEL_BASE_URL", format!("{}/v1", model.url));
    command.env("TESTWRIGHT_LOG", "testwright=info");
    command.env("TESTWRIGHT_LOG_FORMAT", "json");
    let daemon = ServerProcess::logged(command, &log);
    let id = daemon.run(&slow_issue());
    daemon.wait_for(&id, "accepted");
    let reply = daemon.client.get(&format!("/v1/runs/{id}"));
    let request = reply.header("x-request-id").unwrap().to_owned();
    assert_eq!(daemon.terminate(), Some(0));

    let log = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<serde_json::Value> = log
        .lines()
        .filter(|line| !line.starts_with("listening on") && !line.starts_with("note: "))
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect();
    let of_request: Vec<_> = lines.iter().filter(|l| l["request"] == request).collect();
    let [line] = of_request[..] else {
        panic!("{log}");
    };
    assert_eq!([&line["method"], &line["route"]], ["GET", "/v1/runs/{id}"]);
    assert_eq!(line["status"], 200);
    assert!(line["ms"].is_number() && line["timestamp"].is_string());
    let of_run: Vec<_> = lines.iter().filter(|line| line["run"] == id).collect();
    let log_entries: Vec<_> = of_run
        .iter()
        .map(|l| (&l["message"], &l["attempt"]))
        .collect();
    assert_eq!(
        log_entries,
        [
            (&"an attempt at a run begins".into(), &1.into()),
            (&"an attempt at a run ends".into(), &1.into())
        ]
    );
    assert_eq!(of_run[1]["status"], "accepted");
}

#[test]
fn old_runs_and_folders_are_removed() {
    for database in databases::all() {
        let place = TestDir::new();
        let first = ServerProcess::start(&place, &database, None);
        let runs: Vec<String> = (0..3).map(|_| first.run(&issue())).collect();
        for run in &runs {
            first.wait_for(run, "accepted");
        }
        assert_eq!(first.terminate(), Some(0));
        // Folders of first attempts end in `.1`.
        let folder = |run: &str| place.path("data/runs").join(format!("{run}.1"));
        assert!(runs.iter().all(|run| folder(run).is_dir()));
        // One folder is left by an interrupted removal, and one is not the server's.
        let (trash_folder, foreign) = (folder(&format!(".gone-{}", runs[0])), folder("mine"));
        for other in [&trash_folder, &foreign] {
            std::fs::create_dir_all(other.join("x")).unwrap();
        }
        let ended_before = |run: &str, hours: i64| {
            let ago = hours * 3_600_000;
            let sql = format!("UPDATE runs SET ended_at = ended_at - {ago} WHERE id = '{run}'");
            database.execute(&place.path("data"), &sql);
        };
        ended_before(&runs[0], 24 * 31);
        ended_before(&runs[1], 24 * 29);

        let words = ["--workers", "0", "--keep-runs", "30"];
        let second = ServerProcess::start_with(&place, &database, None, "data", &words);
        let status = |run: &str| second.client.get(&format!("/v1/runs/{run}")).status;
        wait_until("the oldest is removed", || status(&runs[0]) == 404);
        assert_eq!((status(&runs[1]), status(&runs[2])), (200, 200));
        let events = |run: &str| {
            let sql = format!("SELECT COUNT(*) FROM events WHERE run = '{run}'");
            database.execute(&place.path("data"), &sql)
        };
        assert_eq!(events(&runs[0]), "0");
        assert_ne!(events(&runs[1]), "0");
        // A run that has just ended stays visible.
        let there = runs.iter().map(|run| folder(run).exists());
        assert_eq!(there.collect::<Vec<_>>(), [false, false, true]);
        assert!(!trash_folder.exists() && foreign.exists());
        let removed = || samples(&second.client.get("/metrics").body);
        assert_eq!(removed()["testwright_retention_removed_runs_total"], 1.0);
        wait_until("the cache is measured", || {
            removed()
                .iter()
                .any(|(name, bytes)| name.contains(r#"folder="environments""#) && *bytes > 0.0)
        });
    }
}

fn worker(place: &TestDir, url: &str, model: &MockServer) -> Child {
    let mut command = place.testwright();
    command.args(["worker", "--workers", "1", "--database", url]);
    command.args(["--metrics", "127.0.0.1:0", "--data"]);
    command.arg(place.path("worker"));
    command.env("TESTWRIGHT_MODEL_BASE_URL", format!("{}/v1", model.url));
    command.stderr(Stdio::piped()).spawn().unwrap()
}

/// Returns a client for the probe address that a worker prints to stderr.
fn address(worker: &mut Child) -> Client {
    use std::io::BufRead;
    let mut lines = std::io::BufReader::new(worker.stderr.take().unwrap()).lines();
    let address = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once("metrics on http://")?.1.to_owned()));
    std::thread::spawn(move || lines.for_each(drop));
    Client {
        address: address.expect("the worker prints its address"),
    }
}

#[test]
fn workers_are_listed_with_their_runs() {
    for database in databases::all() {
        let (place, model) = (TestDir::new(), model());
        let server =
            ServerProcess::start_with(&place, &database, Some(&model), "data", &["--workers", "0"]);
        let overview = || server.client.get("/v1/workers").json();
        assert_eq!(overview()["workers"], serde_json::json!([]));
        let page = || server.client.get("/workers").body;
        assert!(page().contains("No workers"));

        let first = server.run(&slow_issue());
        let second = server.run(&slow_issue());
        assert_eq!(overview()["queue"]["queued"], 2);
        assert!(overview()["queue"]["oldest_seconds"].is_i64());

        let mut child = worker(&place, &database.url_in(&place.path("data")), &model);
        let probes = address(&mut child);
        server.client.follow(&first, 0, is_slow_step);
        wait_until("it works on the first", || {
            overview()["workers"][0]["runs"] == serde_json::json!([first])
        });
        let of = overview();
        assert_eq!(of["workers"][0]["slots"], 1);
        assert_eq!(of["workers"][0]["alive"], true);
        assert_eq!(of["queue"]["running"], 1);
        assert_eq!(of["queue"]["queued"], 1);
        assert!(page().contains(&format!("/runs/{first}")), "{}", page());
        assert!(!page().contains(&format!("/runs/{second}")));

        assert_eq!(probes.get("/v1/ready").status, 200);
        assert_eq!(
            samples(&probes.get("/metrics").body)["testwright_running_runs"],
            1.0
        );
        let killed = Command::new("kill").arg(child.id().to_string()).status();
        assert!(killed.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(0));
        // The worker stopped cleanly and returned its run to the queue.
        assert_eq!(overview()["workers"], serde_json::json!([]));
        assert_eq!(server.status(&first), "queued");
    }
}

#[test]
fn dead_worker_is_shown_missing() {
    let (place, model) = (TestDir::new(), model());
    let database = &databases::all()[0];
    let server =
        ServerProcess::start_with(&place, database, Some(&model), "data", &["--workers", "0"]);
    let mut child = worker(&place, &database.url_in(&place.path("data")), &model);
    let workers = || server.client.get("/v1/workers").json()["workers"].clone();
    wait_until("it is registered", || workers()[0]["alive"] == true);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("it is shown as missing", || workers()[0]["alive"] == false);
    assert!(server.client.get("/workers").body.contains(">missing<"));
}

#[test]
fn stopping_server_is_unready() {
    let (place, model) = (TestDir::new(), model());
    let database = &databases::all()[0];
    let mut daemon = ServerProcess::start(&place, database, Some(&model));
    let id = daemon.run(&slow_issue());
    daemon.client.follow(&id, 0, is_slow_step);
    let mut kill = Command::new("kill");
    kill.arg(daemon.child.id().to_string());
    assert!(kill.status().unwrap().success());
    let mut statuses = Vec::new();
    while daemon.child.try_wait().unwrap().is_none() {
        if let Some(reply) = daemon.client.try_get("/v1/ready") {
            statuses.push(reply.status);
        }
    }
    assert!(statuses.contains(&503), "{statuses:?}");
    assert_eq!(daemon.child.wait().unwrap().code(), Some(0));
}
