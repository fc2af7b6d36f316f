//! `testwright compare --database`: workers make the runs, and one of them is killed.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use testwright_server::store::{JobFilter, Store};

use super::{APPROACHES, ComparisonBench, answered, service, without_seconds};
use crate::product::server::databases;
use crate::support::program::assert_exit_code;

/// A worker on a database, killed on drop.
struct Worker(Child);

impl Worker {
    fn start(bench: &ComparisonBench, url: &str, data: &str) -> Worker {
        let mut command: Command = bench.place.testwright();
        command
            .args(["worker", "--workers", "2", "--database", url, "--data"])
            .arg(bench.place.path(data))
            .arg("--config")
            .arg(bench.place.path("prices.toml"))
            .env("TESTWRIGHT_MODEL_BASE_URL", &bench.url);
        Worker(command.stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn comparison_survives_killed_worker() {
    let (whole, undisturbed) = service(Duration::ZERO);
    let local = ComparisonBench::new(&whole);
    let words = [&APPROACHES[..], &["--max-dollars", "50"]].concat();
    assert_exit_code(&local.compare("out", &words).output().unwrap(), 0);
    for database in databases::all() {
        let (server, bill) = service(Duration::from_millis(40));
        let bench = ComparisonBench::new(&server);
        let embedded = Store::url_in(&bench.place.path("."));
        let url = database.url.as_deref().unwrap_or(&embedded);
        let words = [&words[..], &["--database", url]].concat();
        let mut comparing = bench.compare("out", &words).spawn().unwrap();
        let dies = Worker::start(&bench, url, "one");
        let begun = Instant::now();
        while bill.lock().unwrap().calls < 3 {
            assert!(
                begun.elapsed() < Duration::from_secs(120),
                "no call was made"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        // The runs continue even if the asking command is killed.
        comparing.kill().unwrap();
        comparing.wait().unwrap();
        drop(dies);
        let _lives = Worker::start(&bench, url, "two");
        assert_exit_code(&bench.compare("out", &words).output().unwrap(), 0);
        assert_eq!(without_seconds(&bench), without_seconds(&local));
        let store = Store::open(url).await.unwrap();
        let all = JobFilter {
            limit: 9,
            ..JobFilter::default()
        };
        let stored = store.comparisons(&all, |stored| stored.id).await.unwrap();
        assert_eq!(stored.len(), 1);
        let report = store.comparison_report(&stored[0]).await.unwrap().unwrap();
        let page = std::fs::read_to_string(bench.out("out").join("report.html")).unwrap();
        assert_eq!(report.page, page);
        // Files and costs of the runs are the same as if they were made locally.
        let (left, wanted) = (run_file_paths(&bench), run_file_paths(&local));
        let lacking: Vec<&String> = wanted.difference(&left).collect();
        assert_eq!(lacking, Vec::<&String>::new());
        assert!(left.is_subset(&wanted), "{left:?}");
        let spent = bench.json("out", "report.json")["dollars"]
            .as_f64()
            .unwrap();
        assert!(spent >= bill.lock().unwrap().dollars(), "{spent}");
        // Only calls in flight are repeated.
        let (with, without) = (answered(&bill), answered(&undisturbed));
        assert!((without..=without + 8).contains(&with), "{with} {without}");
    }
}

/// Returns the paths of the files of all runs.
fn run_file_paths(bench: &ComparisonBench) -> BTreeSet<String> {
    let out = bench.out("out");
    let (mut files, mut folders) = (BTreeSet::new(), vec![out.join("runs")]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let path = path.strip_prefix(&out).unwrap();
            files.insert(path.display().to_string());
        }
    }
    files
}

#[test]
fn worker_with_other_model_settings_makes_no_run() {
    let (server, bill) = service(Duration::ZERO);
    let bench = ComparisonBench::new(&server);
    let url = Store::url_in(&bench.place.path("."));
    let words = ["--approaches", "libro", "--models", "m", "--database", &url];
    let asking = bench
        .compare("out", &words)
        .env("TESTWRIGHT_MODEL_TEMPERATURE", "0.5")
        .spawn()
        .unwrap();
    let _worker = Worker::start(&bench, &url, "one");
    assert_exit_code(&asking.wait_with_output().unwrap(), 3);
    let runs = std::fs::read_to_string(bench.out("out").join("runs.jsonl")).unwrap();
    assert!(
        runs.contains("with the default temperature, and the comparison uses"),
        "{runs}"
    );
    assert_eq!(bill.lock().unwrap().calls, 0);
    // The run is made once the settings are the same.
    assert_exit_code(&bench.compare("out", &words).output().unwrap(), 0);
}
