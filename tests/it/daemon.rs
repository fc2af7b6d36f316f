//! The daemon as a client meets it: over HTTP, on both databases, through crashes.

mod client;
mod comparisons;
pub mod databases;
mod github;
mod matrices;
mod mcp;
mod mcp_client;
mod operations;
mod pages;
mod queue;
mod quota;
mod secrets;
mod shares;
mod tokens;
mod traces;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{Place, example};
use crate::server::{Request, Response, Server};
use client::{Client, StreamEvent};
use databases::Database;

/// A daemon that runs; it is killed with the test.
struct Daemon {
    child: Child,
    client: Client,
}

impl Daemon {
    fn start(place: &Place, database: &Database, model: Option<&Server>) -> Daemon {
        Daemon::start_in(place, database, model, "data")
    }

    /// One that works on nothing.
    fn start_idle(place: &Place) -> Daemon {
        Daemon::start_with(
            place,
            &databases::all()[0],
            None,
            "data",
            &["--workers", "0"],
        )
    }

    fn start_in(place: &Place, database: &Database, model: Option<&Server>, data: &str) -> Daemon {
        Daemon::start_with(place, database, model, data, &[])
    }

    fn start_with(
        place: &Place,
        database: &Database,
        model: Option<&Server>,
        data: &str,
        words: &[&str],
    ) -> Daemon {
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
                .unwrap_or_else(|| panic!("it ended: {before:?}"))
                .unwrap();
            if let Some((_, address)) = line.split_once("listening on http://") {
                break address.to_owned();
            }
            before.push(line);
        };
        // Nobody is to wait for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Daemon {
            child,
            client: Client { address },
        }
    }

    /// What it says goes into a file.
    fn logged(mut command: Command, log: &std::path::Path) -> Daemon {
        command.stderr(std::fs::File::create(log).unwrap());
        let child = command.spawn().unwrap();
        let address = wait_for_text(log, "listening on http://");
        Daemon {
            child,
            client: Client { address },
        }
    }

    /// Ends it orderly, and says how it ended.
    fn terminate(mut self) -> Option<i32> {
        let killed = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        assert!(killed.unwrap().success());
        self.child.wait().unwrap().code()
    }

    fn run(&self, request: &Value) -> String {
        let made = self.client.post("/v1/runs", request);
        assert_eq!(made.status, 201, "{made:?}");
        let id = made.json()["id"].as_str().unwrap().to_owned();
        assert_eq!(
            made.header("location"),
            Some(format!("/v1/runs/{id}").as_str())
        );
        id
    }

    fn status(&self, run: &str) -> String {
        let shown = self.client.get(&format!("/v1/runs/{run}"));
        shown.json()["status"].as_str().unwrap().to_owned()
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

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What follows a text in a file that is being written, to the end of the line.
fn wait_for_text(file: &std::path::Path, text: &str) -> String {
    let begun = Instant::now();
    loop {
        let written = std::fs::read_to_string(file).unwrap_or_default();
        let whole = written.rsplit_once('\n').map_or("", |(whole, _)| whole);
        if let Some((_, rest)) = whole.lines().find_map(|line| line.split_once(text)) {
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

#[test]
fn a_run_is_made_followed_and_read_on_every_database() {
    for database in databases::all() {
        let place = Place::new();
        let daemon = Daemon::start(&place, &database, None);
        let id = daemon.run(&issue());
        let events = daemon.client.follow(&id, 0, |_| false);
        let (end, lines) = events.split_last().unwrap();
        let all: Vec<i64> = (1..=lines.len() as i64).collect();
        assert_eq!(numbers(lines), all);
        assert_eq!(end.kind, "end");
        let run: Value = serde_json::from_str(&end.data).unwrap();
        assert_eq!(run["status"], "accepted");
        assert_eq!(run["attempts"], 1);
        assert_eq!(
            run["title"],
            "slugify with max_length can end in a separator"
        );
        // A client that was cut off gets what it missed.
        assert_eq!(daemon.client.follow(&id, 5, |_| false), events[5..]);

        let of_run = |what: &str| daemon.client.get(&format!("/v1/runs/{id}{what}"));
        assert_eq!(of_run("").json(), run);
        let patch = of_run("/patch");
        assert_eq!(
            patch.header("content-type"),
            Some("text/x-diff; charset=utf-8")
        );
        assert!(patch.body.contains("+++ b/tests/test_slug.py"), "{patch:?}");
        assert_eq!(of_run("/evidence").json()["tests"][0]["class"], "assertion");
        let trajectory = of_run("/trajectory").body;
        let of_stream: Vec<&str> = lines.iter().map(|event| event.data.as_str()).collect();
        assert_eq!(trajectory.lines().collect::<Vec<_>>(), of_stream);

        let listed = |query: &str| daemon.client.get(&format!("/v1/runs?{query}")).json();
        assert_eq!(listed("status=accepted")["runs"], json!([run]));
        assert_eq!(listed("status=queued")["runs"], json!([]));
        // It has a result, and neither ends nor goes on.
        for what in ["/cancel", "/retry"] {
            let refused = daemon
                .client
                .send("POST", &format!("/v1/runs/{id}{what}"), &[], "");
            assert_eq!(refused.status, 409, "{refused:?}");
        }
        assert_eq!(daemon.terminate(), Some(0));
    }
}

#[test]
fn the_same_request_is_made_once_and_pages_hold_every_run() {
    for database in databases::all() {
        let place = Place::new();
        // Nothing is worked on: the model is not there.
        let daemon = Daemon::start(&place, &database, None);
        let keyed = |key: &str, request: &Value| {
            let headers = [
                ("content-type", "application/json"),
                ("idempotency-key", key),
            ];
            daemon
                .client
                .send("POST", "/v1/runs", &headers, &request.to_string())
        };
        let first = keyed("one", &issue());
        let again = keyed("one", &issue());
        assert_eq!((first.status, again.status), (201, 200));
        assert_eq!(first.json()["id"], again.json()["id"]);
        let mut other = issue();
        other["limits"] = json!({"steps": 1});
        assert_eq!(keyed("one", &other).status, 409);

        let ids: Vec<String> = (0..4).map(|_| daemon.run(&other)).collect();
        let mut wanted = vec![first.json()["id"].as_str().unwrap().to_owned()];
        wanted.extend(ids);
        let mut seen = Vec::new();
        let mut query = "limit=2".to_owned();
        loop {
            let page = daemon.client.get(&format!("/v1/runs?{query}")).json();
            let runs = page["runs"].as_array().unwrap();
            seen.extend(
                runs.iter()
                    .map(|run| run["id"].as_str().unwrap().to_owned()),
            );
            match page["next"].as_str() {
                Some(next) => query = format!("limit=2&before={next}"),
                None => break,
            }
        }
        seen.sort();
        wanted.sort();
        assert_eq!(seen, wanted);
    }
}

#[test]
fn what_cannot_be_worked_on_is_a_problem_with_a_hint() {
    let place = Place::new();
    let database = &databases::all()[0];
    let daemon = Daemon::start(&place, database, None);
    let kind = ("content-type", "application/json");
    let mut told = String::new();
    let mut send = |method: &str, path: &str, headers: &[(&str, &str)], body: &str| {
        let reply = daemon.client.send(method, path, headers, body);
        assert_eq!(
            reply.header("content-type"),
            Some("application/problem+json"),
            "{reply:?}"
        );
        let problem = reply.json();
        assert_eq!(problem["status"], reply.status);
        let hint = problem["hint"]
            .as_str()
            .unwrap_or_default()
            .replace(&example("*"), "…");
        told.push_str(&format!(
            "{} {}\n  {hint}\n",
            reply.status,
            problem["detail"].as_str().unwrap()
        ));
    };
    let repository = example("slugs");
    let run = |fields: Value| {
        let mut request = json!({"issue": "it fails", "repository": repository});
        request
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        request.to_string()
    };
    for body in [
        "{".to_owned(),
        "[]".to_owned(),
        json!({"issue": "it fails"}).to_string(),
        run(json!({"issue": " "})),
        run(json!({"issue": "https://example.org/o/n/issues/1"})),
        run(json!({"issue": "file:///etc/passwd"})),
        run(json!({"repository": "/etc"})),
        run(json!({"repository": "https://127.0.0.1/o/n"})),
        run(json!({"repository": format!("{repository}/../../..")})),
        run(json!({"commit": "--upload-pack=id"})),
        run(json!({"approach": "none-such"})),
        run(json!({"model": "replay:/etc/passwd"})),
        run(json!({"limits": {"steps": 0}})),
        // The unknown field comes first: where it stands is part of the answer.
        json!({"limit": 1, "issue": "it fails", "repository": repository}).to_string(),
    ] {
        send("POST", "/v1/runs", &[kind], &body);
    }
    send(
        "POST",
        "/v1/runs",
        &[("content-type", "text/plain")],
        &run(json!({})),
    );
    send(
        "POST",
        "/v1/runs",
        &[kind, ("origin", "http://example.org")],
        &run(json!({})),
    );
    send(
        "POST",
        "/v1/runs",
        &[kind, ("host", "example.org")],
        &run(json!({})),
    );
    send("GET", "/v1/runs?limit=0", &[], "");
    send("GET", "/v1/runs?status=lost", &[], "");
    send("GET", "/v1/runs/..%2f..%2fetc", &[], "");
    send("GET", "/v1/runs/0000000000000000000/events", &[], "");
    send("GET", "/v2", &[], "");
    send("DELETE", "/v1/runs", &[], "");
    insta::assert_snapshot!(told);
    // Nothing of it is stored.
    assert_eq!(daemon.client.get("/v1/runs").json()["runs"], json!([]));
}

const SLOW: &str = "import time; time.sleep(5); print('slept')";

/// Says what comes next after what was said, whoever asks.
fn model() -> Server {
    Server::start(|request: &Request| {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        let said = messages.iter().filter(|m| m["role"] == "assistant").count();
        let test = "def test_cut():\n    assert slugify(\"How to bake bread\", max_length=7) == \"how-to\"\n";
        let call = |name: &str, arguments: Value| {
            let function = json!({"name": name, "arguments": arguments.to_string()});
            json!([{"id": format!("call{said}"), "type": "function", "function": function}])
        };
        let message = match said {
            _ if body["tools"].is_null() => json!({"content": "YES\nThe same wrong value."}),
            0 => {
                json!({"tool_calls": call("insert_function", json!({"path": "tests/test_slug.py", "code": test}))})
            }
            1 => json!({"tool_calls": call("run_python", json!({"code": SLOW}))}),
            2 => json!({"tool_calls": call("submit", json!({"reason": "I expected 'how-to'."}))}),
            _ => {
                json!({"tool_calls": call("submit", json!({"reason": "It is the issue's own call."}))})
            }
        };
        let finish = if message["tool_calls"].is_null() {
            "stop"
        } else {
            "tool_calls"
        };
        let mut message = message;
        message["role"] = json!("assistant");
        Response::json(json!({
            "choices": [{"index": 0, "finish_reason": finish, "message": message}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010},
        }))
        .with("content-type", "application/json")
    })
}

fn slow_issue() -> Value {
    let mut request = issue();
    request["approach"] = json!("testwright");
    request["model"] = json!("m");
    request
}

fn is_slow_step(event: &StreamEvent) -> bool {
    event.data.contains("time.sleep(5)")
}

#[test]
fn the_run_of_a_killed_server_is_gone_on_with_by_another() {
    for database in databases::all() {
        let (place, model) = (Place::new(), model());
        let mut first = Daemon::start(&place, &database, Some(&model));
        let id = first.run(&slow_issue());
        let seen = first.client.follow(&id, 0, is_slow_step);
        assert!(is_slow_step(seen.last().unwrap()), "{seen:?}");
        first.child.kill().unwrap();
        first.child.wait().unwrap();
        database.restart();

        // With Postgres it has nothing of the first one's disk.
        let data = if database.url.is_some() {
            "other"
        } else {
            "data"
        };
        let second = Daemon::start_in(&place, &database, Some(&model), data);
        let events = second.client.follow(&id, 0, |_| false);
        let (end, lines) = events.split_last().unwrap();
        let run: Value = serde_json::from_str(&end.data).unwrap();
        assert_eq!(run["status"], "accepted", "{run}");
        assert_eq!(run["attempts"], 2);
        let all: Vec<i64> = (1..=lines.len() as i64).collect();
        assert_eq!(numbers(lines), all);
        assert_eq!(lines[..seen.len()], seen[..], "what was on record stays");
        let replies = lines
            .iter()
            .filter(|e| e.data.starts_with(r#"{"event":"reply""#))
            .count();
        let asked = model.requests(|_| ()).len();
        assert_eq!(asked, replies, "no call was paid twice");
    }
}

#[test]
fn a_run_is_cancelled_given_back_and_taken_up_again() {
    let (place, model) = (Place::new(), model());
    let database = &databases::all()[0];
    let first = Daemon::start(&place, database, Some(&model));
    let id = first.run(&slow_issue());
    first.client.follow(&id, 0, is_slow_step);
    let post = |daemon: &Daemon, what: &str| {
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
    // It goes on while the server ends, which gives it back.
    let begun = Instant::now();
    assert_eq!(first.terminate(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(60));

    let second = Daemon::start(&place, database, Some(&model));
    second.wait_for(&id, "accepted");
    let events = second.client.follow(&id, 0, |_| false);
    let all: Vec<i64> = (1..events.len() as i64).collect();
    assert_eq!(numbers(&events), all);
}

#[test]
fn workers_of_their_own_take_runs_and_give_back_what_they_had() {
    let databases = databases::all();
    // SQLite is for the processes of one machine, which these are.
    let database = databases.last().unwrap();
    let (place, model) = (Place::new(), model());
    let url = match &database.url {
        Some(url) => url.clone(),
        None => format!("sqlite:{}", place.path("data/testwright.db").display()),
    };
    let server = Daemon::start_with(&place, database, Some(&model), "data", &["--workers", "0"]);
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

#[test]
fn the_command_line_lists_follows_and_exports_runs() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &databases::all()[0], None);
    let id = daemon.run(&issue());
    let server = format!("http://{}", daemon.client.address);
    let runs = |words: &[&str]| {
        let mut command = place.testwright();
        command.arg("runs").args(words).args(["--server", &server]);
        let output = command.output().unwrap();
        let code = output.status.code().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (code, text(&output.stdout), text(&output.stderr))
    };
    let (code, followed, told) = runs(&["follow", &id]);
    assert_eq!(code, 0, "{told}");
    assert!(followed.contains("run_pytest"), "{followed}");
    let (_, listed, _) = runs(&["list"]);
    let row = format!("{id}  accepted");
    assert!(
        listed.starts_with(&row) && followed.contains(&row),
        "{listed}"
    );
    let (_, shown, _) = runs(&["show", &id]);
    assert!(shown.contains("+++ b/tests/test_slug.py"), "{shown}");
    let out = place.path("exported");
    let (code, _, told) = runs(&["export", &id, "--out", &out.display().to_string()]);
    assert_eq!(code, 0, "{told}");
    for name in [
        "run.json",
        "trajectory.jsonl",
        "test.patch",
        "evidence.json",
    ] {
        assert!(out.join(name).is_file(), "{name}");
    }
    // What was exported is a run's folder as any other.
    let card = place.testwright().arg("show").arg(&out).output().unwrap();
    assert!(String::from_utf8_lossy(&card.stdout).contains("A test was accepted."));
    for (words, hint) in [
        (&["show", "nothing"][..], "lists those that there are"),
        (&["cancel", &id], "the run has ended"),
        (&["retry", &id], "POST /v1/runs makes a new one"),
        (
            &["export", &id, "--out", &out.display().to_string()],
            "it is there already",
        ),
    ] {
        let (code, _, told) = runs(words);
        assert!(code == 2 && told.contains(hint), "{code} {told}");
    }
    drop(daemon);
    let (code, _, told) = runs(&["list"]);
    assert!(
        code == 3 && told.contains("testwright serve"),
        "{code} {told}"
    );
}
