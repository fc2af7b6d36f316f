//! `testwright compare` with a billing HTTP endpoint on the loopback interface, real git and real pytest.

mod extra_inputs;
mod workers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::product::eval::repository::{GOOD, Repository, lines};
use crate::support::program::{TestDir, assert_exit_code};
use crate::support::server::{MockServer, Request, Response};

const ISSUE: &str = "add(1, -2) gives 0\n\nI expected -1, as in `add(1, -2) == -1`.";

/// Prices in US dollars per million tokens.
const PRICES: &str = "[prices.m]\nprompt = 10\ncompletion = 100\n";

/// Calls and tokens that a model service billed.
#[derive(Default)]
pub(super) struct BilledUsage {
    pub calls: u32,
    prompt_tokens: u64,
    completion_tokens: u64,
    /// Number of responses by request.
    answered: BTreeMap<String, u32>,
}

impl BilledUsage {
    pub(super) fn dollars(&self) -> f64 {
        (self.prompt_tokens as f64 * 10.0 + self.completion_tokens as f64 * 100.0) / 1e6
    }
}

/// Starts a model service whose answers depend only on the request. Every fifth call fails but is billed.
pub(super) fn service(wait: Duration) -> (MockServer, Arc<Mutex<BilledUsage>>) {
    let bill: Arc<Mutex<BilledUsage>> = Arc::default();
    let booked = bill.clone();
    let server = MockServer::start(move |request: &Request| {
        std::thread::sleep(wait);
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let mut bill = booked.lock().unwrap();
        bill.calls += 1;
        let (prompt, completion) = (request.body.len() as u64 / 4, 200);
        assert!(body["max_completion_tokens"].is_u64() || body["max_tokens"].is_u64());
        bill.prompt_tokens += prompt;
        bill.completion_tokens += completion;
        if bill.calls.is_multiple_of(5) {
            return Response::status(500).with("retry-after", "0");
        }
        *bill.answered.entry(request.body.clone()).or_default() += 1;
        Response::json(json!({
            "choices": [{"index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": answer(&request.body)}}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
        }))
        .with("content-type", "application/json")
    });
    (server, bill)
}

fn answer(question: &str) -> String {
    let block = |test: &str| format!("diff\ntests/test_calc.py\ninsert\nEOF\n{test}end diff\n");
    if question.contains("YES") {
        return "YES\nIt is the wrong sum.".to_owned();
    }
    if question.contains("end diff") {
        return block(GOOD);
    }
    if question.contains("unified diff") {
        return "I cannot see what is wrong.".to_owned();
    }
    // This test passes on the old code.
    "```python\nfrom pkg.calc import add\n\n\ndef test_sum():\n    assert add(2, 2) == 4\n```\n"
        .to_owned()
}

/// A repository with two issues and their dataset.
pub(super) struct ComparisonBench {
    pub place: TestDir,
    url: String,
}

impl ComparisonBench {
    pub(super) fn new(server: &MockServer) -> ComparisonBench {
        let place = TestDir::new();
        let repository = Repository::new(place.path("repositories/example+sums"), None);
        let dataset = place.path("dataset.jsonl");
        lines(
            &dataset,
            &[
                repository.instance("example__sums-1", ISSUE),
                repository.instance(
                    "example__sums-2",
                    &ISSUE.replace("I expected", "It should be"),
                ),
            ],
        );
        std::fs::write(place.path("prices.toml"), PRICES).unwrap();
        ComparisonBench {
            place,
            url: format!("{}/v1", server.url),
        }
    }

    fn compare(&self, out: &str, words: &[&str]) -> Command {
        let mut command = self.place.testwright();
        command
            .arg("compare")
            .arg("--dataset")
            .arg(self.place.path("dataset.jsonl"))
            .arg("--repositories")
            .arg(self.place.path("repositories").join("{owner}+{name}"))
            .arg("--out")
            .arg(self.out(out))
            .arg("--config")
            .arg(self.place.path("prices.toml"))
            .args(["--workers", "2"])
            .args(words)
            .env("TESTWRIGHT_MODEL_BASE_URL", &self.url)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn out(&self, name: &str) -> PathBuf {
        self.place.path(name)
    }

    fn json(&self, out: &str, file: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.out(out).join(file)).unwrap()).unwrap()
    }
}

const APPROACHES: [&str; 4] = [
    "--approaches",
    "zero-shot,zero-shot-plus,zero-shot-file,libro,pass-at-k",
    "--models",
    "m",
];

/// Returns the report and the predictions by file name.
fn tables(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for name in [
        "report.json",
        "report.md",
        "report.html",
        "report.csv",
        "runs.csv",
    ] {
        files.insert(name.to_owned(), std::fs::read(folder.join(name)).unwrap());
    }
    for entry in std::fs::read_dir(folder.join("predictions")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        files.insert(name, std::fs::read(entry.path()).unwrap());
    }
    files
}

/// Returns the systems and pairs of a report without seconds, which differ between runs.
fn without_seconds(bench: &ComparisonBench) -> Vec<Vec<String>> {
    let report = bench.json("out", "report.json");
    let of = |s: &Value| {
        let mut s = s.clone();
        for field in ["model_seconds", "tool_seconds", "failed_calls", "dollars"] {
            s["cost"][field] = Value::Null;
        }
        s["stages"] = Value::Null;
        s.to_string()
    };
    ["systems", "pairs"]
        .map(|part| report[part].as_array().unwrap().iter().map(of).collect())
        .into()
}

pub(super) fn answered(bill: &Mutex<BilledUsage>) -> u32 {
    bill.lock().unwrap().answered.values().sum()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn assert_same(a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>) {
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (name, content) in a {
        assert_eq!(text(content), text(&b[name]), "{name}");
    }
}

#[test]
fn replayed_comparison_is_identical() {
    let (server, bill) = service(Duration::ZERO);
    let bench = ComparisonBench::new(&server);
    let output = bench
        .compare("out", &[&APPROACHES[..], &["--max-dollars", "50"]].concat())
        .output()
        .unwrap();
    assert_exit_code(&output, 0);
    let report = bench.json("out", "report.json");
    let rate = |name: &str| {
        let systems = report["systems"].as_array().unwrap();
        let system = systems.iter().find(|s| s["name"] == name).unwrap();
        (
            system["fail_to_pass"]["value"].as_f64().unwrap(),
            system["submitted"].as_u64().unwrap(),
        )
    };
    assert_eq!(rate("zero-shot@m"), (0.0, 0));
    assert_eq!(rate("zero-shot-plus@m"), (1.0, 2));
    assert_eq!(rate("zero-shot-file@m"), (0.0, 2));
    assert_eq!(rate("libro@m"), (1.0, 2));
    assert_eq!(rate("pass-at-k@m"), (1.0, 10));
    // An upper bound is in no pair.
    let pairs = report["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 6);
    let discordant = pairs[0]["discordant"][0].clone();
    let page = bench
        .out("out")
        .join(discordant["second_run"].as_str().unwrap());
    let page = std::fs::read_to_string(page.join("trajectory.html")).unwrap();
    assert!(page.contains("+def test_negative():"), "{page}");
    let spent = std::fs::read_to_string(bench.out("out").join("spending.jsonl")).unwrap();
    assert!(spent.lines().count() as u32 >= 2 * bill.lock().unwrap().calls * 4 / 5);

    // The cost of failed calls is not part of any run's cost.
    let dollars = report["dollars"].as_f64().unwrap();
    assert!(dollars >= bill.lock().unwrap().dollars(), "{dollars}");
    let csv = text(&std::fs::read(bench.out("out").join("report.csv")).unwrap());
    assert!(
        csv.lines()
            .next()
            .unwrap()
            .ends_with(",pass_at_1,pass_at_2,pass_at_3,pass_at_4,pass_at_5")
    );
    let csv = text(&std::fs::read(bench.out("out").join("runs.csv")).unwrap());
    assert!(
        csv.contains(",tdd_score,coverage_delta,confidence,"),
        "{csv}"
    );
    let page = text(&std::fs::read(bench.out("out").join("report.html")).unwrap());
    assert!(page.contains("dollars per run") && page.contains("model calls per run"));

    // The same command has nothing left to do and makes no calls.
    let calls = bill.lock().unwrap().calls;
    let before = tables(&bench.out("out"));
    let output = bench.compare("out", &APPROACHES).output().unwrap();
    assert_exit_code(&output, 0);
    assert_eq!(bill.lock().unwrap().calls, calls);
    assert_same(&before, &tables(&bench.out("out")));

    // The replay makes no calls.
    let recorded = bench.out("out");
    let output = bench
        .compare("again", &["--replay", recorded.to_str().unwrap()])
        .env_remove("TESTWRIGHT_MODEL_BASE_URL")
        .output()
        .unwrap();
    assert_exit_code(&output, 0);
    assert_eq!(bill.lock().unwrap().calls, calls);
    assert_same(&before, &tables(&bench.out("again")));

    // A smaller comparison in the same folder is rejected, and nothing is lost.
    let words = ["--approaches", "libro", "--models", "m"];
    let output = bench.compare("out", &words).output().unwrap();
    assert_exit_code(&output, 2);
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("it includes zero-shot@m, which this command does not request"),
        "{stderr}"
    );
    assert_same(&before, &tables(&bench.out("out")));
}

#[test]
fn given_predictions_are_graded_beside_approaches() {
    let (server, bill) = service(Duration::ZERO);
    let bench = ComparisonBench::new(&server);
    let words = ["--approaches", "zero-shot-plus", "--models", "m"];
    let planned = bench
        .compare("out", &[&words[..], &["--dry-run"]].concat())
        .output()
        .unwrap();
    assert_exit_code(&planned, 0);
    let estimate = text(&planned.stdout);
    assert!(estimate.contains("runs left: 2 of 2\n"), "{estimate}");
    assert!(!bench.out("out").exists());
    assert_exit_code(&bench.compare("out", &words).output().unwrap(), 0);
    let calls = bill.lock().unwrap().calls;
    let file = bench.out("out").join("predictions/zero-shot-plus@m.jsonl");
    for name in ["zero-shot-plus@m", "zero-shot-plus@m.sample-2"] {
        let taken = format!("{name}={}", file.display());
        let more = ["--samples", "2", "--predictions", &taken, "--dry-run"];
        let output = bench.compare("out", &[&words[..], &more].concat()).output();
        assert_exit_code(&output.unwrap(), 2);
    }
    let given = format!("other={}", file.display());
    let words = [&words[..], &["--predictions", &given]].concat();
    let output = bench.compare("out", &words).output().unwrap();
    assert_exit_code(&output, 0);
    let stderr = text(&output.stderr);
    let summary = "zero-shot-plus@m: 2 predictions, 2 with a patch\n";
    assert!(stderr.contains(summary), "{stderr}");
    assert_eq!(bill.lock().unwrap().calls, calls);
    let report = bench.json("out", "report.json");
    let other = &report["systems"][1];
    assert_eq!(
        (&other["name"], &other["fail_to_pass"]["value"]),
        (&json!("other"), &json!(1.0))
    );
    assert_eq!(report["pairs"][0]["second"], "other");
    let runs = text(&std::fs::read(bench.out("out").join("runs.csv")).unwrap());
    assert!(runs.contains(",other,other,1,submitted,true,"), "{runs}");
    for file in ["tables/rates.tex", "plots/cost-dollars-per-run.svg"] {
        assert!(bench.out("out").join(file).exists(), "{file}");
    }
    let recorded = bench.out("out");
    let output = bench
        .compare("again", &["--replay", recorded.to_str().unwrap()])
        .output()
        .unwrap();
    assert_exit_code(&output, 0);
    assert_same(&tables(&recorded), &tables(&bench.out("again")));
}

#[test]
fn killed_comparison_resumes_without_paying_twice() {
    let (server, bill) = service(Duration::from_millis(60));
    let bench = ComparisonBench::new(&server);
    let words = [&APPROACHES[..], &["--max-dollars", "50"]].concat();
    for wait in [1500, 2600, 3300] {
        let mut child = bench.compare("out", &words).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_exit_code(&bench.compare("out", &words).output().unwrap(), 0);
    let (fast_model, undisturbed) = service(Duration::ZERO);
    let other = ComparisonBench::new(&fast_model);
    assert_exit_code(&other.compare("out", &words).output().unwrap(), 0);
    assert_eq!(without_seconds(&bench), without_seconds(&other));
    // Only calls in flight are repeated, at most one for each of eight concurrent runs.
    let (with, without) = (answered(&bill), answered(&undisturbed));
    assert!(
        (without..=without + 3 * 8).contains(&with),
        "{with} {without}"
    );
}

#[test]
fn replay_repeats_call_timeouts() {
    let (server, _) = service(Duration::from_secs(6));
    let bench = ComparisonBench::new(&server);
    let words = [
        "--approaches",
        "zero-shot-plus",
        "--models",
        "m",
        "--max-minutes",
        "0.05",
    ];
    let output = bench.compare("out", &words).output().unwrap();
    assert_exit_code(&output, 0);
    let report = bench.json("out", "report.json");
    let system = &report["systems"][0];
    assert_eq!(
        (&system["judged"], &system["submitted"]),
        (&json!(2), &json!(0))
    );
    let recorded = bench.out("out");
    let output = bench
        .compare("again", &["--replay", recorded.to_str().unwrap()])
        .output()
        .unwrap();
    assert_exit_code(&output, 0);
    assert_same(&tables(&recorded), &tables(&bench.out("again")));
}

fn spent(output: &Output, bill: &Mutex<BilledUsage>, most: f64) {
    let billed = bill.lock().unwrap().dollars();
    assert!(
        billed <= most,
        "{billed} of {most}: {}",
        text(&output.stderr)
    );
}

#[test]
fn spending_limit_holds_and_can_be_raised() {
    let (server, bill) = service(Duration::ZERO);
    let bench = ComparisonBench::new(&server);
    let run = |most: &str| {
        let words = [&APPROACHES[..], &["--max-dollars", most]].concat();
        bench
            .compare("out", &words)
            .env("TESTWRIGHT_MODEL_MAX_TOKENS", "300")
            .output()
            .unwrap()
    };
    let output = run("0.3");
    assert_exit_code(&output, 3);
    spent(&output, &bill, 0.3);
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("the --max-dollars budget is used up"),
        "{stderr}"
    );
    let begun = bill.lock().unwrap().calls;
    assert!(begun > 0);
    // Runs that could not be made are not counted in any rate.
    let report = bench.json("out", "report.json");
    assert!(
        report["not_judged"]
            .as_array()
            .unwrap()
            .iter()
            .any(|why| why[1].as_u64() > Some(0))
    );
    for most in ["0.31", "50"] {
        let output = run(most);
        spent(&output, &bill, most.parse().unwrap());
    }
    let report = bench.json("out", "report.json");
    assert_eq!(report["not_judged"], json!([]));

    // A limit in dollars needs a price.
    let words = [
        "--approaches",
        "zero-shot",
        "--models",
        "free",
        "--max-dollars",
        "1",
    ];
    let output = bench.compare("free", &words).output().unwrap();
    assert_exit_code(&output, 2);
    assert!(text(&output.stderr).contains("has no price in the settings"));
}

#[test]
fn outages_are_not_failures() {
    let server = MockServer::start(|_| Response::status(401));
    let bench = ComparisonBench::new(&server);
    let words = ["--approaches", "zero-shot,zero-shot-plus", "--models", "m"];
    let output = bench.compare("out", &words).output().unwrap();
    assert_exit_code(&output, 3);
    let report = bench.json("out", "report.json");
    for system in report["systems"].as_array().unwrap() {
        assert_eq!(system["fail_to_pass"]["value"], Value::Null);
        assert_eq!(
            (&system["judged"], &system["not_judged"]),
            (&json!(0), &json!(2))
        );
    }
    let grading = bench.json("out", "grading/report.json");
    let summary = &grading["summary"]["zero-shot@m"];
    assert_eq!(
        (&summary["graded"], &summary["not_graded"]),
        (&json!(0), &json!(2))
    );
    for (words, says) in [
        (
            ["--approaches", "zero-shoot", "--models", "m"],
            "failed to find the approach `zero-shoot`",
        ),
        (
            ["--approaches", "libro,libro", "--models", "m"],
            "libro@m is named twice",
        ),
    ] {
        let output = bench.compare("other", &words).output().unwrap();
        assert_exit_code(&output, 2);
        assert!(
            text(&output.stderr).contains(says),
            "{}",
            text(&output.stderr)
        );
    }
}
