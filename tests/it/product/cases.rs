//! Test files in a batch: their outcomes, the lines they run, and their isolation from each other.

mod lines;
mod repository;

use std::collections::BTreeSet;
use std::time::Duration;

use testwright_evals::cases::{Case, CaseEnvironment, CaseOptions, CaseOutcome, verify};

use crate::support::base_image;
use repository::{FILES, case};

/// A test that fails with a digest of the repository: names, modes and contents, including compiled files.
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

/// Returns the name of an outcome and its message.
fn outcome_and_message(outcome: &CaseOutcome) -> (&'static str, &str) {
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

/// Ordinary cases: the expected outcome, a part of its message, and the source.
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

/// Malicious cases, as in `ORDINARY`; `|` separates alternative outcomes.
const MALICIOUS: [(&str, &str, &str); 19] = [
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
    (
        "error",
        "SystemExit: 0",
        "import sys\nsys.exit(0)\ndef test_a(): pass\n",
    ),
    // The outcome depends on the version of pytest.
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
        // If only the sandbox can end it, the sandbox is replaced.
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

/// Returns all cases, with a digest of the repository before and after each.
fn with_digests(sources: &[(&str, &str, &str)]) -> Vec<Case> {
    let mut cases = vec![case("digest", DIGEST)];
    for (at, (_, _, source)) in sources.iter().enumerate() {
        let mut test_case = case(&at.to_string(), source);
        if source.contains("while True") {
            test_case.timeout = Duration::from_secs(4);
        }
        cases.extend([test_case, case("digest", DIGEST)]);
    }
    cases
}

async fn assert_outcomes(
    place: &CaseEnvironment,
    sources: &[(&str, &str, &str)],
    options: &CaseOptions,
) {
    let cases = with_digests(sources);
    let ran = verify(place, &cases, options).await.unwrap();
    assert_eq!(ran.len(), cases.len());
    let digests = ran.iter().filter(|ran| ran.id == "digest");
    let digests: BTreeSet<(&str, &str)> = digests
        .map(|ran| outcome_and_message(&ran.outcome))
        .collect();
    assert_eq!(digests.len(), 1, "{digests:#?}");
    let (outcome, message) = digests.first().unwrap();
    assert_eq!(*outcome, "failed", "{message}");
    let others = ran.iter().filter(|ran| ran.id != "digest");
    let wrong: Vec<String> = (others.zip(sources))
        .filter_map(|(ran, (outcomes, word, source))| {
            let (actual_outcome, message) = outcome_and_message(&ran.outcome);
            let is_among = outcomes.split('|').any(|outcome| outcome == actual_outcome);
            let is_right = is_among && message.contains(word);
            (!is_right).then(|| format!("{actual_outcome}: {message}\n{source}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn ordinary_cases_have_expected_outcomes() {
    let place = repository::local().await;
    for warm in [true, false] {
        let options = CaseOptions { warm, ..options(1) };
        assert_outcomes(&place, &ORDINARY, &options).await;
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
        outcome_and_message(&ran[0].outcome)
            .1
            .contains("no test matches tests/test_case.py::test_c")
    );
    assert_eq!(ran[1].outcome, CaseOutcome::Passed);
    assert!(
        outcome_and_message(&ran[2].outcome)
            .1
            .contains("not a path relative")
    );
    assert!(
        outcome_and_message(&ran[3].outcome)
            .1
            .contains("in its place")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn malicious_cases_neither_harm_nor_pass() {
    let place = repository::local().await;
    assert_outcomes(&place, &MALICIOUS, &options(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_malicious_cases_neither_harm_nor_pass() {
    if !base_image::is_available() {
        return;
    }
    let place = repository::docker().await;
    assert_outcomes(&place, &ORDINARY, &options(1)).await;
    assert_outcomes(&place, &MALICIOUS, &options(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_with_two_outcomes_is_flaky() {
    let place = repository::local().await;
    let flaky = "import os\ndef test_a(): assert os.environ['PYTHONHASHSEED'] == '0'\n";
    let cases = [case("a", flaky), case("b", "def test_a(): assert 0\n")];
    let options = CaseOptions {
        repeats: 2,
        ..options(2)
    };
    let ran = verify(&place, &cases, &options).await.unwrap();
    assert_eq!(ran[0].outcome, CaseOutcome::Flaky);
    assert_eq!(outcome_and_message(&ran[1].outcome).0, "failed");
}

/// Cases that import a pytest plugin are still forked.
///
/// pytest warns if a plugin is imported before pytest itself imports it, and settings can turn that into an error. So
/// no plugin is imported before processes are forked, and no case is run again because of it.
#[tokio::test(flavor = "multi_thread")]
async fn cases_importing_pytest_plugin_are_forked() {
    let (path, settings) = FILES[0];
    let settings = settings
        .replace("test = [\"pytest\"]", "test = [\"pytest\", \"anyio\"]")
        .replace("testpaths =", "filterwarnings = [\"error\"]\ntestpaths =");
    let place = repository::local_with(&[(path, settings)]).await;
    // `gc.freeze` is called before the fork, so the count is positive only in a forked process.
    let source =
        "import gc\nimport anyio\n\ndef test_a(): assert anyio and gc.get_freeze_count()\n";
    let cases: Vec<Case> = (0..3).map(|n| case(&n.to_string(), source)).collect();
    for ran in verify(&place, &cases, &options(1)).await.unwrap() {
        assert_eq!(ran.outcome, CaseOutcome::Passed, "{}", ran.id);
    }
}
