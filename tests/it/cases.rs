//! Test files as they are given: how they come out, what they run, and that none of them reaches another one.

mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use testwright_evals::cases::context::{ContextClass, classes, unique_lines};
use testwright_evals::cases::{
    Case, CaseCoverage, CaseOptions, CaseOutcome, Lines, Place, cov, empty_test, verify,
};

use crate::base_image;
use place::{case, file};

/// Fails, and tells what is in the repository: names, modes and contents, compiled files included.
const DIGEST: &str = r#"
import hashlib, os

def test_digest():
    found = hashlib.sha256()
    for folder, folders, files in os.walk("."):
        folders.sort()
        for name in sorted(files):
            path = os.path.join(folder, name)
            if path != "./tests/test_case.py":
                with open(path, "rb") as content:
                    found.update(repr((path, os.stat(path).st_mode, content.read())).encode())
    assert not found.hexdigest(), sorted(os.listdir("/tmp") + os.listdir(os.path.expanduser("~")))
"#;

fn options(workers: usize) -> CaseOptions {
    CaseOptions {
        workers,
        ..CaseOptions::default()
    }
}

/// The outcome's name, and what is said of it.
fn told(outcome: &CaseOutcome) -> (&'static str, &str) {
    match outcome {
        CaseOutcome::Passed => ("passed", ""),
        CaseOutcome::Failed { message } => ("failed", message),
        CaseOutcome::Error { message } => ("error", message),
        CaseOutcome::NotRun { reason } => ("not run", reason),
        CaseOutcome::TimedOut => ("timed out", ""),
        CaseOutcome::Crashed { reason } => ("crashed", reason),
        CaseOutcome::Flaky => ("flaky", ""),
    }
}

/// Sources by what becomes of them, and a word of the reason.
const ORDINARY: [(&str, &str, &str); 11] = [
    (
        "passed",
        "",
        "from shop import total\ndef test_a(): assert total([(100, 'food')]) == 107\n",
    ),
    ("failed", "assert 1 == 2", "def test_a(): assert 1 == 2\n"),
    (
        "failed",
        "KeyError",
        "from shop.price import rate\ndef test_a(): rate('none')\n",
    ),
    (
        "error",
        "none_such",
        "import none_such\ndef test_a(): pass\n",
    ),
    ("error", "SyntaxError", "def test_a(: pass\n"),
    (
        "error",
        "fixture 'none_such'",
        "def test_a(none_such): pass\n",
    ),
    (
        "not run",
        "for now",
        "import pytest\n@pytest.mark.skip(reason='for now')\ndef test_a(): pass\n",
    ),
    (
        "not run",
        "expected to fail",
        "import pytest\n@pytest.mark.xfail\ndef test_a(): assert 0\n",
    ),
    ("not run", "no test", "def helper(): pass\n"),
    (
        "failed",
        "test_b",
        "def test_a(): pass\ndef test_b(): assert 0\n",
    ),
    (
        "passed",
        "",
        "import asyncio\ndef test_a(stock): assert asyncio.sleep and len(stock) == 0\n",
    ),
];

/// Answers that mean no good.
const HOSTILE: [(&str, &str, &str); 19] = [
    (
        "crashed",
        "exit status 0",
        "import os\ndef test_a(): os._exit(0)\n",
    ),
    (
        "crashed",
        "",
        "import os\nos._exit(0)\ndef test_a(): pass\n",
    ),
    (
        "failed",
        "SystemExit",
        "import sys\ndef test_a(): sys.exit(0)\n",
    ),
    // By the release of pytest.
    (
        "crashed|not run",
        "",
        "import sys\nsys.exit(0)\ndef test_a(): pass\n",
    ),
    (
        "not run|crashed",
        "",
        "import pytest\ndef test_a(): pytest.exit('done', returncode=0)\n",
    ),
    (
        "crashed",
        "",
        "import os, signal\ndef test_a(): os.kill(os.getpid(), signal.SIGKILL)\n",
    ),
    (
        "crashed",
        "",
        "import os, threading, time\ndef test_a(): threading.Thread(target=lambda: os._exit(0)).start(); time.sleep(60)\n",
    ),
    ("timed out", "", "def test_a():\n    while True: pass\n"),
    (
        // Where nothing but the sandbox can end it, that is replaced.
        "timed out|crashed",
        "",
        "import os\ndef test_a():\n    while True:\n        try: os.fork()\n        except OSError: pass\n",
    ),
    (
        "crashed",
        "from_item_and_call",
        "from _pytest.reports import TestReport\noriginal = TestReport.from_item_and_call.__func__\ndef patched(cls, item, call):\n    \
         call.excinfo = None\n    return original(cls, item, call)\nTestReport.from_item_and_call = classmethod(patched)\n\
         def test_a(): assert 0\n",
    ),
    (
        "crashed",
        "runtest",
        "from _pytest.python import Function\nFunction.runtest = lambda self: None\ndef test_a(): assert 0\n",
    ),
    (
        "crashed",
        "testwright_record",
        "import sys\nsys.modules['testwright_record'].emit('x')\ndef test_a(): pass\n",
    ),
    (
        "passed",
        "",
        "def test_a():\n    with open('shop/price.py', 'w') as f: f.write('def total(items): return 107')\n",
    ),
    (
        "passed",
        "",
        "import os\ndef test_a():\n    for name in os.listdir('shop'):\n        if name.endswith('.py'): os.remove('shop/' + name)\n",
    ),
    (
        "passed",
        "",
        "def test_a():\n    with open('conftest.py', 'w') as f: f.write('import none_such')\n",
    ),
    (
        "passed",
        "",
        "import os\ndef test_a():\n    os.makedirs('new/folder'); os.symlink('/', 'new/link'); os.chmod('new/folder', 0)\n",
    ),
    (
        "passed",
        "",
        "import os, sys\ndef test_a():\n    open('/tmp/left', 'w').close(); open(os.path.expanduser('~/.pythonrc'), 'w').close()\n",
    ),
    (
        "passed",
        "",
        "import subprocess, sys\ndef test_a():\n    code = \"import time\\nwhile True:\\n    open('shop/late.py', 'w').close()\\n    time.sleep(0.01)\"\n    \
         subprocess.Popen([sys.executable, '-c', code], start_new_session=True)\n",
    ),
    (
        "passed",
        "",
        "import os\ndef test_a():\n    os.chmod('tests/test_price.py', 0o777)\n",
    ),
];

/// All of them, with the state of the repository told in between.
fn among_digests(sources: &[(&str, &str, &str)]) -> Vec<Case> {
    let mut cases = vec![case("digest", DIGEST)];
    for (at, (_, _, source)) in sources.iter().enumerate() {
        let mut given = case(&at.to_string(), source);
        if source.contains("while True") {
            given.timeout = Duration::from_secs(4);
        }
        cases.extend([given, case("digest", DIGEST)]);
    }
    cases
}

async fn come_out(place: &Place, sources: &[(&str, &str, &str)], options: &CaseOptions) {
    let cases = among_digests(sources);
    let ran = verify(place, &cases, options).await.unwrap();
    assert_eq!(ran.len(), cases.len());
    let digests = ran.iter().filter(|ran| ran.id == "digest");
    let digests: BTreeSet<(&str, &str)> = digests.map(|ran| told(&ran.outcome)).collect();
    assert_eq!(digests.len(), 1, "{digests:#?}");
    let (outcome, message) = digests.first().unwrap();
    assert_eq!(*outcome, "failed", "{message}");
    let others = ran.iter().filter(|ran| ran.id != "digest");
    let wrong: Vec<String> = (others.zip(sources))
        .filter_map(|(ran, (outcomes, word, source))| {
            let (found, message) = told(&ran.outcome);
            let is_among = outcomes.split('|').any(|outcome| outcome == found);
            let is_right = is_among && message.contains(word);
            (!is_right).then(|| format!("{found}: {message}\n{source}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn cases_come_out_as_they_are() {
    let place = place::local().await;
    for warm in [true, false] {
        let options = CaseOptions { warm, ..options(1) };
        come_out(&place, &ORDINARY, &options).await;
    }
    let mut missing = case("a", "def test_a(): pass\ndef test_b(): assert 0\n");
    missing.tests = vec!["test_c".to_owned()];
    let mut one = missing.clone();
    one.tests = vec!["test_a".to_owned()];
    let mut outside = missing.clone();
    outside.path = "../test_case.py".to_owned();
    let mut folder = missing.clone();
    folder.path = "tests".to_owned();
    let ran = verify(&place, &[missing, one, outside, folder], &options(1)).await;
    let ran = ran.unwrap();
    assert!(
        told(&ran[0].outcome)
            .1
            .contains("no test tests/test_case.py::test_c")
    );
    assert_eq!(ran[1].outcome, CaseOutcome::Passed);
    assert!(told(&ran[2].outcome).1.contains("not a path relative"));
    assert!(told(&ran[3].outcome).1.contains("in its place"));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_case_harms_another_one_or_passes_by_a_trick() {
    let place = place::local().await;
    come_out(&place, &HOSTILE, &options(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_no_case_harms_another_one_or_passes_by_a_trick() {
    if !base_image::is_there() {
        return;
    }
    let place = place::docker().await;
    come_out(&place, &ORDINARY, &options(1)).await;
    come_out(&place, &HOSTILE, &options(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_that_comes_out_in_two_ways_is_flaky() {
    let place = place::local().await;
    let flaky = "import os\ndef test_a(): assert os.environ['PYTHONHASHSEED'] == '0'\n";
    let cases = [case("a", flaky), case("b", "def test_a(): assert 0\n")];
    let options = CaseOptions {
        repeats: 2,
        ..options(2)
    };
    let ran = verify(&place, &cases, &options).await.unwrap();
    assert_eq!(ran[0].outcome, CaseOutcome::Flaky);
    assert_eq!(told(&ran[1].outcome).0, "failed");
}

fn lines(found: &CaseCoverage, path: &str) -> (Vec<u32>, Vec<u32>) {
    let lines = found.files.get(path).cloned().unwrap_or_default();
    let of = |set: &BTreeSet<u32>| set.iter().copied().collect();
    (of(&lines.hit), of(&lines.missed))
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_told_by_file_however_a_case_comes_out() {
    let place = place::local().await;
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
        assert_eq!(told(&found[0].verification.outcome).0, "failed");
        assert_eq!(found[0].problem, None);
        let (hit, missed) = lines(&found[0], "shop/price.py");
        assert_eq!(hit, [1, 7, 8, 9, 10, 15]);
        assert_eq!(missed, [16, 17, 18, 19]);
        assert_eq!(found[0].files["shop/price.py"].rate(), 0.6);
        assert!(!found[0].files.contains_key("tests/test_case.py"));
        assert!(!found[0].files.contains_key("shop/stock.py"));
        assert_eq!(told(&found[1].verification.outcome).0, "crashed");
        assert!(found[1].problem.is_some());
        assert!(found[2].problem.is_some(), "{:?}", found[2]);
        assert_eq!(lines(&found[3], "shop/stock.py").0, [1, 2, 3, 5, 6, 8, 14]);
    }
    for (warm, cold) in seen[0].iter().zip(&seen[1]) {
        assert_eq!((&warm.files, &warm.problem), (&cold.files, &cold.problem));
    }
}

/// By test and file, the lines that coverage.py says each test ran: pytest-cov with `--cov-context=test`.
fn by_pytest_cov(file: &str) -> BTreeMap<String, Lines> {
    let python = python_with_pytest_cov();
    let folder = tempfile::tempdir().unwrap();
    place::write(folder.path());
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
        // First lines of statements: contexts are told for the others as well.
        let statements = of_file["executed_lines"].as_array().unwrap();
        for line in statements {
            let tests = &of_file["contexts"][line.to_string()];
            for test in tests.as_array().unwrap() {
                // `ID|setup`, `ID|run` and `ID|teardown`; nothing for what ran while files were imported.
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

/// What ran of the repository besides the file of the tests.
fn of_others(mut contexts: BTreeMap<String, Lines>, file: &str) -> BTreeMap<String, Lines> {
    for lines in contexts.values_mut() {
        lines.remove(file);
    }
    contexts
}

#[tokio::test(flavor = "multi_thread")]
async fn which_test_runs_which_line_is_as_coverage_py_says() {
    let place = place::local().await;
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
            let theirs = of_others(by_pytest_cov(path), path);
            assert_eq!(found.contexts, theirs);
            assert!(theirs.len() >= 4);
            for id in theirs.keys() {
                // Q_peer by both.
                let test = id.split('[').next().unwrap();
                let unique = unique_lines(&found.contexts, test);
                assert_eq!(unique, unique_lines(&theirs, test), "{test}");
            }
        }
        let peers = |test: &str| unique_lines(&found[0].contexts, test);
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
async fn files_are_classed_by_an_empty_test_in_the_same_place() {
    let place = place::local().await;
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
        let unique = unique_lines(&found[0].contexts, test);
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
