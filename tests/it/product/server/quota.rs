//! Quotas of models, shared by all workers.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use testwright_config::settings::ModelLimits;
use testwright_models::quota::{CallCost, Quota as _};
use testwright_models::{ModelError, ModelName};
use testwright_server::store::{BatchBudget, Store, StoreQuota};

use super::{ServerProcess, databases, issue, model};
use crate::support::program::TestDir;

async fn quota(
    place: &TestDir,
    database: &databases::Database,
    limits: ModelLimits,
    budget: Option<BatchBudget>,
) -> StoreQuota {
    let embedded = Store::url_in(&place.path("."));
    let url = database.url.as_deref().unwrap_or(&embedded);
    StoreQuota {
        store: Store::open(url).await.unwrap(),
        limits: BTreeMap::from([("m".to_owned(), limits)]),
        budget,
    }
}

fn name(text: &str) -> ModelName {
    ModelName::parse(text).unwrap()
}

fn cost(dollars: f64, tokens: u64) -> CallCost {
    CallCost { dollars, tokens }
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_share_dollar_quotas() {
    for database in databases::all() {
        let place = TestDir::new();
        let limits = ModelLimits {
            dollars_per_day: Some(2.0),
            ..ModelLimits::default()
        };
        let budget = BatchBudget {
            batch: "b".to_owned(),
            dollars: Some(1.0),
        };
        let with = quota(&place, &database, limits.clone(), Some(budget)).await;
        let without = quota(&place, &database, limits, None).await;
        let calls = (0..10).map(|_| {
            let quota = with.clone();
            tokio::spawn(async move { quota.reserve(&name("m"), cost(0.3, 10)).await })
        });
        let calls = futures::future::join_all(calls.collect::<Vec<_>>()).await;
        let (made, refused): (Vec<_>, Vec<_>) = calls
            .into_iter()
            .map(Result::unwrap)
            .partition(Result::is_ok);
        assert_eq!((made.len(), refused.len()), (3, 7));
        for refusal in refused {
            let error = refusal.unwrap_err();
            assert!(matches!(&error, ModelError::CeilingReached(_)), "{error}");
        }
        // Calls rejected by the batch do not count for the day: $1.10 of $2 is left. This name means the same model.
        let same = name("openai/m");
        let more = |dollars| without.reserve(&same, cost(dollars, 10));
        assert!(more(1.2).await.is_err());
        let of_day = more(1.1).await.unwrap();
        assert!(more(0.01).await.is_err());
        without.commit(&of_day, cost(0.5, 10)).await.unwrap();
        assert!(more(0.6).await.is_ok());
        // A call that cost less than reserved leaves room for another call of its batch.
        let first = made.into_iter().next().unwrap().unwrap();
        assert!(with.reserve(&name("other"), cost(0.3, 10)).await.is_err());
        with.commit(&first, cost(0.1, 10)).await.unwrap();
        assert!(with.reserve(&name("other"), cost(0.3, 10)).await.is_ok());
        let spent = with.store.batch_dollars(&["b"]).await.unwrap()["b"];
        assert!((spent - 1.0).abs() < 1e-9, "{spent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_share_minute_quotas() {
    for database in databases::all() {
        let place = TestDir::new();
        let minute = || jiff::Timestamp::now().as_second() / 60;
        let limits = ModelLimits {
            requests_per_minute: Some(3),
            tokens_per_minute: Some(100),
            dollars_per_day: None,
        };
        let one = quota(&place, &database, limits.clone(), None).await;
        let other = quota(&place, &database, limits, None).await;
        let waits = |quota: StoreQuota, tokens| async move {
            let model = name("m");
            let call = quota.reserve(&model, cost(0.0, tokens));
            tokio::time::timeout(Duration::from_millis(400), call)
                .await
                .is_err()
        };
        // The attempt is repeated if a minute ends during it.
        loop {
            let begun = minute();
            // This call alone exceeds the quota of a minute.
            let large = !waits(one.clone(), 150).await;
            let behind_it = waits(other.clone(), 1).await;
            if begun == minute() {
                assert!(large && behind_it);
                break;
            }
        }
        // Other models have their own quotas; this one is unlimited.
        for _ in 0..9 {
            assert!(
                one.reserve(&name("n"), cost(0.0, 1_000))
                    .await
                    .unwrap()
                    .scopes
                    .is_empty()
            );
        }
    }
}

#[test]
fn run_over_daily_quota_makes_no_calls() {
    let place = TestDir::new();
    let database = &databases::all()[0];
    let server = model();
    let config = place.path("limits.toml");
    let text =
        "[prices.m]\nprompt = 1.0\ncompletion = 1.0\n[model-limits.m]\ndollars-per-day = 0.0001\n";
    std::fs::write(&config, text).unwrap();
    let config = config.display().to_string();
    let words = ["--config", config.as_str()];
    let daemon = ServerProcess::start_with(&place, database, Some(&server), "data", &words);
    let mut request = issue();
    request["model"] = "m".into();
    let run = daemon.run(&request);
    daemon.wait_for(&run, "infrastructure");
    let shown = daemon.client.get(&format!("/v1/runs/{run}")).json();
    let message = shown["outcome"]["message"].as_str().unwrap();
    assert!(message.contains("what is left of $0.0001"), "{message}");
    assert_eq!(server.requests(|_| ()).len(), 0);
}

#[test]
fn dollar_limit_needs_model_price() {
    let (place, server) = (TestDir::new(), model());
    let database = &databases::embedded();
    let config = place.path("prices.toml");
    std::fs::write(&config, "[prices.m]\nprompt = 1.0\ncompletion = 1.0\n").unwrap();
    let config = config.display().to_string();
    let words = ["--workers", "0", "--config", config.as_str()];
    let daemon = ServerProcess::start_with(&place, database, Some(&server), "data", &words);
    let mut request = issue();
    request["limits"] = serde_json::json!({"dollars": 1.5});
    request["model"] = "free".into();
    let refused = daemon.client.post("/v1/runs", &request);
    assert_eq!(refused.status, 422, "{refused:?}");
    let problem = refused.json();
    let said = |field: &str| problem[field].as_str().unwrap().to_owned();
    assert!(said("detail").contains("`free` has no price"), "{problem}");
    assert!(said("hint").contains("[prices.\"free\"]"), "{problem}");

    request["model"] = "m".into();
    let limited = daemon.run(&request);
    request.as_object_mut().unwrap().remove("limits");
    let free = daemon.run(&request);
    let mut worker = place.testwright();
    worker.args([
        "worker",
        "--database",
        &database.url_in(&place.path("data")),
    ]);
    worker.arg("--data").arg(place.path("worker"));
    worker.env("TESTWRIGHT_MODEL_BASE_URL", format!("{}/v1", server.url));
    let mut worker = worker.stderr(Stdio::null()).spawn().unwrap();
    daemon.wait_for(&limited, "infrastructure");
    let shown = daemon.client.get(&format!("/v1/runs/{limited}")).json();
    let message = shown["outcome"]["message"].as_str().unwrap();
    assert!(
        message.contains("on this worker") && message.contains("`m` has no price"),
        "{message}"
    );
    let events = daemon.client.get(&format!("/v1/runs/{limited}/trajectory"));
    assert_eq!(events.body, "");
    daemon.wait_for(&free, "accepted");
    worker.kill().unwrap();
    worker.wait().unwrap();
}
