//! Matrices of tests and patches over the API: verdicts, ranking, and recovery after a worker dies.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testwright_server::store::{JobKind, JobStatus, NewMatrix, Store};

use super::databases::{self, Database};
use super::{ServerProcess, issue};
use crate::product::eval::repository::{GOOD, Repository};
use crate::support::program::{TestDir, example};

const PASSING: &str = "\n\ndef test_short():\n    assert add(1, 1) == 2\n";
fn start(place: &TestDir, database: &Database, data: &str) -> ServerProcess {
    let own = place.path("*").display().to_string();
    ServerProcess::start_with(place, database, None, data, &["--allow-repository", &own])
}

/// Returns a patch that replaces the body of `add` in `pkg/calc.py`.
fn fix(repository: &Repository, add: &str) -> String {
    let code = format!("def add(a, b):\n    {add}\n\n\ndef twice(a):\n    return add(a, a)\n");
    repository.patch(|r| r.write("pkg/calc.py", code.as_bytes()))
}

fn named(name: &str, patch: &str) -> Value {
    json!({"name": name, "patch": patch})
}

fn make(daemon: &ServerProcess, request: &Value) -> String {
    let made = daemon.client.post("/v1/matrices", request);
    assert_eq!(made.status, 201, "{made:?}");
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let place = format!("/v1/matrices/{id}");
    assert_eq!(made.header("location"), Some(place.as_str()));
    id
}

fn matrix(daemon: &ServerProcess, id: &str) -> Value {
    daemon.client.get(&format!("/v1/matrices/{id}")).json()
}

/// Waits until the matrix meets a condition.
fn wait_for(daemon: &ServerProcess, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let matrix = matrix(daemon, id);
        if wanted(&matrix) {
            return matrix;
        }
        assert!(begun.elapsed() < Duration::from_secs(180), "{matrix}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn has_ended(matrix: &Value) -> bool {
    !matches!(matrix["status"].as_str(), Some("queued" | "running"))
}

fn verdicts(matrix: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let patches = matrix["patches"].as_array().unwrap().iter();
    patches
        .map(|patch| (text(&patch["name"]), text(&patch["verdict"])))
        .collect()
}

fn cell<'m>(matrix: &'m Value, tests: &str, patch: &str) -> &'m Value {
    let mut cells = matrix["cells"].as_array().unwrap().iter();
    let found = cells.find(|cell| cell["tests"] == tests && cell["patch"] == patch);
    found.unwrap_or_else(|| panic!("{tests} {patch}: {matrix}"))
}

#[test]
fn matrix_of_missing_code_cannot_be_retried() {
    let place = TestDir::new();
    let daemon = start(&place, &databases::embedded(), "data");
    let missing = place.path("missing").display().to_string();
    let patch = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n";
    let request = json!({
        "repository": missing, "tests": [named("t", patch)], "patches": [named("p", patch)],
    });
    let id = make(&daemon, &request);
    let matrix = wait_for(&daemon, &id, has_ended);
    assert_eq!(matrix["status"], "nothing", "{matrix}");
    let message = matrix["message"].as_str().unwrap();
    assert!(message.contains(&missing), "{matrix}");
    let address = format!("/v1/matrices/{id}/retry");
    assert_eq!(daemon.client.send("POST", &address, &[], "").status, 409);
}

#[test]
fn patches_are_judged_and_ranked() {
    for database in databases::all() {
        let place = TestDir::new();
        let repository = Repository::new(place.path("sums"), None);
        let daemon = start(&place, &database, "data");
        let request = json!({
            "repository": repository.folder, "issue": "add(1, -2) gives 0 <b>", "tests": [
                named("good", &repository.append_tests_patch(GOOD)),
                named("passes anyway", &repository.append_tests_patch(PASSING)),
                named("does not apply", "--- a/tests/none.py\n+++ b/tests/none.py\n@@ -1 +1 @@\n-x\n+y\n"),
            ],
            "patches": [
                named("no fix", &fix(&repository, "return a + b + (b < 0)")),
                named("right", &fix(&repository, "return a + b")),
                named("right too", &fix(&repository, "return b + a")),
                named("does not apply", "--- a/pkg/none.py\n+++ b/pkg/none.py\n@@ -1 +1 @@\n-x\n+y\n"),
            ],
        });
        let id = make(&daemon, &request);
        let matrix = wait_for(&daemon, &id, has_ended);
        assert_eq!(matrix["status"], "done", "{matrix}");
        let wanted = [
            ("no fix", "dropped"),
            ("right", "kept"),
            ("right too", "kept"),
            ("does not apply", "undecided"),
        ];
        let wanted = wanted.map(|(name, verdict)| (name.to_owned(), verdict.to_owned()));
        assert_eq!(verdicts(&matrix), wanted);
        assert_eq!(matrix["ranking"], json!(["right", "right too"]));
        assert_eq!(matrix["ties"], json!(["right", "right too"]));
        assert_eq!(matrix["patches"][1]["score"], 2.0);
        assert_eq!(matrix["cells"].as_array().unwrap().len(), 12);
        assert_eq!(matrix["all_cells"], 12);
        let test = "tests/test_calc.py::test_negative";
        let right = cell(&matrix, "good", "right");
        assert_eq!(
            (&right["old"][test], &right["new"][test]),
            (&json!("failed"), &json!("passed"))
        );
        let wrong = cell(&matrix, "good", "no fix");
        assert_eq!(
            (&wrong["new"][test], &wrong["failed"]),
            (&json!("failed"), &json!([test]))
        );
        let passing = cell(&matrix, "passes anyway", "right");
        assert_eq!(passing["old"]["tests/test_calc.py::test_short"], "passed");
        for (tests, patch, reason) in [
            ("does not apply", "right", "the tests do not apply"),
            ("good", "does not apply", "the patch does not apply"),
        ] {
            let why = cell(&matrix, tests, patch)["not_tried"].as_str().unwrap();
            assert!(why.contains(reason), "{why}");
        }

        let page = daemon.client.get(&format!("/matrices/{id}"));
        assert!(
            page.body.contains("1 of 1 pass") && page.body.contains("gives 0 &lt;b&gt;"),
            "{}",
            page.body
        );
        assert!(daemon.client.get("/matrices").body.contains(&id));
        let listed = daemon.client.get("/v1/matrices?limit=1").json();
        assert_eq!(listed["matrices"][0]["id"], id);
        assert_eq!(
            daemon
                .client
                .get(&format!("/v1/matrices?before={id}"))
                .json()["matrices"],
            json!([])
        );
        let address = format!("/v1/matrices/{id}");
        assert_eq!(
            daemon
                .client
                .send("POST", &format!("{address}/cancel"), &[], "")
                .status,
            409
        );
        assert_eq!(daemon.client.send("DELETE", &address, &[], "").status, 204);
        assert_eq!(daemon.client.get(&address).status, 404);
        assert_eq!(daemon.terminate(), Some(0));
    }
}

/// Returns a request with a slow second set of tests. Its content is new, because results are cached by content.
fn slow_request(repository: &Repository) -> Value {
    let slow = format!(
        "\n\ndef test_slow():\n    import time\n    time.sleep(5)\n    assert add(2, -3) == -1, {:?}\n",
        repository.folder.display().to_string()
    );
    json!({
        "repository": repository.folder,
        "tests": [named("quick", &repository.append_tests_patch(GOOD)), named("slow", &repository.append_tests_patch(&slow))],
        "patches": [named("right", &fix(repository, "return a + b"))],
    })
}

#[test]
fn matrix_survives_killed_server() {
    for database in databases::all() {
        let place = TestDir::new();
        let repository = Repository::new(place.path("sums"), None);
        let mut first = start(&place, &database, "data");
        let id = make(&first, &slow_request(&repository));
        let known = |matrix: &Value| {
            matrix["cells"]
                .as_array()
                .is_some_and(|cells| cells.len() == 1)
        };
        let seen = wait_for(&first, &id, known);
        first.child.kill().unwrap();
        first.child.wait().unwrap();
        database.restart();

        let data = if database.url.is_some() {
            "other"
        } else {
            "data"
        };
        let second = start(&place, &database, data);
        let matrix = wait_for(&second, &id, |matrix| matrix["attempts"] == 2);
        assert_eq!(matrix["cells"], seen["cells"], "what was known stays");
        let matrix = wait_for(&second, &id, has_ended);
        assert_eq!(matrix["status"], "done", "{matrix}");
        assert_eq!(cell(&matrix, "quick", "right"), &seen["cells"][0]);
        assert_eq!(matrix["patches"][0]["score"], 2.0);
    }
}

#[test]
fn queued_and_running_matrix_is_cancelled() {
    let place = TestDir::new();
    let repository = Repository::new(place.path("sums"), None);
    let idle = ServerProcess::start_idle(&place);
    let mut request = slow_request(&repository);
    request["repository"] = json!(example("slugs"));
    let waiting = make(&idle, &request);
    let address = format!("/v1/matrices/{waiting}");
    assert_eq!(idle.client.send("DELETE", &address, &[], "").status, 409);
    let cancelled = idle
        .client
        .send("POST", &format!("{address}/cancel"), &[], "");
    assert_eq!(
        (cancelled.status, &cancelled.json()["status"]),
        (202, &json!("cancelled"))
    );

    let daemon = start(&place, &databases::all()[0], "other");
    let id = make(&daemon, &slow_request(&repository));
    wait_for(&daemon, &id, |matrix| {
        matrix["cells"]
            .as_array()
            .is_some_and(|cells| cells.len() == 1)
    });
    let asked = daemon
        .client
        .send("POST", &format!("/v1/matrices/{id}/cancel"), &[], "");
    assert_eq!(
        (asked.status, &asked.json()["cancelling"]),
        (202, &json!(true))
    );
    let matrix = wait_for(&daemon, &id, has_ended);
    assert_eq!(matrix["status"], "cancelled");
    assert_eq!(matrix["cells"].as_array().unwrap().len(), 1);

    // The retried matrix keeps its known results, and its commit, on which the tests fail.
    let fixed = b"def add(a, b):\n    return a + b\n\n\ndef twice(a):\n    return add(a, a)\n";
    repository.write("pkg/calc.py", fixed);
    repository.git(&["commit", "-qam", "Fix"]);
    let retry = format!("/v1/matrices/{id}/retry");
    let again = daemon.client.send("POST", &retry, &[], "");
    assert_eq!(again.status, 202, "{again:?}");
    let done = wait_for(&daemon, &id, has_ended);
    assert_eq!(done["status"], "done", "{done}");
    assert_eq!(done["cells"].as_array().unwrap().len(), 2);
    assert_eq!(cell(&done, "quick", "right"), &matrix["cells"][0]);
    let passed = &cell(&done, "slow", "right")["passed"];
    assert_eq!(passed.as_array().unwrap().len(), 1, "{done}");
    assert_eq!(daemon.client.send("POST", &retry, &[], "").status, 409);
}

#[test]
fn repeated_request_creates_one_matrix() {
    for database in databases::all() {
        let place = TestDir::new();
        let daemon =
            ServerProcess::start_with(&place, &database, None, "data", &["--workers", "0"]);
        let keyed = |key: &str, request: &Value| {
            let headers = [
                ("content-type", "application/json"),
                ("idempotency-key", key),
            ];
            let body = request.to_string();
            daemon.client.send("POST", "/v1/matrices", &headers, &body)
        };
        let request = json!({
            "repository": example("slugs"), "tests": [named("t", "+")], "patches": [named("p", "+")],
        });
        let (first, again) = (keyed("one", &request), keyed("one", &request));
        assert_eq!((first.status, again.status), (201, 200), "{again:?}");
        assert_eq!(first.json()["id"], again.json()["id"]);
        let mut other = request.clone();
        other["patches"][0]["name"] = json!("q");
        assert_eq!(keyed("one", &other).status, 409);
        assert_eq!(keyed("two", &other).status, 201);
        assert_eq!(keyed("", &other).status, 400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn orphaned_matrix_is_claimed() {
    for database in databases::all() {
        let place = TestDir::new();
        let repository = Repository::new(place.path("sums"), None);
        let embedded = Store::url_in(&place.path("data"));
        std::fs::create_dir(place.path("data")).unwrap();
        let url = database.url.as_deref().unwrap_or(&embedded);
        let store = Store::open(url).await.unwrap();
        let input = json!({
            "repository": repository.folder, "commit": null, "issue": null,
            "tests": [named("good", &repository.append_tests_patch(GOOD))],
            "patches": [named("right", &fix(&repository, "return a + b"))],
        });
        let new = NewMatrix {
            request: input.to_string(),
            repository: repository.folder.display().to_string(),
            owner: "a".to_owned(),
            idempotency_key: None,
        };
        // One matrix is stored by another process; the other is claimed by a process that is gone.
        let (waits, _) = store.add_matrix(&new).await.unwrap();
        let (lost, _) = store.add_matrix(&new).await.unwrap();
        let taken = store.claim_next("gone").await.unwrap().unwrap();
        assert_eq!(taken.kind, JobKind::Matrix);
        let daemon = start(&place, &database, "data");
        for id in [&waits.id, &lost.id] {
            let matrix = wait_for(&daemon, id.as_str(), has_ended);
            assert_eq!(matrix["status"], "done", "{matrix}");
            let attempts = if id == &taken.id { 2 } else { 1 };
            assert_eq!(matrix["attempts"], attempts);
            let progress = store.matrix_progress(id).await.unwrap().unwrap();
            assert_eq!((progress.status, progress.cells), (JobStatus::Done, 1));
            let path = format!("/v1/matrices/{id}?wait=60&cells=1");
            assert_eq!(daemon.client.get(&path).json(), matrix);
        }
        let unknown = format!("/v1/matrices/{}?wait=60", "0".repeat(19));
        assert_eq!(daemon.client.get(&unknown).status, 404);
    }
}

#[test]
fn run_test_uses_its_old_code() {
    let place = TestDir::new();
    let daemon = ServerProcess::start(&place, &databases::all()[0], None);
    let run = daemon.run(&issue());
    daemon.wait_for(&run, "accepted");
    let request = json!({
        "tests": [{"run": run}],
        "patches": [named("wrong", &slug_patch(".lower()")), named("right", &slug_patch(".rstrip(\"-\")"))],
    });
    let id = make(&daemon, &request);
    let matrix = wait_for(&daemon, &id, has_ended);
    assert_eq!(matrix["ranking"], json!(["right"]), "{matrix}");
    assert_eq!(matrix["tests"], json!([run]));
}

/// Returns a patch that changes the result of `truncate`.
pub(super) fn slug_patch(more: &str) -> String {
    format!(
        "--- a/src/slugs/slug.py\n+++ b/src/slugs/slug.py\n@@ -30,4 +30,4 @@\n \n def truncate(slug, max_length):\n     \"\"\"Cut a slug \
         to its first ``max_length`` characters.\"\"\"\n-    return slug[:max_length]\n+    return slug[:max_length]{more}\n"
    )
}

#[test]
fn invalid_matrices_are_rejected() {
    let place = TestDir::new();
    let daemon = ServerProcess::start_idle(&place);
    let run = daemon.run(&issue());
    let request = |changes: Value| {
        let mut request = json!({
            "repository": example("slugs"), "tests": [named("t", "+")], "patches": [named("p", "+")],
        });
        let changes = changes.as_object().unwrap().clone();
        request.as_object_mut().unwrap().extend(changes);
        request
    };
    let many = |n: usize| -> Vec<Value> { (0..n).map(|n| named(&n.to_string(), "+")).collect() };
    for (changes, reason) in [
        (json!({"tests": []}), "there are 0 sets of tests"),
        (json!({"tests": many(21)}), "there are 21 sets of tests"),
        (json!({"patches": many(51)}), "there are 51 patches"),
        (
            json!({"patches": [named("p", "+"), named("p", "-")]}),
            "two items of `patches` have the name",
        ),
        (
            json!({"patches": [named("p\n", "+")]}),
            "read `patches`: it contains an invisible character",
        ),
        (
            json!({"patches": [named(&"p".repeat(101), "+")]}),
            "is not a line of 1 to 100 characters",
        ),
        (
            json!({"patches": [named("p", &"+".repeat((1 << 20) + 1))]}),
            "at most 1048576 bytes",
        ),
        (
            json!({"tests": [{"name": "t"}]}),
            "neither a patch nor a run",
        ),
        (
            json!({"tests": [{"patch": "+"}]}),
            "a set of tests has no name",
        ),
        (
            json!({"tests": [{"run": "../../etc"}]}),
            "no run has the id",
        ),
        (
            json!({"tests": [{"run": run}]}),
            "has no accepted test: its status is queued",
        ),
        (
            json!({"repository": "/etc"}),
            "this server does not allow it",
        ),
        (
            json!({"repository": "ext::sh -c id"}),
            "it contains blanks, special characters or `..`",
        ),
        (json!({"repository": null}), "no repository was given"),
        (
            json!({"commit": "--output=x"}),
            "not a valid commit, tag or branch name",
        ),
        (json!({"more": 1}), "unknown field"),
    ] {
        let refused = daemon.client.post("/v1/matrices", &request(changes));
        assert_eq!(refused.status, 422, "{reason}: {refused:?}");
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(reason), "{reason}: {detail}");
    }
    for address in [
        "/v1/matrices/nothing",
        "/v1/matrices/..%2fetc",
        "/matrices/0000000000000000000",
    ] {
        assert_eq!(daemon.client.get(address).status, 404, "{address}");
    }
    assert_eq!(
        daemon.client.get("/v1/matrices").json()["matrices"],
        json!([])
    );
}
