//! The page of a comparison: its runs, its end, and the links to its report and back.

use serde_json::json;
use testwright_server::store::{
    ComparisonReport, JobId, NewComparison, NewRun, RequestedComparison, Store,
};

use super::{ServerProcess, databases};
use crate::support::program::TestDir;

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

fn plan() -> String {
    let instance = |id: &str| json!({"id": id, "repository": "o/n", "issue_tokens": 1});
    let system = |approach: &str| json!({"approach": approach, "model": "m"});
    json!({
        "format": 1, "dataset": "d", "systems": [system("otter"), system("libro")], "samples": 3,
        "limits": {"steps": 1, "tokens": null, "minutes": 1.0}, "instances": [instance("a"), instance("b")],
    })
    .to_string()
}

fn run(comparison: &JobId, at: usize) -> NewRun {
    let instance = json!({
        "instance_id": "o__n-1", "repo": "o/n", "base_commit": "a", "problem_statement": "# It <b>fails",
    });
    let request = json!({
        "task": {"instance": instance, "approach": "otter", "model": "m", "extra_inputs": {}},
        "limits": {"steps": 1, "tokens": null, "minutes": 1.0}, "repositories": "r", "test_seconds": 1,
    });
    NewRun {
        request: request.to_string(),
        title: String::new(),
        repository: "o/n".to_owned(),
        approach: "otter".to_owned(),
        model: "m".to_owned(),
        idempotency_key: Some(format!("{comparison}/runs/otter/m/{at}/a")),
        owner: "team".to_owned(),
        batch: comparison.to_string(),
        traceparent: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn comparison_page_shows_runs_and_report() {
    for database in databases::all() {
        let place = TestDir::new();
        let daemon =
            ServerProcess::start_with(&place, &database, None, "data", &["--workers", "0"]);
        let embedded = Store::url_in(&place.path("data"));
        let url = database.url.as_deref().unwrap_or(&embedded);
        let store = Store::open(url).await.unwrap();
        let client = &daemon.client;
        let id = JobId::new(testwright_server::store::now());
        let plan = plan();
        // A requested comparison that no server can run, because its request is of another version.
        let asked = RequestedComparison {
            comparison: NewComparison {
                id: &id,
                owner: "team",
                name: "<i>two.jsonl",
                plan: &plan,
                max_dollars: Some(2.5),
            },
            request: "{}",
            idempotency_key: None,
            traceparent: None,
        };
        store.add_comparison(&asked).await.unwrap();
        let mut last = None;
        for at in 0..52 {
            let (made, _) = store.add_run(&run(&id, at)).await.unwrap();
            last = Some(made.id);
        }
        let last = last.unwrap();
        let address = format!("/comparisons/{id}");

        assert!(client.get("/comparisons").body.contains(&address));
        let page = client.get(&address);
        assert_eq!(page.status, 200);
        for part in [
            "&lt;i&gt;two.jsonl",
            "52 of 12",
            "of at most 2.5",
            "otter@m, libro@m",
            "queued: 52",
            &format!("<a href=\"/runs/{last}\">"),
            "Older runs",
            "No report",
        ] {
            assert!(page.body.contains(part), "{part}: {}", page.body);
        }
        let older = format!("{address}?status=queued&before={last}");
        let older = client.get(&older).body;
        assert!(!older.contains(&format!("<a href=\"/runs/{last}\">")));
        assert!(older.contains("<a href=\"/runs/"), "{older}");
        let none = client.get(&format!("{address}?status=accepted")).body;
        assert!(none.contains("There are no runs of this status."), "{none}");
        let of_run = client.get(&format!("/runs/{last}")).body;
        assert!(
            of_run.contains(&format!("<a href=\"{address}\">")),
            "{of_run}"
        );
        assert!(of_run.contains("# It &lt;b&gt;fails"), "{of_run}");

        let own = format!("http://{}", client.address);
        for what in ["cancel", "retry"] {
            let path = format!("{address}/{what}");
            for origin in [None, Some("null"), Some("http://example.org")] {
                let mut headers = vec![FORM];
                headers.extend(origin.map(|origin| ("origin", origin)));
                let refused = client.send("POST", &path, &headers, "");
                assert_eq!(refused.status, 403, "{origin:?}");
            }
        }
        let send = |what: &str| {
            let headers = [FORM, ("origin", own.as_str())];
            client.send("POST", &format!("{address}/{what}"), &headers, "")
        };
        let ended = send("cancel");
        assert_eq!(ended.status, 303, "{ended:?}");
        assert_eq!(ended.header("location"), Some(address.as_str()));
        let page = client.get(&address).body;
        assert!(page.contains("cancelled: 52"), "{page}");
        assert!(!page.contains("Cancel comparison"), "{page}");
        assert!(page.contains("Resume comparison"), "{page}");
        assert_eq!(send("retry").status, 303);
        // It is queued, running or already failed, since its request is unreadable.
        let shown = client.get(&format!("/v1{address}")).json();
        assert_ne!(shown["status"], "cancelled");

        let report = ComparisonReport {
            report: json!({"systems": []}).to_string(),
            page: "<!doctype html><html><head><title>Report</title></head><body>\n<h1>R</h1></body></html>".to_owned(),
        };
        store.put_comparison_report(&id, &report).await.unwrap();
        let link = format!("<a href=\"{address}/report\"");
        assert!(client.get(&address).body.contains(&link));
        let report = client.get(&format!("{address}/report")).body;
        assert!(
            report.contains(&format!("<a href=\"{address}\">")),
            "{report}"
        );
        assert!(report.contains("<h1>R</h1>"), "{report}");
        assert_eq!(client.get("/comparisons/nothing").status, 404);
        assert_eq!(send("report").status, 405);
    }
}
