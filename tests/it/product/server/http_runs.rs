//! Runs over HTTP: creating, following, reading and listing them, and rejected requests.

use serde_json::{Value, json};

use super::{ServerProcess, databases, issue, numbers, wait_until};
use crate::support::program::{TestDir, calls, example};

#[test]
fn run_is_created_followed_and_read() {
    for database in databases::all() {
        let place = TestDir::new();
        let daemon = ServerProcess::start(&place, &database, None);
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
        // A reconnecting client gets the events that it missed.
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
        // A finished run can neither be cancelled nor retried.
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
fn long_poll_ends_with_run_or_server() {
    let place = TestDir::new();
    let database = databases::embedded();
    let daemon = ServerProcess::start(&place, &database, None);
    let id = daemon.run(&issue());
    let poll = |seconds: u32| daemon.client.get(&format!("/v1/runs/{id}?wait={seconds}"));
    let first = poll(60).json();
    // The environment may have to be built first.
    let ended = match first["status"].as_str() {
        Some("queued" | "running") => poll(60).json(),
        _ => first,
    };
    assert_eq!(ended["status"], "accepted", "{ended}");
    assert_eq!(poll(61).status, 400);

    let idle = ServerProcess::start_with(&place, &database, None, "other", &["--workers", "0"]);
    let waiting_run = idle.run(&issue());
    let client = idle.client.clone();
    let path = format!("/v1/runs/{waiting_run}?wait=60");
    let poll = std::thread::spawn(move || client.get(&path).json());
    wait_until("the long poll is open", || {
        let metrics = idle.client.get("/metrics").body;
        metrics.contains("testwright_event_listeners 1")
    });
    let stopped = std::time::Instant::now();
    assert_eq!(idle.terminate(), Some(0));
    assert_eq!(poll.join().unwrap()["status"], "queued");
    assert!(stopped.elapsed().as_secs() < 30, "{stopped:?}");
}

#[test]
fn repeated_request_creates_one_run() {
    for database in databases::all() {
        let place = TestDir::new();
        // No run can finish, because the model is not available.
        let daemon = ServerProcess::start(&place, &database, None);
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
        // The title is known before a worker starts the run.
        let title = "slugify with max_length can end in a separator";
        assert_eq!(first.json()["title"], title);
        let mut other = issue();
        other["limits"] = json!({"steps": 1});
        assert_eq!(keyed("one", &other).status, 409);

        let ids: Vec<String> = (0..4).map(|_| daemon.run(&other)).collect();
        let mut expected_ids = vec![first.json()["id"].as_str().unwrap().to_owned()];
        expected_ids.extend(ids);
        let mut listed_ids = Vec::new();
        let mut query = "limit=2".to_owned();
        loop {
            let page = daemon.client.get(&format!("/v1/runs?{query}")).json();
            let runs = page["runs"].as_array().unwrap();
            listed_ids.extend(
                runs.iter()
                    .map(|run| run["id"].as_str().unwrap().to_owned()),
            );
            match page["next"].as_str() {
                Some(next) => query = format!("limit=2&before={next}"),
                None => break,
            }
        }
        listed_ids.sort();
        expected_ids.sort();
        assert_eq!(listed_ids, expected_ids);
    }
}

#[test]
fn test_of_run_is_revised_in_new_run() {
    const FILE: &str = "tests/test_slug.py";
    let place = TestDir::new();
    let test = |body: &str| format!("def test_cut_has_no_separator():\n    {body}\n");
    let short = test("assert slugify(\"How to bake bread\", max_length=7) == \"how-to\"");
    let long =
        test("slug = slugify(\"How to bake bread\", max_length=7)\n    assert slug == \"how-to\"");
    let submit = || calls(&[("submit", json!({"reason": "I expected 'how-to'."}))]);
    let insert = calls(&[("insert_function", json!({"path": FILE, "code": short}))]);
    let model = place.recording(&[insert, submit()]);
    let words = ["--allow-recordings", "--workers", "1"];
    let daemon = ServerProcess::start_with(&place, &databases::all()[0], None, "data", &words);
    let mut request = issue();
    request["approach"] = json!("testwright:fix=off:review=off");
    request["model"] = json!(model);
    request["hint"] = json!("No mocks.");
    request["test_files"] = json!([FILE]);
    let first = daemon.run(&request);
    let revise = |id: &str, hint: &str| {
        let path = format!("/v1/runs/{id}/revise");
        daemon.client.post(&path, &json!({ "hint": hint }))
    };
    daemon.wait_for(&first, "accepted");
    assert_eq!(revise(&first, " ").status, 422);
    assert_eq!(revise("0000000000000000000", "Shorter.").status, 404);
    let page = daemon.client.get(&format!("/runs/{first}")).body;
    assert!(page.contains("<button>Revise test</button>"), "{page}");

    let edit = json!({"path": FILE, "function": "test_cut_has_no_separator", "new": long});
    assert_eq!(
        place.recording(&[calls(&[("edit", edit)]), submit()]),
        model
    );
    let reply = revise(&first, "Use a variable.");
    assert_eq!(reply.status, 201, "{reply:?}");
    let second = reply.json()["id"].as_str().unwrap().to_owned();
    daemon.wait_for(&second, "accepted");
    let patch = |id: &str| daemon.client.get(&format!("/v1/runs/{id}/patch")).body;
    assert!(patch(&second).contains("+    slug = slugify("));
    assert!(!patch(&first).contains("+    slug = slugify("));
    let path = format!("/v1/runs/{second}/trajectory");
    let trajectory = daemon.client.get(&path).body;
    let started: Value = serde_json::from_str(trajectory.lines().next().unwrap()).unwrap();
    let inputs = &started["settings"]["extra_inputs"];
    assert_eq!(inputs["hint"], "No mocks.\n\nUse a variable.");
    assert_eq!(inputs["revises"]["run"], json!(first));
    assert_eq!(inputs["test_files"], json!([FILE]));
}

#[test]
fn run_of_missing_code_cannot_be_retried() {
    let place = TestDir::new();
    std::fs::create_dir_all(place.path("code/empty")).unwrap();
    let glob = place.path("code/*").display().to_string();
    let words = ["--allow-repository", &glob];
    let daemon = ServerProcess::start_with(&place, &databases::embedded(), None, "data", &words);
    for name in ["missing", "empty"] {
        let repository = place.path("code").join(name).display().to_string();
        let mut request = issue();
        request["repository"] = json!(repository);
        let id = daemon.run(&request);
        daemon.wait_for(&id, "nothing");
        let run = daemon.client.get(&format!("/v1/runs/{id}")).json();
        let reason = run["outcome"]["reason"].as_str().unwrap();
        assert!(reason.contains(&repository), "{run}");
        assert!(run["outcome"]["hint"].is_string(), "{run}");
        let address = format!("/v1/runs/{id}/retry");
        assert_eq!(daemon.client.send("POST", &address, &[], "").status, 409);
    }
}

#[test]
fn link_out_of_allowed_folder_is_rejected() {
    let place = TestDir::new();
    for folder in ["allowed/own", "secret"] {
        std::fs::create_dir_all(place.path(folder)).unwrap();
    }
    std::os::unix::fs::symlink("../secret", place.path("allowed/link")).unwrap();
    let glob = place.path("allowed/*").display().to_string();
    let words = ["--workers", "0", "--allow-repository", &glob];
    let daemon = ServerProcess::start_with(&place, &databases::embedded(), None, "data", &words);
    let status = |name: &str| {
        let repository = place.path("allowed").join(name);
        let request = json!({"issue": "it fails", "repository": repository});
        daemon.client.post("/v1/runs", &request).status
    };
    assert_eq!((status("own"), status("link")), (201, 422));
}

#[test]
fn invalid_requests_return_problems_with_hints() {
    let place = TestDir::new();
    let database = &databases::all()[0];
    let daemon = ServerProcess::start(&place, database, None);
    let kind = ("content-type", "application/json");
    let mut transcript = String::new();
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
        transcript.push_str(&format!(
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
        // The unknown field comes first, because its position is part of the message.
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
    insta::assert_snapshot!(transcript);
    // Rejected requests are not stored.
    assert_eq!(daemon.client.get("/v1/runs").json()["runs"], json!([]));
}
