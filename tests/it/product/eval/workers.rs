//! `testwright eval --database`: workers grade predictions, and one of them is killed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::repository::{GOOD, TESTS};
use super::{GradingBench, ISSUE, without_timings};
use crate::product::server::databases::{self, Database};
use crate::support::program::{assert_exit_code, interrupt};

/// A worker on a database, killed on drop.
struct Worker(Child);

impl Worker {
    fn start(bench: &GradingBench, url: &str, data: &str) -> Worker {
        let mut command = bench.place.testwright();
        command
            .args(["worker", "--workers", "1", "--database", url, "--data"])
            .arg(bench.place.path(data));
        Worker(command.stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Creates two instances with predictions of three models. One takes seconds, and one is not a patch.
fn bench() -> GradingBench {
    let bench = GradingBench::new(None);
    let other = ISSUE.replace("I expected", "it should be");
    bench.dataset(&[
        bench.repository.instance("first", ISSUE),
        bench.repository.instance("second", &other),
    ]);
    let good = bench.repository.append_tests_patch(GOOD);
    let slow = format!(
        "\n\ndef test_slow():\n    import time\n    time.sleep(4)\n    assert add(2, -3) == -1, {:?}\n",
        bench.place.path(".").display().to_string()
    );
    let slow = bench.repository.append_tests_patch(&slow);
    let wrong = bench.repository.patch(|repository| {
        let text = format!("{TESTS}\n\ndef test_more():\n    assert add(1, 1) == 2\n");
        repository.write("tests/test_calc.py", text.as_bytes());
    });
    bench.predictions(&[
        ("good", "first", Some(&good)),
        ("good", "second", Some(&slow)),
        ("wrong", "first", Some(&wrong)),
        ("wrong", "second", Some("no patch")),
    ]);
    bench
}

fn url(bench: &GradingBench, database: &Database) -> String {
    database.url_in(bench.place.folder.path())
}

/// Returns the text of all logs in the results, by result and name.
fn logs(folder: &Path, results: &BTreeMap<(String, String), Value>) -> BTreeMap<String, String> {
    let mut logs = BTreeMap::new();
    for (of, result) in results {
        for (name, path) in result["logs"].as_object().unwrap() {
            let text = std::fs::read_to_string(folder.join(path.as_str().unwrap())).unwrap();
            // Logs of builds and runs contain durations, so only the first line is compared.
            let first = text.lines().next().unwrap_or_default().to_owned();
            logs.insert(format!("{of:?} {name}"), first);
        }
    }
    logs
}

/// Waits until the asking command has created the table and its rows.
fn wait_for_rows(bench: &GradingBench, database: &Database, table: &str) {
    let data = bench.place.folder.path();
    let table_query = match &database.url {
        Some(_) => format!("SELECT COUNT(*) FROM pg_tables WHERE tablename = '{table}'"),
        None => format!("SELECT COUNT(*) FROM sqlite_master WHERE name = '{table}'"),
    };
    let rows = format!("SELECT COUNT(*) FROM {table}");
    let begun = Instant::now();
    while database.execute(data, &table_query) == "0" || database.execute(data, &rows) == "0" {
        assert!(
            begun.elapsed() < Duration::from_secs(180),
            "{table} is empty"
        );
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn worker_results_match_single_process() {
    for database in databases::all() {
        let bench = bench();
        let url = url(&bench, &database);
        let words = ["--database", url.as_str()];
        let mut asking = bench.grade(&words, "out").spawn().unwrap();
        wait_for_rows(&bench, &database, "gradings");
        let dies = Worker::start(&bench, &url, "one");
        wait_for_rows(&bench, &database, "graded_predictions");
        // The grading continues even if the asking command is killed.
        asking.kill().unwrap();
        asking.wait().unwrap();
        drop(dies);
        let _lives = Worker::start(&bench, &url, "two");
        assert_exit_code(&bench.grade(&words, "out").output().unwrap(), 0);

        assert_exit_code(&bench.grade(&[], "local").output().unwrap(), 0);
        let (remote, local) = (bench.results("out"), bench.results("local"));
        assert_eq!(remote.len(), 4);
        let strict = |result: &Value| result["strict"]["fail_to_pass"] == json!(true);
        assert_eq!(local.values().filter(|result| strict(result)).count(), 2);
        for (name, result) in &local {
            assert_eq!(
                without_timings(remote[name].clone()),
                without_timings(result.clone()),
                "{name:?}"
            );
        }
        let folder = |name| bench.place.path(name);
        assert_eq!(
            logs(&folder("out"), &remote),
            logs(&folder("local"), &local)
        );
        for file in ["report.json", "report.md", "report.html"] {
            assert!(folder("out").join(file).exists(), "{file}");
        }
        // Fetched results are removed from the database.
        for table in ["gradings", "graded_predictions"] {
            let rows = format!("SELECT COUNT(*) FROM {table}");
            let rows = database.execute(bench.place.folder.path(), &rows);
            assert_eq!(rows, "0", "{table}");
        }
        // Nothing is left to grade.
        let before = std::fs::read(folder("out").join("results.jsonl")).unwrap();
        assert_exit_code(&bench.grade(&words, "out").output().unwrap(), 0);
        assert_exit_code(&bench.grade(&[], "out").output().unwrap(), 0);
        let after = std::fs::read(folder("out").join("results.jsonl")).unwrap();
        assert!(before == after, "graded again");
    }
}

#[test]
fn interrupted_evaluation_is_cancelled_and_resumed() {
    for database in databases::all() {
        let bench = bench();
        let url = url(&bench, &database);
        let words = ["--database", url.as_str()];
        let mut asking = bench.grade(&words, "out").spawn().unwrap();
        wait_for_rows(&bench, &database, "gradings");
        let statuses = || {
            let all = "SELECT status FROM gradings GROUP BY status";
            database.execute(bench.place.folder.path(), all)
        };
        assert_eq!(statuses(), "queued");
        interrupt(&asking);
        assert_eq!(asking.wait().unwrap().code(), Some(130));
        assert_eq!(statuses(), "cancelled");

        let _worker = Worker::start(&bench, &url, "one");
        assert_exit_code(&bench.grade(&words, "out").output().unwrap(), 0);
        assert_eq!(bench.results("out").len(), 4);
    }
}

#[test]
fn worker_of_other_version_is_reported() {
    let (bench, database) = (bench(), databases::embedded());
    let url = url(&bench, &database);
    let data = bench.place.folder.path();
    let words = ["verify", "--instances", "first", "--database", url.as_str()];
    // This simulates a command of another version.
    let asking = bench.command(&words, "out").spawn().unwrap();
    wait_for_rows(&bench, &database, "gradings");
    let tamper = "UPDATE gradings SET request = REPLACE(request, '\"keys\":[\"', '\"keys\":[\"0')";
    database.execute(data, tamper);
    let _worker = Worker::start(&bench, &url, "one");
    assert_exit_code(&asking.wait_with_output().unwrap(), 3);
    let results = bench.results("out");
    let failed = &results.values().next().unwrap()["infrastructure"];
    let cause = failed["cause"].as_str().unwrap();
    assert!(cause.contains("would grade differently"), "{cause}");

    let output = bench.command(&words, "out").output().unwrap();
    assert_exit_code(&output, 0);
    let stdout = String::from_utf8_lossy(&output.stdout);
    let line = "golden tests fail-to-pass: 1 of 1";
    assert!(stdout.contains(line), "{stdout}");
}
