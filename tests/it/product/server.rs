//! The server as clients see it: over HTTP, on both databases, and through crashes.

mod answers;
mod artifacts;
mod checks;
mod client;
mod comparison_page;
mod comparisons;
pub(super) mod databases;
mod full_disk;
mod github;
mod gradings;
mod http_runs;
mod lists;
mod matrices;
mod mcp;
mod mcp_cancel;
mod mcp_client;
mod mcp_messages;
mod mcp_owners;
mod mcp_sdk;
mod operations;
mod overload;
mod page_problems;
mod pages;
mod queue;
mod quota;
mod recovery;
mod retention;
mod runs_command;
mod secrets;
mod security;
mod shares;
mod slow_model;
mod tokens;
mod traces;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testwright_server::store::NewRun;

use crate::support::program::{TestDir, example, wait_until};
use crate::support::server::MockServer;
use client::{Client, StreamEvent};
use databases::Database;
use slow_model::{is_slow_step, model, slow_issue};

/// Returns a run for the store that no worker can execute.
fn stored_run(owner: &str, batch: &str) -> NewRun {
    NewRun {
        request: "{}".to_owned(),
        title: String::new(),
        repository: "o/n".to_owned(),
        approach: "snippet".to_owned(),
        model: "snippet".to_owned(),
        idempotency_key: None,
        owner: owner.to_owned(),
        batch: batch.to_owned(),
        traceparent: None,
    }
}

/// A running server, killed on drop.
struct ServerProcess {
    child: Child,
    client: Client,
}

impl ServerProcess {
    fn start(place: &TestDir, database: &Database, model: Option<&MockServer>) -> ServerProcess {
        ServerProcess::start_in(place, database, model, "data")
    }

    /// Starts a server without workers of its own.
    fn start_idle(place: &TestDir) -> ServerProcess {
        ServerProcess::start_with(
            place,
            &databases::all()[0],
            None,
            "data",
            &["--workers", "0"],
        )
    }

    fn start_in(
        place: &TestDir,
        database: &Database,
        model: Option<&MockServer>,
        data: &str,
    ) -> ServerProcess {
        ServerProcess::start_with(place, database, model, data, &[])
    }

    fn start_with(
        place: &TestDir,
        database: &Database,
        model: Option<&MockServer>,
        data: &str,
        words: &[&str],
    ) -> ServerProcess {
        let mut command = place.testwright();
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(place.path(data))
            .args(["--allow-repository", &example("*")])
            .args(words);
        if let Some(url) = &database.url {
            command.args(["--database", url]);
        }
        if let Some(model) = model {
            command.env("TESTWRIGHT_MODEL_BASE_URL", format!("{}/v1", model.url));
        }
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut before = Vec::new();
        let address = loop {
            let line = lines
                .next()
                .unwrap_or_else(|| panic!("the server exited: {before:?}"))
                .unwrap();
            if let Some((_, address)) = line.split_once("listening on http://") {
                break address.to_owned();
            }
            before.push(line);
        };
        // The server must not block on a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        ServerProcess {
            child,
            client: Client { address },
        }
    }

    /// Starts a server with its stderr in a file.
    fn logged(mut command: Command, log: &std::path::Path) -> ServerProcess {
        command.stderr(std::fs::File::create(log).unwrap());
        let child = command.spawn().unwrap();
        let address = wait_for_text(log, "listening on http://");
        ServerProcess {
            child,
            client: Client { address },
        }
    }

    /// Stops the server with SIGTERM and returns its exit code.
    fn terminate(mut self) -> Option<i32> {
        let killed = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        assert!(killed.unwrap().success());
        self.child.wait().unwrap().code()
    }

    fn run(&self, request: &Value) -> String {
        let reply = self.client.post("/v1/runs", request);
        assert_eq!(reply.status, 201, "{reply:?}");
        let id = reply.json()["id"].as_str().unwrap().to_owned();
        assert_eq!(
            reply.header("location"),
            Some(format!("/v1/runs/{id}").as_str())
        );
        id
    }

    fn status(&self, run: &str) -> String {
        let reply = self.client.get(&format!("/v1/runs/{run}"));
        reply.json()["status"].as_str().unwrap().to_owned()
    }

    fn wait_for(&self, run: &str, status: &str) {
        let begun = Instant::now();
        let ends = [
            "accepted",
            "refused",
            "nothing",
            "infrastructure",
            "cancelled",
        ];
        loop {
            let now = self.status(run);
            if now == status {
                break;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(180) && !ends.contains(&now.as_str()),
                "{}",
                self.client.get(&format!("/v1/runs/{run}")).body
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for a text in a growing file. Returns the rest of its line.
fn wait_for_text(file: &std::path::Path, text: &str) -> String {
    let begun = Instant::now();
    loop {
        let written = std::fs::read_to_string(file).unwrap_or_default();
        let complete_lines = written.rsplit_once('\n').map_or("", |(lines, _)| lines);
        if let Some((_, rest)) = complete_lines
            .lines()
            .find_map(|line| line.split_once(text))
        {
            return rest.to_owned();
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{written}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn issue() -> Value {
    let text = std::fs::read_to_string(example("issue.md")).unwrap();
    json!({"issue": text, "repository": example("slugs")})
}

fn numbers(events: &[StreamEvent]) -> Vec<i64> {
    events.iter().filter_map(|event| event.id).collect()
}
