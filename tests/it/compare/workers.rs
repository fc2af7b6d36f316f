//! `testwright compare --database`: the runs are made by workers, of which one is killed.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use testwright::store::Store;

use super::{APPROACHES, Bench, answered, service, without_seconds};
use crate::daemon::databases;
use crate::program::assert_exit_code;

/// A worker of a database; it is killed with the test.
struct Worker(Child);

impl Worker {
    fn start(bench: &Bench, url: &str, data: &str) -> Worker {
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
async fn workers_make_a_comparison_and_one_of_them_may_die() {
    let (whole, undisturbed) = service(Duration::ZERO);
    let local = Bench::new(&whole);
    let words = [&APPROACHES[..], &["--max-dollars", "50"]].concat();
    assert_exit_code(&local.compare("out", &words).output().unwrap(), 0);
    for database in databases::all() {
        let (server, bill) = service(Duration::from_millis(40));
        let bench = Bench::new(&server);
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
        // Who asked may go away, too: the runs go on.
        comparing.kill().unwrap();
        comparing.wait().unwrap();
        drop(dies);
        let _lives = Worker::start(&bench, url, "two");
        assert_exit_code(&bench.compare("out", &words).output().unwrap(), 0);
        assert_eq!(without_seconds(&bench), without_seconds(&local));
        let store = Store::open(url).await.unwrap();
        let stored = store.comparisons(9).await.unwrap();
        assert_eq!(stored.len(), 1);
        let report = store
            .comparison_report(&stored[0].id)
            .await
            .unwrap()
            .unwrap();
        let page = std::fs::read_to_string(bench.out("out").join("report.html")).unwrap();
        assert_eq!(report.page, page);
        // At most the calls in flight are made again.
        let (with, without) = (answered(&bill), answered(&undisturbed));
        assert!((without..=without + 8).contains(&with), "{with} {without}");
    }
}
