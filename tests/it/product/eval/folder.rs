//! The results folder after an interrupted command, and after a command that asks for something else.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::repository::GOOD;
use super::{GradingBench, ISSUE};
use crate::support::program::{assert_exit_code, interrupt};

/// Creates a bench of instances of one repository and commit.
fn bench(instances: &[&str]) -> GradingBench {
    let bench = GradingBench::new(None);
    let all: Vec<Value> = instances
        .iter()
        .map(|id| bench.repository.instance(id, ISSUE))
        .collect();
    bench.dataset(&all);
    bench
}

/// Reads all files below a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut contents = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            contents.extend(files(&path));
        } else {
            contents.insert(path.display().to_string(), std::fs::read(&path).unwrap());
        }
    }
    contents
}

fn report(bench: &GradingBench) -> Value {
    let output = bench
        .place
        .testwright()
        .args(["eval", "report", "--json"])
        .arg(bench.place.path("out"))
        .output()
        .unwrap();
    assert_exit_code(&output, 0);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn unrequested_results_stop_command() {
    let bench = bench(&["first", "second"]);
    let good = bench.repository.append_tests_patch(GOOD);
    bench.predictions(&[
        ("otter", "first", Some(&good)),
        ("otter", "second", Some(&good)),
    ]);
    assert_exit_code(
        &bench
            .grade(&["--instances", "first"], "out")
            .output()
            .unwrap(),
        0,
    );
    let graded = report(&bench);
    assert_eq!(graded["summary"]["otter"]["instances"], 1);
    // The dataset contains the other instance, which is not selected.
    let remarks = graded["notes"].to_string();
    assert!(!remarks.contains("no such instance"), "{remarks}");

    // Additional results do not matter.
    assert_exit_code(&bench.grade(&[], "out").output().unwrap(), 0);
    assert_eq!(bench.results("out").len(), 2);

    // This simulates a line that was cut short, which must also stay unchanged.
    let path = bench.place.path("out/results.jsonl");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend(b"{\"instance_id\": \"first\", \"predi");
    std::fs::write(&path, bytes).unwrap();
    let before = files(&bench.place.path("out"));
    let refused = |command: &mut Command, what: &str| {
        let output = command.output().unwrap();
        assert_exit_code(&output, 2);
        let stderr = String::from_utf8(output.stderr).unwrap();
        let out = bench.place.path("out");
        let cause = format!("{} contains {what}", out.display());
        assert!(stderr.contains(&cause), "{stderr}");
        assert!(stderr.contains("--out"), "{stderr}");
        assert!(files(&out) == before, "the folder was changed");
    };
    refused(
        &mut bench.grade(&["--instances", "first"], "out"),
        "1 result that this command does not request (otter: second)",
    );
    let both = "2 results that this command does not request (otter: first, second)";
    refused(&mut bench.command(&["verify"], "out"), both);
    bench.predictions(&[("beaver", "first", Some(&good))]);
    refused(&mut bench.grade(&[], "out"), both);
}

/// Waits until the command has started grading in the folder `out`.
fn wait_until_grading(bench: &GradingBench, child: &mut Child) {
    let before = Instant::now();
    while !bench.place.path("out/run.json").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        assert!(
            before.elapsed() < Duration::from_secs(300),
            "nothing begins"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Counts the results: complete lines of the file.
fn count_results(bench: &GradingBench) -> u64 {
    let bytes = std::fs::read(bench.place.path("out/results.jsonl")).unwrap();
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[test]
fn partial_report_counts_missing_results() {
    let ids = ["a", "b", "c", "d", "e"];
    let bench = bench(&ids);
    // Tests with the current time, so that none is cached and each takes a while.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let patches: Vec<String> = (0..ids.len())
        .map(|n| {
            let name = format!("test_negative_{n}_{}", now.as_nanos());
            let tests = GOOD.replace("test_negative", &name);
            bench.repository.append_tests_patch(&tests)
        })
        .collect();
    let predictions: Vec<_> = ids
        .iter()
        .zip(&patches)
        .map(|(id, patch)| ("otter", *id, Some(patch.as_str())))
        .collect();
    bench.predictions(&predictions);
    let slowly = ["--workers", "1"];
    let counts = |report: &Value| {
        let of = |name: &str| report["summary"]["otter"][name].as_u64().unwrap();
        [of("instances"), of("graded"), of("not_graded")]
    };

    let mut child = bench.grade(&slowly, "out").spawn().unwrap();
    wait_until_grading(&bench, &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    let (there, first) = (count_results(&bench), report(&bench));
    assert!(there < 5, "too late to cut it short");
    assert_eq!(counts(&first), [5, there, 5 - there]);
    assert_eq!(first["run"]["seconds"], Value::Null);
    let started = first["run"]["started"].as_str().unwrap();

    let mut child = bench.grade(&slowly, "out").spawn().unwrap();
    let wait = Instant::now();
    while count_results(&bench) < there + 1 {
        assert!(
            wait.elapsed() < Duration::from_secs(300),
            "nothing is graded"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let (there, second) = (count_results(&bench), report(&bench));
    assert!(there < 5, "too late to cut it short");
    assert_eq!(counts(&second), [5, there, 5 - there]);
    assert_eq!(second["run"]["started"], started);
    let seconds = second["run"]["seconds"].as_f64().unwrap();
    assert!(seconds > 0.0);
    let report_output = bench
        .place
        .testwright()
        .args(["eval", "report"])
        .arg(bench.place.path("out"))
        .output()
        .unwrap();
    let report_text = String::from_utf8(report_output.stdout).unwrap();
    let line = format!("otter: {} of 5 instances not graded yet", 5 - there);
    assert!(report_text.contains(&line), "{report_text}");

    assert_exit_code(&bench.grade(&slowly, "out").output().unwrap(), 0);
    let last = report(&bench);
    assert_eq!(counts(&last), [5, 5, 0]);
    assert_eq!(last["run"]["started"], started);
    assert!(last["run"]["seconds"].as_f64().unwrap() > seconds);
}

#[test]
fn only_configured_environment_applies_to_instances() {
    let bench = bench(&["first"]);
    let environment = "[environment]\nafter-install = [\"exit 7\"]\n";
    std::fs::write(bench.place.path("named.toml"), environment).unwrap();
    let folder = bench.place.path("folder");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("testwright.toml"), environment).unwrap();
    let golden = |out: &str| bench.results(out)[&("golden".to_owned(), "first".to_owned())].clone();

    let plain = bench.command(&["verify"], "plain").output().unwrap();
    assert_exit_code(&plain, 0);
    assert_eq!(golden("plain")["strict"]["fail_to_pass"], true);

    let mut explicit_command = bench.command(&["verify"], "named");
    explicit_command
        .arg("--config")
        .arg(bench.place.path("named.toml"));
    explicit_command.output().unwrap();
    let result = golden("named");
    assert!(result["infrastructure"].is_object(), "{result}");
    assert_ne!(result["key"], golden("plain")["key"]);

    let instance = bench.repository.instance("first", ISSUE);
    bench.predictions(&[("m", "first", instance["test_patch"].as_str())]);
    let named = bench.place.path("named.toml");
    for (words, exit_code) in [(&[][..], 3), (&["--allow-partial"], 0)] {
        let mut command = bench.grade(words, "ungraded");
        let output = command.arg("--config").arg(&named).output().unwrap();
        assert_exit_code(&output, exit_code);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            stderr.contains("1 of 1 predictions could not be graded"),
            "{stderr}"
        );
    }

    let mut folder_command = bench.command(&["verify"], "found");
    let folder_output = folder_command.current_dir(&folder).output().unwrap();
    assert_exit_code(&folder_output, 0);
    let stderr = String::from_utf8_lossy(&folder_output.stderr);
    assert!(
        stderr.contains("[environment] of the testwright.toml"),
        "{stderr}"
    );
    assert_eq!(golden("found")["key"], golden("plain")["key"]);
}

#[test]
fn merged_verification_keeps_exit_code() {
    let bench = GradingBench::new(None);
    let mut vacuous = bench.repository.instance("second", ISSUE);
    let test = "\n\ndef test_one():\n    assert 1 == 1\n";
    vacuous["test_patch"] = bench.repository.append_tests_patch(test).into();
    bench.dataset(&[bench.repository.instance("first", ISSUE), vacuous]);
    for (instance, exit_code) in [("first", 0), ("second", 1)] {
        let words = ["verify", "--instances", instance];
        let output = bench.command(&words, instance).output().unwrap();
        assert_exit_code(&output, exit_code);
    }
    let merge = |folders: &[&str], out: &str| {
        let mut command = bench.place.testwright();
        command.args(["eval", "merge"]).args(folders);
        let command = command.args(["--out", out]);
        command
            .current_dir(bench.place.folder.path())
            .output()
            .unwrap()
    };
    let both = merge(&["first", "second"], "both");
    assert_exit_code(&both, 1);
    let stdout = String::from_utf8(both.stdout).unwrap();
    assert!(
        stdout.contains("golden tests fail-to-pass: 1 of 2\n"),
        "{stdout}"
    );
    let one = merge(&["first"], "one");
    assert_exit_code(&one, 0);
    let stderr = String::from_utf8(one.stderr).unwrap();
    let note = "note: the merged folders have 1 of the 2 instances of the dataset";
    assert!(stderr.contains(note), "{stderr}");
}

#[test]
fn folders_of_compare_and_eval_are_distinct() {
    let bench = bench(&["first"]);
    let path = |name: &str| bench.place.path(name);
    for (folder, file) in [("graded", "results.jsonl"), ("compared", "comparison.json")] {
        std::fs::create_dir(path(folder)).unwrap();
        std::fs::write(path(folder).join(file), "").unwrap();
    }
    let mut compare = bench.place.testwright();
    compare
        .args(["compare", "--approaches", "snippet", "--dataset"])
        .arg(path("dataset.jsonl"))
        .arg("--out")
        .arg(path("graded"));
    for (mut command, cause) in [
        (compare, "contains the results of `testwright eval`"),
        (
            bench.command(&["verify"], "compared"),
            "contains the results of `testwright compare`",
        ),
    ] {
        let output = command.output().unwrap();
        assert_exit_code(&output, 2);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(cause), "{stderr}");
    }
    assert_eq!(files(&path("graded")).len(), 1);
    assert_eq!(files(&path("compared")).len(), 1);
}

#[test]
fn merged_shards_equal_whole_evaluation() {
    let bench = bench(&["first", "second"]);
    let good = bench.repository.append_tests_patch(GOOD);
    bench.predictions(&[
        ("otter", "first", Some(&good)),
        ("otter", "second", Some(&good)),
    ]);
    for (shard, folder, results) in [("1/3", "empty", 0), ("2/3", "one", 1), ("3/3", "two", 1)] {
        let graded = bench.grade(&["--shard", shard], folder).output();
        assert_exit_code(&graded.unwrap(), 0);
        assert_eq!(bench.results(folder).len(), results, "{shard}");
    }
    let run = |words: &[&str]| {
        let mut command = bench.place.testwright();
        let output = command
            .args(words)
            .current_dir(bench.place.folder.path())
            .output()
            .unwrap();
        assert_exit_code(&output, 0);
        String::from_utf8(output.stdout).unwrap()
    };
    let merged = run(&["eval", "merge", "empty", "one", "two", "--out", "out"]);
    assert!(merged.contains("2/2 100.0 %"), "{merged}");
    assert_eq!(run(&["show", "out"]), merged);
    let some = run(&["eval", "report", "out", "--instances", "first"]);
    assert!(some.contains("1/1 100.0 %"), "{some}");
    let metadata = std::fs::read(bench.place.path("out/run.json")).unwrap();
    let metadata: Value = serde_json::from_slice(&metadata).unwrap();
    assert_eq!(metadata["format"], 1);
    assert_eq!(metadata["instances"], 2);
    let digest = metadata["dataset_sha256"].as_str().unwrap();
    assert_eq!(digest.len(), 64);
    let table = std::fs::read_to_string(bench.place.path("out/results.csv")).unwrap();
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows[0].starts_with("instance_id,prediction,repo,"));
    assert!(rows[1].starts_with("first,otter,example/sums,"), "{table}");
    assert_eq!(rows.len(), 3, "{table}");
    assert!(bench.place.path("out/tables/rates.tex").exists());
}
