//! Gradings on the server: the list and cancellation.

use serde_json::json;
use testwright_server::store::{JobId, NewGrading, Store};

use super::{ServerProcess, databases};
use crate::support::program::TestDir;

#[tokio::test(flavor = "multi_thread")]
async fn gradings_are_listed_and_cancelled() {
    for database in databases::all() {
        let place = TestDir::new();
        let daemon =
            ServerProcess::start_with(&place, &database, None, "data", &["--workers", "0"]);
        let client = &daemon.client;
        let url = database.url_in(&place.path("data"));
        let store = Store::open(&url).await.unwrap();
        assert_eq!(client.get("/v1/gradings").json()["batches"], json!([]));
        let [one, two] = [0, 1].map(JobId::new);
        for (batch, instance) in [(&one, "a"), (&one, "b"), (&two, "a")] {
            let new = NewGrading {
                request: "{}".to_owned(),
                owner: "eval".to_owned(),
                batch: batch.to_string(),
                idempotency_key: format!("{batch}/{instance}"),
            };
            store.add_grading(&new).await.unwrap();
        }
        let listed = client.get("/v1/gradings").json();
        let batches = listed["batches"].as_array().unwrap();
        assert_eq!(batches.len(), 2, "{listed}");
        assert_eq!(batches[1]["batch"], one.as_str());
        assert_eq!(batches[1]["owner"], "eval");
        assert_eq!(batches[1]["gradings"], json!({"queued": 2}));
        let page = client.get("/workers").body;
        let form = format!("action=\"/gradings/{one}/cancel\"");
        assert!(page.contains(&form) && page.contains("2 queued"), "{page}");

        let ended = client.send("POST", &format!("/v1/gradings/{one}/cancel"), &[], "");
        assert_eq!(ended.status, 202, "{ended:?}");
        assert_eq!(ended.json()["gradings"], json!({"cancelled": 2}));
        assert_eq!(ended.json()["open"], false);
        // Postgres accepts no text with a NUL.
        for missing in [JobId::new(2).as_str(), "three", "a%00"] {
            let missing = client.send("POST", &format!("/v1/gradings/{missing}/cancel"), &[], "");
            assert_eq!(missing.status, 404, "{missing:?}");
        }
        assert_eq!(client.get("/workers?before=%00").status, 200);
        // The other evaluation is unchanged until a person cancels it.
        let cancel = |headers: &[(&str, &str)]| {
            let ended = client.send("POST", &format!("/gradings/{two}/cancel"), headers, "");
            ended.status
        };
        assert_eq!(cancel(&[]), 403);
        let gradings = store.gradings(two.as_str()).await.unwrap();
        assert_eq!(gradings[0].status.as_str(), "queued");
        let own = format!("http://{}", client.address);
        assert_eq!(cancel(&[("origin", &own)]), 303);
        let gradings = store.gradings(two.as_str()).await.unwrap();
        assert_eq!(gradings[0].status.as_str(), "cancelled");
        assert!(!client.get("/workers").body.contains(&form));
    }
}
