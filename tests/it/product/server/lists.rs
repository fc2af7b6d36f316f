//! Lists of stored items: pagination and filters.

use serde_json::{Value, json};
use testwright_server::store::{JobId, NewComparison, NewGrading, NewMatrix, Store, now};

use super::client::Client;
use super::{ServerProcess, databases, stored_run};
use crate::support::program::TestDir;

/// Returns the field `name` of all items of a list, read in pages of two.
fn all(client: &Client, path: &str, list: &str, name: &str, filter: &str) -> Vec<String> {
    let (mut seen, mut before) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("{path}?limit=2{filter}{before}"));
        assert_eq!(page.status, 200, "{page:?}");
        let page = page.json();
        let items = page[list].as_array().unwrap();
        assert!(items.len() <= 2, "{page}");
        let named = |item: &Value| item[name].as_str().unwrap().to_owned();
        seen.extend(items.iter().map(named));
        match page["next"].as_str() {
            Some(next) => before = format!("&before={next}"),
            None => return seen,
        }
    }
}

/// Stores `number` items of each kind, alternately owned by `a` and `b`. Returns their ids, newest first.
async fn fill(store: &Store, number: i64) -> [Vec<String>; 4] {
    let [mut runs, mut comparisons, mut matrices, mut batches] = [const { Vec::new() }; 4];
    let input =
        json!({"repository": "r", "commit": null, "issue": null, "tests": [], "patches": []});
    for n in 0..number {
        // Ids of the same millisecond have no order.
        let id = JobId::new(now() + 10 * n);
        let owner = ["a", "b"][n as usize % 2];
        let run = stored_run(owner, id.as_str());
        runs.push(store.add_run(&run).await.unwrap().0.id.to_string());
        let compared = NewComparison {
            id: &id,
            owner,
            name: owner,
            plan: "{}",
            max_dollars: None,
        };
        store.put_comparison(&compared).await.unwrap();
        comparisons.push(id.to_string());
        let matrix = NewMatrix {
            request: input.to_string(),
            repository: owner.to_owned(),
            owner: owner.to_owned(),
            idempotency_key: None,
        };
        matrices.push(store.add_matrix(&matrix).await.unwrap().0.id.to_string());
        for instance in ["x", "y"] {
            let grading = NewGrading {
                request: "{}".to_owned(),
                owner: owner.to_owned(),
                batch: id.to_string(),
                idempotency_key: format!("{id}/{instance}"),
            };
            store.add_grading(&grading).await.unwrap();
        }
        batches.push(id.to_string());
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    [runs, comparisons, matrices, batches].map(|mut ids| {
        ids.reverse();
        ids
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_contain_all_filtered_items() {
    for database in databases::all() {
        let place = TestDir::new();
        let daemon =
            ServerProcess::start_with(&place, &database, None, "data", &["--workers", "0"]);
        let client = &daemon.client;
        let store = Store::open(&database.url_in(&place.path("data")))
            .await
            .unwrap();
        let [runs, comparisons, matrices, batches] = fill(&store, 5).await;
        let lists = [
            ("/v1/runs", "runs", "id", &runs, "repository=o/n", 5),
            (
                "/v1/comparisons",
                "comparisons",
                "id",
                &comparisons,
                "name=a",
                3,
            ),
            (
                "/v1/matrices",
                "matrices",
                "id",
                &matrices,
                "repository=a",
                3,
            ),
            ("/v1/gradings", "batches", "batch", &batches, "owner=a", 3),
        ];
        for (path, list, name, wanted, filter, left) in lists {
            let all = |filter: &str| all(client, path, list, name, filter);
            assert_eq!(all(""), *wanted, "{path}");
            let of = |owner: usize| -> Vec<String> {
                wanted.iter().skip(owner).step_by(2).cloned().collect()
            };
            assert_eq!(all("&owner=a"), of(0), "{path}");
            assert_eq!(all("&owner=b"), of(1), "{path}");
            assert_eq!(all(&format!("&{filter}")).len(), left, "{path}");
            // The oldest comparison still has open runs.
            let (first, open) = (wanted.last().unwrap(), ["queued", "running"]);
            let ended = client.send("POST", &format!("{path}/{first}/cancel"), &[], "");
            assert_eq!(ended.status, 202, "{path} {ended:?}");
            assert_eq!(
                all("&status=cancelled"),
                std::slice::from_ref(first),
                "{path}"
            );
            let status = open[usize::from(path == "/v1/comparisons")];
            assert_eq!(all(&format!("&status={status}")), wanted[..4], "{path}");
            let both = format!("&status={status}&owner=a");
            assert_eq!(all(&both), of(0)[..2], "{path}");
            for wrong in ["limit=0", "limit=501", "before=1", "status=lost", "x=1"] {
                let refused = client.get(&format!("{path}?{wrong}"));
                assert_eq!(refused.status, 400, "{path} {wrong}");
            }
        }
        // Each comparison on the page shows the counts of its own runs only.
        let page = client.get("/v1/comparisons?limit=1&owner=b").json();
        assert_eq!(page["comparisons"][0]["runs"], json!({"queued": 1}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn list_pages_link_to_older_items() {
    let place = TestDir::new();
    let database = databases::embedded();
    let daemon = ServerProcess::start_with(&place, &database, None, "data", &["--workers", "0"]);
    let store = Store::open(&database.url_in(&place.path("data")))
        .await
        .unwrap();
    let [runs, comparisons, matrices, batches] = fill(&store, 51).await;
    let lists = [
        ("/", &runs),
        ("/comparisons", &comparisons),
        ("/matrices", &matrices),
        ("/workers", &batches),
    ];
    for (path, ids) in lists {
        let (oldest, newer) = ids.split_last().unwrap();
        let first = daemon.client.get(path);
        assert_eq!(first.status, 200, "{path} {first:?}");
        let (table, foot) = first.body.split_once("Older ").unwrap();
        assert!(newer.iter().all(|id| table.contains(id)), "{path}: {table}");
        assert!(!table.contains(oldest), "{path}: {table}");
        assert!(foot.contains("</a>"), "{path}: {foot}");
        let (_, link) = table.rsplit_once("href=\"").unwrap();
        let link = link.split('"').next().unwrap().replace("&amp;", "&");
        let second = daemon.client.get(link.split('#').next().unwrap());
        assert_eq!(second.status, 200, "{link} {second:?}");
        let second = second.body;
        assert!(second.contains(oldest), "{link}: {second}");
        assert!(!second.contains(&newer[0]), "{link}: {second}");
        assert!(!second.contains("Older "), "{link}: {second}");
    }
}
