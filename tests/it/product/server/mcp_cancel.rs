//! Cancelled calls of raw tools: the processes that they started end, and the sandbox continues.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use testwright_server::store::{JobFilter, JobStatus, Store};

use super::mcp::{descendants, start, wait_until_alone};
use super::mcp_client::McpClient;
use super::{issue, wait_until};
use crate::support::program::{TestDir, example};

/// Returns a unique sleep time in seconds, which identifies the processes.
pub(super) fn sleep_time() -> String {
    format!("3141.{}", std::process::id())
}

fn is_sleeping() -> bool {
    let time = sleep_time();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
        .any(|words| {
            let mut words = words.split(|byte| *byte == 0);
            words.next() == Some(b"sleep") && words.next() == Some(time.as_bytes())
        })
}

pub(super) async fn wait_until_sleeping(wanted: bool) {
    let begun = Instant::now();
    while is_sleeping() != wanted {
        assert!(begun.elapsed() < Duration::from_secs(120), "{wanted}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns calls that run endless programs, one of them in a new session.
fn calls() -> Vec<(&'static str, Value)> {
    let time = sleep_time();
    let run = format!("import subprocess; subprocess.run(['sleep', '{time}'])");
    let fix = json!({"path": "src/slugs/slug.py", "old": "return slug[:max_length]", "new": "return slug"});
    vec![
        (
            "shell",
            json!({"command": format!("setsid sleep {time} & sleep {time}"), "timeout": 3000}),
        ),
        ("run_python", json!({"code": run, "timeout": 3000})),
        ("run_pytest", json!({})),
        ("try_fix", json!({"edits": [fix]})),
        ("submit", json!({"reason": "it does not end"})),
    ]
}

async fn cancelled_calls_end(client: &McpClient, server: u32) {
    let time = sleep_time();
    let test = format!(
        "import subprocess\nfrom slugs import slugify\n\n\ndef test_given():\n    subprocess.run('sleep {time} & setsid sleep {time}', \
         shell=True)\n    assert slugify('one two', max_length=4) == 'one'\n"
    );
    let created = json!({"path": "tests/test_given.py", "content": test});
    client.call("create_file", created).await;
    let before: HashSet<u32> = descendants(server).into_iter().collect();
    for (tool, arguments) in calls() {
        let call = client.start(tool, arguments).await;
        wait_until_sleeping(true).await;
        call.cancel(None).await.unwrap();
        let next = client.call("run_python", json!({"code": "print(6 * 7)"}));
        let next = tokio::time::timeout(Duration::from_secs(60), next).await;
        assert_eq!(next.expect(tool)["stdout"], "42\n", "{tool}");
        wait_until_sleeping(false).await;
    }
    // The sandbox and the toolbox are still the same.
    let after: HashSet<u32> = descendants(server).into_iter().collect();
    assert!(before.is_subset(&after), "{before:?} {after:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_calls_end_over_http() {
    let place = TestDir::new();
    let daemon = start(&place, &["--workers", "0"]);
    let client = McpClient::over_http(&daemon).await;
    let named = json!({"repository": example("slugs")});
    client.call("open_session", named).await;
    cancelled_calls_end(&client, daemon.child.id()).await;
    let (tool, arguments) = calls().remove(0);
    let _call = client.start(tool, arguments).await;
    wait_until_sleeping(true).await;
    client.leave().await;
    wait_until_alone(daemon.child.id()).await;
    assert!(!is_sleeping());
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_calls_end_on_stdio() {
    let place = TestDir::new();
    let client = McpClient::on_stdio(&place, &["--repo", &example("slugs")]).await;
    let server = client.server.as_ref().unwrap().id().unwrap();
    cancelled_calls_end(&client, server).await;
    // A cancelled call that is queued does not start.
    let first = client.start("shell", json!({"command": "sleep 1"})).await;
    let (tool, arguments) = calls().remove(0);
    let second = client.start(tool, arguments).await;
    // A request that is not written yet could be sent after its cancellation.
    client.tools().await;
    second.cancel(None).await.unwrap();
    first.await_response().await.unwrap();
    let next = client.call("run_python", json!({"code": "print(1)"}));
    let next = tokio::time::timeout(Duration::from_secs(60), next).await;
    assert_eq!(next.unwrap()["stdout"], "1\n");
    assert!(!is_sleeping());
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_cancels_no_runs_of_clients() {
    let place = TestDir::new();
    let daemon = start(&place, &["--workers", "0"]);
    let client = McpClient::over_http(&daemon).await;
    let mut calls = Vec::new();
    for _ in 0..20 {
        calls.push(client.start("write_failing_test", issue()).await);
    }
    wait_until("the runs are queued", || {
        let listed = daemon.client.get("/v1/runs").json();
        listed["runs"].as_array().unwrap().len() == calls.len()
    });
    assert_eq!(daemon.terminate(), Some(0));
    let url = Store::url_in(&place.path("data"));
    let store = Store::open(&url).await.unwrap();
    let filter = JobFilter {
        limit: 100,
        ..JobFilter::default()
    };
    let statuses = store.runs(&filter, |run| run.status).await.unwrap();
    assert_eq!(statuses, [JobStatus::Queued; 20]);
}
