//! Runs whose server or worker is killed or stopped, and runs that are cancelled: others resume them.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{ServerProcess, databases, is_slow_step, model, numbers, slow_issue};
use crate::support::program::TestDir;

#[test]
fn run_survives_killed_server() {
    for database in databases::all() {
        let (place, model) = (TestDir::new(), model());
        let mut first = ServerProcess::start(&place, &database, Some(&model));
        let id = first.run(&slow_issue());
        let early_events = first.client.follow(&id, 0, is_slow_step);
        assert!(
            is_slow_step(early_events.last().unwrap()),
            "{early_events:?}"
        );
        first.child.kill().unwrap();
        first.child.wait().unwrap();
        database.restart();

        // With Postgres, the second server has its own disk.
        let data = if database.url.is_some() {
            "other"
        } else {
            "data"
        };
        let second = ServerProcess::start_in(&place, &database, Some(&model), data);
        let events = second.client.follow(&id, 0, |_| false);
        let (end, lines) = events.split_last().unwrap();
        let run: Value = serde_json::from_str(&end.data).unwrap();
        assert_eq!(run["status"], "accepted", "{run}");
        assert_eq!(run["attempts"], 2);
        let all: Vec<i64> = (1..=lines.len() as i64).collect();
        assert_eq!(numbers(lines), all);
        assert_eq!(
            lines[..early_events.len()],
            early_events[..],
            "what was on record stays"
        );
        let replies = lines
            .iter()
            .filter(|e| e.data.starts_with(r#"{"event":"reply""#))
            .count();
        let request_count = model.requests(|_| ()).len();
        assert_eq!(request_count, replies, "no call was paid twice");
    }
}

#[test]
fn run_is_cancelled_requeued_and_retried() {
    let (place, model) = (TestDir::new(), model());
    let database = &databases::all()[0];
    let first = ServerProcess::start(&place, database, Some(&model));
    let id = first.run(&slow_issue());
    first.client.follow(&id, 0, is_slow_step);
    let post = |daemon: &ServerProcess, what: &str| {
        daemon
            .client
            .send("POST", &format!("/v1/runs/{id}/{what}"), &[], "")
    };
    let cancelled = post(&first, "cancel");
    assert_eq!(
        (cancelled.status, cancelled.json()["cancelling"].clone()),
        (202, json!(true))
    );
    first.wait_for(&id, "cancelled");
    assert_eq!(
        first.client.get(&format!("/v1/runs/{id}/patch")).status,
        404
    );
    assert_eq!(post(&first, "retry").status, 202);
    first.wait_for(&id, "running");
    // The run is resumed while the server stops, which returns it to the queue.
    let begun = Instant::now();
    assert_eq!(first.terminate(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(60));

    let second = ServerProcess::start(&place, database, Some(&model));
    second.wait_for(&id, "accepted");
    let events = second.client.follow(&id, 0, |_| false);
    let all: Vec<i64> = (1..events.len() as i64).collect();
    assert_eq!(numbers(&events), all);
}

#[test]
fn stopping_workers_requeue_their_runs() {
    let databases = databases::all();
    // All processes are on this machine, so SQLite works too.
    let database = databases.last().unwrap();
    let (place, model) = (TestDir::new(), model());
    let url = match &database.url {
        Some(url) => url.clone(),
        None => format!("sqlite:{}", place.path("data/testwright.db").display()),
    };
    let server =
        ServerProcess::start_with(&place, database, Some(&model), "data", &["--workers", "0"]);
    let work = |data: &str| {
        let mut command = place.testwright();
        command
            .args(["worker", "--database", &url, "--data"])
            .arg(place.path(data));
        command.env("TESTWRIGHT_MODEL_BASE_URL", format!("{}/v1", model.url));
        command.stderr(Stdio::null()).spawn().unwrap()
    };
    let id = server.run(&slow_issue());
    assert_eq!(server.status(&id), "queued");
    let mut first = work("first");
    server.client.follow(&id, 0, is_slow_step);
    let mut second = work("second");
    first.kill().unwrap();
    first.wait().unwrap();
    server.wait_for(&id, "accepted");
    let run = server.client.get(&format!("/v1/runs/{id}")).json();
    assert_eq!(run["attempts"], 2);
    let ended = Command::new("kill").arg(second.id().to_string()).status();
    assert!(ended.unwrap().success());
    assert_eq!(second.wait().unwrap().code(), Some(0));
}
