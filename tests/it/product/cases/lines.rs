//! The lines that cases run, and the lines that no other test of the file runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use testwright_evals::cases::context::{ContextClass, classes};
use testwright_evals::cases::{Case, CaseCoverage, CaseOptions, Lines, cov, empty_test};
use testwright_evals::clover::blocks::unique_lines;

use super::repository::{self, case, file};
use super::{options, outcome_and_message};

fn lines(found: &CaseCoverage, path: &str) -> (Vec<u32>, Vec<u32>) {
    let lines = found.files.get(path).cloned().unwrap_or_default();
    let of = |set: &BTreeSet<u32>| set.iter().copied().collect();
    (of(&lines.hit), of(&lines.missed))
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_reported_for_any_outcome() {
    let place = repository::local().await;
    let failing =
        "from shop.price import rate\ndef test_a():\n    rate('food')\n    rate('none')\n";
    let ended = "import os\nfrom shop.price import rate\ndef test_a():\n    rate('food')\n    os._exit(0)\n";
    let untraced = "import sys\nfrom shop.price import rate\ndef test_a():\n    sys.settrace(None)\n    \
                    getattr(sys, 'monitoring', None) and sys.monitoring.free_tool_id(3)\n    rate('food')\n";
    let child = "import subprocess, sys\ndef test_a():\n    subprocess.check_call([sys.executable, '-c', 'import shop.stock; shop.stock.Stock().add(1)'])\n";
    let cases = [failing, ended, untraced, child];
    let cases: Vec<Case> = cases.iter().map(|source| case("a", source)).collect();
    let mut seen: Vec<Vec<CaseCoverage>> = Vec::new();
    for (warm, workers) in [(true, 2), (false, 1)] {
        let options = CaseOptions {
            warm,
            ..options(workers)
        };
        seen.push(cov(&place, &cases, &options).await.unwrap());
    }
    for found in &seen {
        assert_eq!(
            outcome_and_message(&found[0].verification.outcome).0,
            "failed"
        );
        assert_eq!(found[0].problem, None);
        let (hit, missed) = lines(&found[0], "shop/price.py");
        assert_eq!(hit, [1, 7, 8, 9, 10, 15]);
        assert_eq!(missed, [16, 17, 18, 19]);
        assert_eq!(found[0].files["shop/price.py"].rate(), 0.6);
        assert!(!found[0].files.contains_key("tests/test_case.py"));
        assert!(!found[0].files.contains_key("shop/stock.py"));
        assert_eq!(
            outcome_and_message(&found[1].verification.outcome).0,
            "crashed"
        );
        assert!(found[1].problem.is_some());
        assert!(found[2].problem.is_some(), "{:?}", found[2]);
        assert_eq!(lines(&found[3], "shop/stock.py").0, [1, 2, 3, 5, 6, 8, 14]);
    }
    for (warm, cold) in seen[0].iter().zip(&seen[1]) {
        assert_eq!((&warm.files, &warm.problem), (&cold.files, &cold.problem));
    }
}

/// Returns the lines by test and file as pytest-cov reports them with `--cov-context=test`.
fn by_pytest_cov(file: &str) -> BTreeMap<String, Lines> {
    let python = python_with_pytest_cov();
    let folder = tempfile::tempdir().unwrap();
    repository::write(folder.path());
    let python_path = ("PYTHONPATH", folder.path());
    let ran = Command::new(&python)
        .args([
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--cov=shop",
            "--cov=tests",
        ])
        .args(["--cov-context=test", "--cov-report=", file])
        .current_dir(folder.path())
        .env(python_path.0, python_path.1)
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stdout)
    );
    let ran = Command::new(&python)
        .args([
            "-m",
            "coverage",
            "json",
            "-q",
            "--show-contexts",
            "-o",
            "found.json",
        ])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let found = std::fs::read(folder.path().join("found.json")).unwrap();
    let found: Value = serde_json::from_slice(&found).unwrap();
    let mut contexts: BTreeMap<String, Lines> = BTreeMap::new();
    for (path, of_file) in found["files"].as_object().unwrap() {
        // Only first lines of statements count; coverage.py also reports contexts for the other lines.
        let statements = of_file["executed_lines"].as_array().unwrap();
        for line in statements {
            let tests = &of_file["contexts"][line.to_string()];
            for test in tests.as_array().unwrap() {
                // Contexts are `ID|setup`, `ID|run` and `ID|teardown`; lines run during imports have none.
                let Some((test, _)) = test.as_str().unwrap().rsplit_once('|') else {
                    continue;
                };
                let lines = contexts.entry(test.to_owned()).or_default();
                let lines = lines.entry(path.clone()).or_default();
                lines.insert(u32::try_from(line.as_u64().unwrap()).unwrap());
            }
        }
    }
    contexts
}

fn python_with_pytest_cov() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-pytest-cov");
    if !folder.exists() {
        let aside = folder.with_extension(std::process::id().to_string());
        let uv = |words: &[&str]| {
            let ran = Command::new("uv").args(words).arg(&aside).output().unwrap();
            assert!(
                ran.status.success(),
                "{}",
                String::from_utf8_lossy(&ran.stderr)
            );
        };
        uv(&["venv", "--quiet"]);
        let packages = ["pytest", "pytest-cov"];
        uv(&[&["pip", "install", "--quiet"], &packages[..], &["--python"]].concat());
        if std::fs::rename(&aside, &folder).is_err() {
            std::fs::remove_dir_all(&aside).unwrap();
        }
    }
    folder.join("bin/python")
}

/// Removes the lines of the test file itself.
fn without_test_file(mut contexts: BTreeMap<String, Lines>, file: &str) -> BTreeMap<String, Lines> {
    for lines in contexts.values_mut() {
        lines.remove(file);
    }
    contexts
}

/// Returns the lines that only this test runs, with all of its parameters.
fn lines_of_test(contexts: &BTreeMap<String, Lines>, test: &str) -> Lines {
    let mut by_test: BTreeMap<String, Lines> = BTreeMap::new();
    for (id, lines) in contexts {
        let name = id.split('[').next().unwrap_or_default();
        let all = by_test.entry(name.to_owned()).or_default();
        for (path, lines) in lines {
            all.entry(path.clone()).or_default().extend(lines);
        }
    }
    unique_lines(&by_test).remove(test).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_by_test_match_coverage_py() {
    let place = repository::local().await;
    let files = ["tests/test_price.py", "tests/test_stock.py"];
    let cases = files.map(file);
    for warm in [true, false] {
        let options = CaseOptions {
            contexts: true,
            warm,
            ..options(2)
        };
        let found = cov(&place, &cases, &options).await.unwrap();
        for (found, path) in found.iter().zip(files) {
            assert!(found.verification.passed(), "{found:?}");
            let theirs = without_test_file(by_pytest_cov(path), path);
            assert_eq!(found.contexts, theirs);
            assert!(theirs.len() >= 4);
            for id in theirs.keys() {
                // Both sources must give the same unique lines (Q_peer).
                let test = id.split('[').next().unwrap();
                let unique = lines_of_test(&found.contexts, test);
                assert_eq!(unique, lines_of_test(&theirs, test), "{test}");
            }
        }
        let peers = |test: &str| lines_of_test(&found[0].contexts, test);
        let of = |lines: &[u32]| {
            Lines::from([("shop/price.py".to_owned(), lines.iter().copied().collect())])
        };
        assert_eq!(peers("tests/test_price.py::test_unknown_kind"), of(&[10]));
        assert_eq!(
            peers("tests/test_price.py::test_total"),
            of(&[16, 17, 18, 19])
        );
        assert_eq!(peers("tests/test_price.py::test_rate"), Lines::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_classified_by_empty_test() {
    let place = repository::local().await;
    let whole = file("tests/test_price.py");
    let mut base = whole.clone();
    base.tests = vec!["test_unknown_kind".to_owned()];
    let mut empty = base.clone();
    empty.source = empty_test(&base.source, "test_unknown_kind").unwrap();
    let mut rate = base.clone();
    rate.tests = vec!["test_rate".to_owned()];
    let options = CaseOptions {
        contexts: true,
        ..options(2)
    };
    let found = cov(&place, &[whole, base, empty, rate], &options).await;
    let found = found.unwrap();
    assert!(found.iter().all(|found| found.verification.passed()));
    let class = |base: &CaseCoverage, test: &str| {
        let unique = lines_of_test(&found[0].contexts, test);
        classes(base, &found[2], &unique)
    };
    let (init, price) = ("shop/__init__.py".to_owned(), "shop/price.py".to_owned());
    let conftest = "tests/conftest.py".to_owned();
    let with = |of_price| {
        let repository = ContextClass::Repository;
        let files = [
            (init.clone(), repository),
            (price.clone(), of_price),
            (conftest.clone(), repository),
        ];
        BTreeMap::from(files)
    };
    let peer = class(&found[1], "tests/test_price.py::test_unknown_kind");
    assert_eq!(peer, with(ContextClass::Peer));
    let other = class(&found[3], "tests/test_price.py::test_rate");
    assert_eq!(other, with(ContextClass::Other));
    let same = class(&found[2], "tests/test_price.py::test_rate");
    assert_eq!(same, with(ContextClass::Repository));
}
