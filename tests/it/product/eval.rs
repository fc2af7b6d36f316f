//! `testwright eval` with real git and real pytest in the local sandbox.

mod corpus;
mod folder;
mod forgeries;
mod interrupted;
mod parquet;
pub(super) mod repository;
mod security;
mod workers;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::program::{TestDir, assert_exit_code};
use repository::{GOOD, Repository, TESTS, lines};

const ISSUE: &str = "add(1, -2) gives 0, and I expected -1.";

/// A repository with its dataset and predictions.
struct GradingBench {
    place: TestDir,
    repository: Repository,
}

impl GradingBench {
    fn new(after_install: Option<&str>) -> GradingBench {
        let place = TestDir::new();
        let folder = place.path("repositories/example+sums");
        GradingBench {
            repository: Repository::new(folder, after_install),
            place,
        }
    }

    fn dataset(&self, instances: &[Value]) {
        lines(&self.place.path("dataset.jsonl"), instances);
    }

    fn predictions(&self, predictions: &[(&str, &str, Option<&str>)]) {
        let records: Vec<Value> = predictions
            .iter()
            .map(|(model, instance, patch)| {
                json!({"instance_id": instance, "model_name_or_path": model, "model_patch": patch})
            })
            .collect();
        lines(&self.place.path("predictions.jsonl"), &records);
    }

    fn command(&self, words: &[&str], out: &str) -> Command {
        let template = self.place.path("repositories").join("{owner}+{name}");
        let mut command = self.place.testwright();
        command
            .arg("eval")
            .args(words)
            .arg("--dataset")
            .arg(self.place.path("dataset.jsonl"))
            .arg("--repositories")
            .arg(template)
            .arg("--out")
            .arg(self.place.path(out))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn grade(&self, words: &[&str], out: &str) -> Command {
        let mut command = self.command(words, out);
        command
            .arg("--predictions")
            .arg(self.place.path("predictions.jsonl"));
        command
    }

    /// Returns the results by prediction and instance.
    fn results(&self, out: &str) -> BTreeMap<(String, String), Value> {
        let text = std::fs::read_to_string(self.place.path(out).join("results.jsonl")).unwrap();
        let text_of = |value: &Value| value.as_str().unwrap().to_owned();
        text.lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .map(|r| ((text_of(&r["prediction"]), text_of(&r["instance_id"])), r))
            .collect()
    }
}

#[test]
fn nasty_predictions_get_correct_verdicts() {
    let bench = GradingBench::new(None);
    let (slow, cases): (Vec<_>, Vec<_>) = corpus::cases(&bench.repository)
        .into_iter()
        .partition(|case| case.name == "hangs");
    bench.dataset(&[
        bench.repository.instance("plain", ISSUE),
        bench
            .repository
            .instance("asks", "There should be a function `total`."),
    ]);
    let import_case = cases
        .iter()
        .find(|case| case.name.starts_with("an import error"))
        .unwrap();
    let mut predictions: Vec<(&str, &str, Option<&str>)> = cases
        .iter()
        .map(|case| (case.name, "plain", Some(case.patch.as_str())))
        .collect();
    predictions.push(("asked for", "asks", Some(&import_case.patch)));
    predictions.push(("nothing", "plain", None));
    predictions.push(("blank", "plain", Some(" \n")));
    predictions.push(("unknown", "no-such-instance", Some("x")));
    bench.predictions(&predictions);
    assert_exit_code(
        &bench.grade(&["--workers", "2"], "out").output().unwrap(),
        0,
    );
    let mut results = bench.results("out");
    // This prediction only takes time.
    bench.predictions(&[("hangs", "plain", Some(&slow[0].patch))]);
    let short = ["--test-seconds", "20", "--instances", "pl*"];
    assert_exit_code(&bench.grade(&short, "slow").output().unwrap(), 0);
    results.append(&mut bench.results("slow"));
    let mut wrong = Vec::new();
    for case in cases.iter().chain(&slow) {
        let result = &results[&(case.name.to_owned(), "plain".to_owned())];
        let verdicts = [
            result["strict"]["fail_to_pass"].as_bool().unwrap(),
            result["swt"]["success"].as_bool().unwrap(),
            result["tdd"]["fail_to_pass"].as_bool().unwrap(),
        ];
        let reason = result["strict"]["reason"].as_str().unwrap();
        let notes = format!("{} {}", result["notes"], result["differs"]);
        let agree = verdicts.iter().all(|v| *v == verdicts[0]);
        let good = verdicts == [case.strict, case.swt, case.tdd]
            && reason.contains(case.reason)
            && notes.contains(case.note)
            && result["infrastructure"].is_null()
            && result["differs"].as_array().unwrap().is_empty() == agree;
        if !good {
            wrong.push(format!(
                "{}: wanted {:?}, {:?}, {:?}; got {verdicts:?}, {reason}, {notes}, {}",
                case.name,
                [case.strict, case.swt, case.tdd],
                case.reason,
                case.note,
                result["infrastructure"]
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    let of = |name: &str, instance: &str| &results[&(name.to_owned(), instance.to_owned())];
    let import_result = of("asked for", "asks");
    assert_eq!(
        import_result["strict"]["fail_to_pass"], true,
        "{import_result:#}"
    );
    for name in ["nothing", "blank"] {
        assert_eq!(of(name, "plain")["has_patch"], false);
        assert_eq!(of(name, "plain")["applied"], false);
    }
    let plain = of("plain", "plain");
    // Of the changed lines that golden tests and base suite run, two run more often. `def total` runs on import in both
    // cases.
    let delta = plain["coverage_delta"].as_f64().unwrap();
    assert!((delta - 2.0 / 3.0).abs() < 1e-9, "{plain:#}");
    assert_eq!(plain["coverage_lines"], 3);
    // The changed test replaces the old one, which ran the same lines.
    let changed = of("changes a test that passes", "plain");
    assert_eq!(changed["coverage_delta"], 0.0, "{changed:#}");
    assert_eq!(plain["old_class"], "assertion");
    assert_eq!(plain["leakage"]["places"], json!([]));
    let report: Value =
        serde_json::from_slice(&std::fs::read(bench.place.path("out/report.json")).unwrap())
            .unwrap();
    assert!(
        report.to_string().contains("no-such-instance"),
        "told of, not dropped"
    );
    assert_eq!(report["summary"]["plain"]["instances"], 2);
}

#[test]
fn verify_detects_planted_new_code() {
    let bench = GradingBench::new(Some(
        "d=\"$(python -c 'import sysconfig; print(sysconfig.get_paths()[\"purelib\"])')/later/pkg\" && mkdir -p \"$d\" && \
         printf 'def add(a, b):\\n    return a + b\\ndef total(numbers):\\n    result = 0\\n    for number in numbers:\\n        \
         result = add(result, number)\\n    return result\\n' > \"$d/calc.py\"",
    ));
    // The new code of the second instance has its own environment.
    let plain = bench.repository.instance("plain", ISSUE);
    let mut packaging = bench.repository.instance("packaging", ISSUE);
    let more = bench.repository.patch(|r| {
        r.write("requirements-dev.txt", b"pytest\n");
        r.write("CHANGES.md", b"# Changes\n");
    });
    packaging["patch"] = json!(format!("{}{more}", plain["patch"].as_str().unwrap()));
    bench.dataset(&[plain, packaging]);
    let output = bench.command(&["verify"], "out").output().unwrap();
    assert_exit_code(&output, 0);
    let stdout = String::from_utf8_lossy(&output.stdout);
    for line in [
        "golden tests fail-to-pass: 2 of 2",
        "FAIL_TO_PASS of the dataset: 2 of 2 tests agree",
        "PASS_TO_PASS of the dataset: 4 of 4 tests agree",
    ] {
        assert!(stdout.contains(line), "{stdout}");
    }
    for result in bench.results("out").values() {
        let places = &result["leakage"]["places"];
        let place = places[0].as_str().unwrap_or_default();
        assert!(place.ends_with("later/pkg/calc.py"), "{places}");
    }

    // Files shared with the fix are applied over it, on either kind of new code. Prose files do not matter.
    let of = |edit: &dyn Fn(&Repository)| {
        bench.repository.patch(|r| {
            r.write("tests/test_calc.py", format!("{TESTS}{GOOD}").as_bytes());
            edit(r);
        })
    };
    let remark = of(&|r| {
        let code = std::fs::read_to_string(r.folder.join("pkg/calc.py")).unwrap();
        r.write("pkg/calc.py", format!("# A remark.\n{code}").as_bytes());
    });
    let prose = of(&|r| r.write("CHANGES.md", b"# Changes\n\n- A test.\n"));
    bench.predictions(&[
        ("remark", "plain", Some(&remark)),
        ("remark", "packaging", Some(&remark)),
        ("prose", "packaging", Some(&prose)),
    ]);
    assert_exit_code(&bench.grade(&[], "shared").output().unwrap(), 0);
    let results = bench.results("shared");
    for (name, instance, strict) in [
        ("remark", "plain", false),
        ("remark", "packaging", false),
        ("prose", "packaging", true),
    ] {
        let result = &results[&(name.to_owned(), instance.to_owned())];
        assert_eq!(result["tdd"]["fail_to_pass"], true, "{result:#}");
        assert_eq!(result["strict"]["fail_to_pass"], strict, "{result:#}");
    }
}

/// Removes the fields of a result that may differ between runs.
fn without_timings(mut result: Value) -> Value {
    for key in ["seconds", "cached"] {
        result.as_object_mut().unwrap().remove(key);
    }
    result
}

#[test]
fn killed_evaluation_resumes_with_same_results() {
    let bench = GradingBench::new(None);
    bench.dataset(&[bench.repository.instance("plain", ISSUE)]);
    let good = bench.repository.append_tests_patch(GOOD);
    let patches: Vec<(String, String)> = (0..6)
        .map(|n| {
            (
                format!("model {n}"),
                good.replace("test_negative", &format!("test_negative_{n}")),
            )
        })
        .collect();
    let predictions: Vec<_> = patches
        .iter()
        .map(|(model, patch)| (model.as_str(), "plain", Some(patch.as_str())))
        .collect();
    bench.predictions(&predictions);
    for wait in [400, 1900, 3100] {
        let mut child = bench.grade(&[], "out").spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // This simulates a last line that was cut short.
    let path = bench.place.path("out/results.jsonl");
    let mut bytes = std::fs::read(&path).unwrap_or_default();
    bytes.extend(b"{\"instance_id\": \"plain\", \"predi");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    assert_exit_code(&bench.grade(&[], "out").output().unwrap(), 0);
    assert_exit_code(&bench.grade(&[], "whole").output().unwrap(), 0);
    let (resumed, expected_results) = (bench.results("out"), bench.results("whole"));
    assert_eq!(expected_results.len(), 6);
    for (name, result) in expected_results {
        assert_eq!(result["infrastructure"], Value::Null, "{result:#}");
        assert_eq!(
            without_timings(resumed[&name].clone()),
            without_timings(result),
            "{name:?}"
        );
    }

    // A further command has nothing left to do.
    let before = std::fs::read(&path).unwrap();
    assert_exit_code(&bench.grade(&[], "out").output().unwrap(), 0);
    assert!(std::fs::read(&path).unwrap() == before, "graded again");
    assert_exit_code(
        &bench
            .place
            .testwright()
            .args(["eval", "report"])
            .arg(bench.place.path("out"))
            .output()
            .unwrap(),
        0,
    );
}

#[test]
fn invalid_input_is_rejected_with_hint() {
    let bench = GradingBench::new(None);
    bench.dataset(&[bench.repository.instance("plain", ISSUE)]);
    let error_text = |command: &mut Command| {
        let output = command.output().unwrap();
        assert_exit_code(&output, 2);
        String::from_utf8(output.stderr).unwrap()
    };
    let none = error_text(&mut bench.command(&[], "out"));
    assert!(none.contains("the predictions are missing"), "{none}");
    bench.predictions(&[]);
    let empty = "predictions.jsonl: the file contains no predictions";
    let empty_file = error_text(&mut bench.grade(&[], "out"));
    assert!(empty_file.contains(empty), "{empty_file}");
    let file = error_text(&mut bench.grade(&[], "dataset.jsonl"));
    assert!(file.contains("dataset.jsonl is a file"), "{file}");
    let mut merge = bench.place.testwright();
    merge.args(["eval", "merge", "one", "--out"]);
    let merged = error_text(merge.arg(bench.place.path("dataset.jsonl")));
    assert!(merged.contains("dataset.jsonl is a file"), "{merged}");
    let system = format!("e={}", bench.place.path("predictions.jsonl").display());
    let mut compare = bench.place.testwright();
    compare
        .args(["compare", "--approaches", "snippet", "--predictions"])
        .args([system.as_str(), "--dataset"])
        .arg(bench.place.path("dataset.jsonl"))
        .arg("--out")
        .arg(bench.place.path("compared"));
    let empty_system = error_text(&mut compare);
    assert!(empty_system.contains(empty), "{empty_system}");
    assert!(!bench.place.path("compared").exists());
    let unknown = error_text(&mut bench.command(&["verify", "--instances", "plane"], "out"));
    assert!(unknown.contains("plain"), "names the nearest: {unknown}");
    bench.predictions(&[("m", "plain", None), ("m", "other", Some(" \n"))]);
    let without_patch = error_text(&mut bench.grade(&[], "out"));
    assert!(
        without_patch.contains("2 predictions, 0 with a patch"),
        "{without_patch}"
    );
    let mut untested = bench.repository.instance("other", ISSUE);
    untested.as_object_mut().unwrap().remove("test_patch");
    bench.dataset(&[bench.repository.instance("plain", ISSUE), untested]);
    let without_tests = error_text(&mut bench.command(&["verify"], "out"));
    assert!(
        without_tests.contains("1 of 2 instances has no golden tests in `test_patch`: other"),
        "{without_tests}"
    );
    let mut unfixed = bench.repository.instance("plain", ISSUE);
    unfixed.as_object_mut().unwrap().remove("patch");
    bench.dataset(&[unfixed]);
    let without_fix = error_text(&mut bench.command(&["verify"], "out"));
    assert!(
        without_fix.contains("1 of 1 instance has no code patch"),
        "{without_fix}"
    );
    let missing_folder =
        error_text(
            bench
                .place
                .testwright()
                .args(["eval", "report", "/no/such/folder"]),
        );
    assert!(missing_folder.contains("results.jsonl"), "{missing_folder}");
    let unknown_folder = error_text(bench.place.testwright().args(["show", "/no/such/folder"]));
    assert!(
        unknown_folder.contains("pass the folder of a run or of results"),
        "{unknown_folder}"
    );
    std::fs::create_dir(bench.place.path("results")).unwrap();
    std::fs::write(bench.place.path("results/results.jsonl"), "").unwrap();
    let twice = error_text(
        bench
            .place
            .testwright()
            .args(["eval", "report", "results", "./results/"])
            .current_dir(bench.place.folder.path()),
    );
    assert!(twice.contains("./results/ is given twice"), "{twice}");
    std::fs::write(bench.place.path("dataset.jsonl"), [0u8, 1, 2, 255]).unwrap();
    let binary = error_text(&mut bench.command(&["verify"], "out"));
    assert!(
        binary.starts_with("error:") && binary.lines().count() <= 3,
        "{binary}"
    );
    assert!(!Path::new(&bench.place.path("out/report.json")).exists());
}
