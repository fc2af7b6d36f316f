//! MCP as used by other agents: writing and checking tests, and sessions, over HTTP and stdio.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::matrices::slug_patch;
use super::mcp_client::{McpClient, text};
use super::{ServerProcess, databases, issue, model, slow_issue};
use crate::product::eval::repository::Repository;
use crate::support::program::{TestDir, example};

pub(super) const GOOD: &str = "from slugs import slugify\n\n\ndef test_no_separator_at_the_end():\n    assert slugify(\"one two\", max_length=4) == \"one\"\n";
const PASSING: &str = "from slugs import slugify\n\n\ndef test_words():\n    assert slugify(\"one two\") == \"one-two\"\n";

pub(super) fn start(place: &TestDir, words: &[&str]) -> ServerProcess {
    ServerProcess::start_with(place, &databases::all()[0], None, "data", words)
}

/// Returns the descendants of a process.
pub(super) fn descendants(process: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pairs: Vec<(u32, u32)> = processes
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            // The state and the parent follow the name, which may contain any character.
            let (_, behind) = stat.rsplit_once(") ")?;
            Some((pid, behind.split(' ').nth(1)?.parse().ok()?))
        })
        .collect();
    let mut found = vec![process];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        found.extend(
            pairs
                .iter()
                .filter(|(_, of)| *of == parent)
                .map(|(pid, _)| *pid),
        );
        at += 1;
    }
    found.split_off(1)
}

pub(super) async fn wait_until_alone(process: u32) {
    let begun = Instant::now();
    while !descendants(process).is_empty() {
        let left = descendants(process);
        assert!(begun.elapsed() < Duration::from_secs(60), "{left:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn writes_a_test(client: &mut McpClient) -> Value {
    let written = client.call("write_failing_test", issue()).await;
    assert_eq!(written["status"], "accepted", "{written}");
    let patch = written["patch"].as_str().unwrap();
    assert!(patch.contains("+++ b/tests/test_slug.py"), "{patch}");
    assert_eq!(written["evidence"]["tests"][0]["class"], "assertion");
    let progress = client
        .all_progress(&["queued", "accepted", "step 1: ", ": run_pytest"])
        .await;
    assert!(
        !progress.iter().any(|line| line.contains("tokens")),
        "{progress:?}"
    );
    written
}

#[tokio::test(flavor = "multi_thread")]
async fn written_test_reports_progress() {
    let place = TestDir::new();
    let daemon = start(&place, &[]);
    let mut client = McpClient::over_http(&daemon).await;
    let written = writes_a_test(&mut client).await;
    let run = written["run"].as_str().unwrap();
    assert_eq!(daemon.status(run), "accepted");
    let schema = client.output_schema("write_failing_test").await;
    let named = schema["properties"].as_object().unwrap();
    let answered = written.as_object().unwrap();
    assert!(
        answered.keys().all(|name| named.contains_key(name)),
        "{schema}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_request_ends_its_run() {
    let place = TestDir::new();
    let model = model();
    let daemon = ServerProcess::start(&place, &databases::all()[0], Some(&model));
    let mut client = McpClient::over_http(&daemon).await;
    let call = client.start("write_failing_test", slow_issue()).await;
    client.wait_for_progress("running").await;
    let runs = daemon.client.get("/v1/runs").json();
    let id = runs["runs"][0]["id"].as_str().unwrap().to_owned();
    call.cancel(Some("no longer wanted".to_owned()))
        .await
        .unwrap();
    daemon.wait_for(&id, "cancelled");
    // The client can still make calls.
    assert!(client.tools().await.contains(&"check_test".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn given_test_is_judged_with_reason() {
    let place = TestDir::new();
    let daemon = start(&place, &["--workers", "0"]);
    let client = McpClient::over_http(&daemon).await;
    let check = |test: Value| {
        let mut arguments = test;
        arguments["repository"] = json!(example("slugs"));
        arguments
    };
    let file = |content: &str| json!({"path": "tests/test_given.py", "content": content});
    let good = client.call("check_test", check(file(GOOD))).await;
    assert_eq!(good["accepted"], true, "{good}");
    let id = "tests/test_given.py::test_no_separator_at_the_end";
    assert_eq!(good["failing"][0]["id"], id);
    // The patch that the gate ran can be passed again.
    let again = client
        .call("check_test", check(json!({"patch": good["patch"]})))
        .await;
    assert_eq!(again, good);

    let result = client
        .try_call("check_test", check(file(PASSING)))
        .await
        .unwrap();
    let passing = result.structured_content.clone().unwrap();
    assert_eq!(passing["accepted"], false);
    assert_eq!(passing["findings"][0]["rule"], "fails");
    assert!(text(&result).contains("Not accepted"), "{result:?}");

    for (test, reason) in [
        (json!({}), "neither a patch nor a file"),
        (json!({"patch": "+x"}), "the patch does not apply"),
        (
            file(GOOD)
                .as_object()
                .map(|f| json!({"patch": "", "path": f["path"], "content": ""}))
                .unwrap(),
            "or both",
        ),
        (
            json!({"path": "../../outside.py", "content": GOOD}),
            "outside",
        ),
        (json!({"path": "/etc/passwd", "content": GOOD}), "outside"),
        (
            json!({"path": "tests/test_a.py", "content": GOOD, "model": "gpt-5-mini"}),
            "there is no issue",
        ),
    ] {
        let told = client.refusal("check_test", check(test.clone())).await;
        assert!(told.contains(reason), "{test}: {told}");
    }
    wait_until_alone(daemon.child.id()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn correct_patch_is_kept() {
    let place = TestDir::new();
    let daemon = start(&place, &[]);
    let mut client = McpClient::over_http(&daemon).await;
    let test: String = GOOD.lines().map(|line| format!("+{line}\n")).collect();
    let test = format!("--- /dev/null\n+++ b/tests/test_given.py\n@@ -0,0 +1,5 @@\n{test}");
    let arguments = json!({
        "repository": example("slugs"), "tests": [{"name": "given", "patch": test}], "patches": [
            {"name": "wrong", "patch": slug_patch(".lower()")},
            {"name": "right", "patch": slug_patch(".rstrip(\"-\")")},
        ],
    });
    let matrix = client.call("check_patch", arguments).await;
    assert_eq!(matrix["status"], "done", "{matrix}");
    assert_eq!(matrix["ranking"], json!(["right"]));
    assert_eq!(matrix["patches"][0]["verdict"], "dropped");
    client.all_progress(&["done"]).await;
    let id = matrix["id"].as_str().unwrap();
    let kept = daemon.client.get(&format!("/v1/matrices/{id}")).json();
    assert_eq!(kept, matrix);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_test_files_report_lines() {
    let place = TestDir::new();
    let daemon = start(&place, &["--workers", "0"]);
    let client = McpClient::over_http(&daemon).await;
    let case = |id: &str, content: &str| json!({"id": id, "path": "tests/test_given.py", "content": content});
    let given = json!({
        "repository": example("slugs"),
        "cases": [case("good", PASSING), case("bad", GOOD), case("none", "")],
    });
    let verified = client.call("verify", given.clone()).await;
    let of = |at: usize, key: &str| verified["cases"][at][key].clone();
    assert_eq!(
        (of(0, "id"), of(0, "passed")),
        (json!("good"), json!(true)),
        "{verified}"
    );
    assert_eq!(
        (of(1, "outcome"), of(2, "outcome")),
        (json!("failed"), json!("not_run"))
    );
    assert!(
        of(1, "reason")
            .as_str()
            .unwrap()
            .contains("test_no_separator_at_the_end")
    );

    let mut asked = given;
    asked["contexts"] = json!(true);
    asked["files"] = json!(["src/slugs/slug.py"]);
    let covered = client.call("cov", asked.clone()).await;
    let bad = &covered["cases"][1];
    assert_eq!(bad["outcome"], "failed");
    let slug = &bad["files"]["src/slugs/slug.py"];
    assert_eq!(slug["missed"], "23", "{covered}");
    assert_eq!(bad["files"].as_object().unwrap().len(), 1);
    let test = "tests/test_given.py::test_no_separator_at_the_end";
    assert_eq!(
        bad["contexts"][test]["src/slugs/slug.py"], "22,24-28,33",
        "{covered}"
    );
    asked["cases"] = json!([]);
    let told = client.refusal("cov", asked).await;
    assert!(told.contains("the allowed number is 1 to"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn forbidden_inputs_are_rejected() {
    let place = TestDir::new();
    let daemon = start(&place, &["--workers", "0"]);
    let http = McpClient::over_http(&daemon).await;
    let stdio = McpClient::on_stdio(&place, &[]).await;
    let one = [json!({"name": "a", "patch": "+"})];
    let patches = json!({"tests": one, "patches": one});
    let cases = json!({"cases": [{"path": "tests/test_a.py", "content": GOOD}]});
    for client in [&http, &stdio] {
        for repository in [
            "/etc",
            "ext::sh -c id",
            "file:///etc",
            "http://127.0.0.1/a/b",
            "../slugs",
        ] {
            for (tool, mut arguments) in [
                ("write_failing_test", json!({"issue": "It fails"})),
                (
                    "check_test",
                    json!({"path": "tests/test_a.py", "content": GOOD}),
                ),
                ("open_session", json!({})),
                ("check_patch", patches.clone()),
                ("verify", cases.clone()),
                ("cov", cases.clone()),
            ] {
                arguments["repository"] = json!(repository);
                let told = client.refusal(tool, arguments).await;
                assert!(
                    told.contains("failed to use that repository"),
                    "{tool} {repository}: {told}"
                );
            }
        }
        for (arguments, reason) in [
            (
                json!({"repository": example("slugs"), "commit": "--upload-pack=id"}),
                "not a valid commit, tag or branch name",
            ),
            (
                json!({"repository": example("slugs"), "more": 1}),
                "unknown field",
            ),
            (json!({}), "no repository was given"),
        ] {
            let told = client.refusal("open_session", arguments).await;
            assert!(told.contains(reason), "{reason}: {told}");
        }
        let told = client
            .refusal("write_failing_test", json!({"issue": "a", "repository": example("slugs"), "model": "replay:/etc/passwd"}))
            .await;
        assert!(
            told.contains("recordings are disabled on this server"),
            "{told}"
        );
    }
    assert_eq!(daemon.client.get("/v1/runs").json()["runs"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn session_ends_with_its_client() {
    let place = TestDir::new();
    let daemon = start(&place, &["--workers", "0", "--mcp-sandboxes", "1"]);
    let first = McpClient::over_http(&daemon).await;
    let second = McpClient::over_http(&daemon).await;
    let named = json!({"repository": example("slugs")});
    let opened = first.call("open_session", named.clone()).await;
    assert_eq!(opened["repository"], "slugs");
    assert!(first.tools().await.contains(&"submit".to_owned()));
    assert!(!second.tools().await.contains(&"submit".to_owned()));
    first.wait_for_tool_changes(1).await;
    let created = json!({"path": "tests/test_given.py", "content": GOOD});
    first.call("create_file", created).await;
    let submitted = first
        .call("submit", json!({"reason": "it ends in a separator"}))
        .await;
    assert_eq!(submitted["accepted"], true, "{submitted}");
    // The other client has no access to the session, and no room for its own.
    let told = second.try_call("submit", json!({})).await.unwrap_err();
    assert!(told.contains("unknown tool `submit`"), "{told}");
    let told = second.refusal("open_session", named.clone()).await;
    assert!(
        told.contains("the limit of 1 sandboxes is reached"),
        "{told}"
    );
    let told = second.refusal("close_session", json!({})).await;
    assert!(told.contains("no session is open"), "{told}");
    let told = first.refusal("open_session", named.clone()).await;
    assert!(told.contains("only one is allowed"), "{told}");

    assert!(!descendants(daemon.child.id()).is_empty());
    first.leave().await;
    wait_until_alone(daemon.child.id()).await;
    // Its slot becomes free shortly after its processes end.
    let began = Instant::now();
    loop {
        let opened = second.try_call("open_session", named.clone()).await;
        let opened = opened.unwrap();
        if opened.is_error != Some(true) {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{opened:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    second.call("close_session", json!({})).await;
    wait_until_alone(daemon.child.id()).await;
    assert!(!second.tools().await.contains(&"submit".to_owned()));
    second.wait_for_tool_changes(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_end_when_idle_or_stopped() {
    let place = TestDir::new();
    let daemon = start(&place, &["--workers", "0", "--mcp-idle", "1"]);
    let client = McpClient::over_http(&daemon).await;
    let named = json!({"repository": example("slugs")});
    client.call("open_session", named.clone()).await;
    wait_until_alone(daemon.child.id()).await;
    let told = client.try_call("submit", json!({})).await.unwrap_err();
    assert!(told.contains("because it was idle"), "{told}");
    client.wait_for_tool_changes(2).await;

    let busy = start(&place, &["--workers", "0"]);
    let client = McpClient::over_http(&busy).await;
    client.call("open_session", named).await;
    let sandbox = descendants(busy.child.id());
    assert_eq!(busy.terminate(), Some(0));
    let begun = Instant::now();
    let runs = |process: &u32| std::fs::read_link(format!("/proc/{process}/exe")).is_ok();
    while sandbox.iter().any(runs) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{sandbox:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stdio_offers_services_without_server() {
    let place = TestDir::new();
    let mut client = McpClient::on_stdio(&place, &["--repo", &example("slugs")]).await;
    assert!(
        client
            .instructions()
            .contains("The other tools are for slugs")
    );
    let tools = client.tools().await;
    for tool in [
        "write_failing_test",
        "check_test",
        "open_session",
        "submit",
        "search",
    ] {
        assert!(tools.contains(&tool.to_owned()), "{tools:?}");
    }
    writes_a_test(&mut client).await;
    let created = json!({"path": "tests/test_given.py", "content": GOOD});
    client.call("create_file", created).await;
    let submitted = client
        .call("submit", json!({"reason": "it ends in a separator"}))
        .await;
    assert_eq!(submitted["accepted"], true);
    let mut server = client.leave().await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(60), server.wait()).await;
    assert_eq!(ended.unwrap().unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn stdio_allows_repository_of_its_folder() {
    let place = TestDir::new();
    let repository = Repository::new(place.path("sums"), None);
    let mut command = place.testwright();
    command.arg("mcp").current_dir(&repository.folder);
    let client = McpClient::of_command(command).await;
    let prose = json!({"issue": "Sums\n\nThey are wrong.", "repository": repository.folder});
    let result = client.try_call("write_failing_test", prose).await.unwrap();
    let written = result.structured_content.clone().unwrap();
    assert_eq!(written["status"], "nothing", "{written}");
    assert!(text(&result).contains("\nhint: "), "{result:?}");
    let other = json!({"repository": example("slugs")});
    let told = client.refusal("open_session", other).await;
    assert!(told.contains("this server does not allow it"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_origins_and_hosts_are_rejected() {
    let place = TestDir::new();
    let daemon = ServerProcess::start_idle(&place);
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}});
    let send = |more: &[(&str, &str)]| {
        let mut headers = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        headers.extend(more);
        daemon
            .client
            .send("POST", "/mcp", &headers, &hello.to_string())
    };
    assert_eq!(send(&[("host", "example.org")]).status, 421);
    assert_eq!(send(&[("origin", "http://example.org")]).status, 403);
    assert_eq!(send(&[("origin", "null")]).status, 403);
    let own = format!("http://{}", daemon.client.address);
    let admitted = send(&[("origin", &own)]);
    assert_eq!(admitted.status, 200, "{admitted:?}");
    let session = admitted.header("mcp-session-id").unwrap();
    let send_in = |session: &str| {
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-session-id", session),
        ];
        let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
        let sent = daemon
            .client
            .send("POST", "/mcp", &headers, &list.to_string());
        sent.status
    };
    let leave = |session: &str| {
        let headers = [("mcp-session-id", session)];
        daemon.client.send("DELETE", "/mcp", &headers, "").status
    };
    assert_eq!(leave(session), 204);
    assert_eq!(send_in(session), 404);
    let form = [
        ("content-type", "text/plain"),
        ("accept", "application/json, text/event-stream"),
    ];
    let refused = daemon
        .client
        .send("POST", "/mcp", &form, &hello.to_string());
    assert_eq!(refused.status, 415);
    let long = format!("{hello}{}", " ".repeat(4 << 20));
    let json = [("content-type", "application/json"), form[1]];
    let refused = daemon.client.send("POST", "/mcp", &json, &long);
    assert_eq!(refused.status, 413);
    assert_eq!(
        refused.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(refused.json()["status"], 413);
}
