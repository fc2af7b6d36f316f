//! Comparisons as the daemon shows them: the list, the report, the way from it to a run, and their end.

use serde_json::json;
use testwright::store::{ComparisonReport, NewComparison, NewRun, RunId, Store};

use super::{Daemon, databases};
use crate::program::Place;

#[tokio::test(flavor = "multi_thread")]
async fn a_comparison_is_listed_reported_and_ended() {
    for database in databases::all() {
        let place = Place::new();
        let daemon = Daemon::start_with(&place, &database, None, "data", &["--workers", "0"]);
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
                .contains("There are no comparisons")
        );

        let id = RunId::new(testwright::store::now());
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
            repository: "o/n".to_owned(),
            approach: "otter:planner=off".to_owned(),
            model: "m".to_owned(),
            idempotency_key: Some(format!("{id}/runs/otter%3Aplanner=off/m/1/a")),
            owner: "compare".to_owned(),
            batch: id.to_string(),
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
        // As the report links to it: what is in the name of a folder is encoded again.
        let link = format!("/comparisons/{id}/runs/otter%253Aplanner=off/m/1/a/trajectory.html");
        let found = client.get(&link);
        assert_eq!(
            found.header("location"),
            Some(format!("/runs/{}", run.id).as_str()),
            "{found:?}"
        );

        let ended = client.send("POST", &format!("{address}/cancel"), &[], "");
        assert_eq!(
            (ended.status, &ended.json()["runs"]),
            (202, &json!({"cancelled": 1}))
        );
        // Until whoever compares goes on with it.
        let is_cancelled = || async { store.comparison(&id).await.unwrap().unwrap().is_cancelled };
        assert!(is_cancelled().await);
        store.put_comparison(&compared).await.unwrap();
        assert!(!is_cancelled().await);
    }
}
