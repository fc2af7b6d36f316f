#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;

use testwright_agent::approaches::extra_inputs::ExtraInputs;
use testwright_config::error::Kind;

use super::*;
use crate::store::{JobId, Store};

#[tokio::test]
async fn run_added_during_cancellation_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let url = Store::url_in(folder.path());
    let store = Store::open(&url).await.unwrap();
    let id = JobId::new(0);
    let runs = StoreRuns {
        batch: Batch {
            store: store.clone(),
            owner: "o".to_owned(),
            id: id.clone(),
            traceparent: None,
        },
        max_dollars: None,
        shared: CellSettings {
            limits: PlanLimits {
                steps: 1,
                tokens: None,
                minutes: 1.0,
                min_confidence: None,
            },
            repositories: String::new(),
            test_seconds: 1,
            model: None,
        },
    };
    let comparison = NewComparison {
        id: &id,
        owner: "o",
        name: "n",
        plan: "{}",
        max_dollars: None,
    };
    store.put_comparison(&comparison).await.unwrap();
    // A client cancels the comparison between the first check and the new run.
    let pool = sqlx::AnyPool::connect(&url).await.unwrap();
    let trigger = "CREATE TRIGGER cancelled BEFORE INSERT ON runs BEGIN UPDATE comparisons SET cancel = 1; END";
    sqlx::query(trigger).execute(&pool).await.unwrap();
    let instance = serde_json::json!({
        "instance_id": "o__n-1", "repo": "o/n", "base_commit": "a", "problem_statement": "It fails",
    });
    let instance: Instance = serde_json::from_value(instance).unwrap();
    let cell = RunSpec {
        instance: instance.instance_id.clone(),
        system: System {
            approach: "snippet".to_owned(),
            model: "snippet".to_owned(),
            oracle_samples: None,
            extra_inputs: Vec::new(),
            predictions: None,
        },
        sample: 1,
    };
    let task = CellTask::new(&instance, "snippet", "snippet", ExtraInputs::default());
    let run = runs.run(&cell, task, folder.path());
    let ended = tokio::time::timeout(Duration::from_secs(20), run).await;
    assert_eq!(ended.unwrap().unwrap_err().kind, Kind::Interrupted);
    let statuses = store.batch_statuses(&[id.as_str()]).await.unwrap();
    let cancelled = BTreeMap::from([("cancelled".to_owned(), 1)]);
    assert_eq!(statuses[id.as_str()], cancelled);
}

#[test]
fn run_title_has_instance_and_issue() {
    let called = |statement: &str| {
        let instance = serde_json::json!({
            "instance_id": "o__n-1", "repo": "o/n", "base_commit": "a", "problem_statement": statement,
        });
        title(&serde_json::from_value(instance).unwrap())
    };
    assert_eq!(called("# It fails\n\nAlways."), "o__n-1: It fails");
    assert_eq!(called("It fails\nAlways."), "o__n-1: It fails");
    assert_eq!(called(""), "o__n-1");
}
