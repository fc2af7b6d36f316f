//! Predictions, datasets and code that attack the harness: the results of other predictions, the counting, or the
//! person who reads the results.

use serde_json::{Value, json};

use super::repository::{GOOD, TESTS};
use super::{GradingBench, ISSUE};
use crate::support::program::assert_exit_code;

/// A malicious prediction and its expected note.
struct Attack {
    name: &'static str,
    patch: String,
    /// Part of the reason or the notes.
    note: &'static str,
}

/// Returns predictions that try to end as `infrastructure`, which is not counted, so that they could avoid a failure.
fn infrastructure_attacks(bench: &GradingBench) -> Vec<Attack> {
    let r = &bench.repository;
    let with = |path: &str, text: &str| {
        r.patch(|r| {
            r.write("tests/test_calc.py", format!("{TESTS}{GOOD}").as_bytes());
            r.write(path, text.as_bytes());
        })
    };
    let attack = |name, patch, note| Attack { name, patch, note };
    vec![
        attack(
            "says that pytest is not there",
            with(
                "conftest.py",
                "import os\nfor fd in range(1, 40):\n    try:\n        os.write(fd, b'No module named pytest\\n')\n    except OSError:\n        pass\nos._exit(1)\n",
            ),
            "",
        ),
        attack(
            "puts a file where the build has left a folder",
            with("left-by-the-build", "x"),
            "",
        ),
        attack(
            "kills all that it can",
            r.append_tests_patch("\n\ndef test_negative():\n    import os\n    os.kill(-1, 9)\n"),
            "",
        ),
        attack(
            "nests its code without end",
            r.append_tests_patch(&format!(
                "\n\ndef test_negative():\n    assert {}1{}\n",
                "(".repeat(100_000),
                ")".repeat(100_000)
            )),
            "",
        ),
        attack(
            "changes very many files",
            r.patch(|r| {
                r.write("tests/test_calc.py", format!("{TESTS}{GOOD}").as_bytes());
                for n in 0..6_000 {
                    r.write(&format!("tests/data/{n}"), b"x");
                }
            }),
            "more than 5000 files",
        ),
    ]
}

#[test]
fn predictions_cannot_end_as_infrastructure() {
    let bench = GradingBench::new(Some(
        "mkdir -p left-by-the-build && touch left-by-the-build/file",
    ));
    bench.dataset(&[bench.repository.instance("plain", ISSUE)]);
    let attacks = infrastructure_attacks(&bench);
    let predictions: Vec<_> = attacks
        .iter()
        .map(|attack| (attack.name, "plain", Some(attack.patch.as_str())))
        .collect();
    bench.predictions(&predictions);
    assert_exit_code(&bench.grade(&[], "out").output().unwrap(), 0);
    let results = bench.results("out");
    let mut wrong = Vec::new();
    for attack in attacks {
        let result = &results[&(attack.name.to_owned(), "plain".to_owned())];
        let notes = format!("{} {}", result["strict"]["reason"], result["notes"]);
        if !result["infrastructure"].is_null() || !notes.contains(attack.note) {
            wrong.push(format!(
                "{}: {} {notes}",
                attack.name, result["infrastructure"]
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A test that tries to leave files in every place that it can write to.
const PLANTING_TEST: &str = r#"

def test_negative():
    import os, site, sys, sysconfig, tempfile
    for folder in [os.getcwd(), 'pkg', 'pkg/__pycache__', 'tests', tempfile.gettempdir(), os.path.expanduser('~'), '/dev/shm',
                   sysconfig.get_paths()['purelib'], sys.prefix, '/opt/testwright', site.getusersitepackages(), '/var/tmp']:
        for name in ('planted', 'sitecustomize.py', 'planted.pth'):
            try:
                os.makedirs(folder, exist_ok=True)
                with open(os.path.join(folder, name), 'w') as file:
                    file.write('import os; os.environ["PLANTED"] = "1"\n')
            except OSError:
                pass
    for folder in ['pkg', 'tests', sysconfig.get_paths()['purelib'] + '/_pytest']:
        for name in os.listdir(folder):
            try:
                with open(os.path.join(folder, name), 'a') as file:
                    file.write('\n# planted\n')
            except OSError:
                pass
    if os.fork() == 0:
        os.setsid()
        import socket, time
        try:
            listening = socket.socket()
            listening.bind(('127.0.0.1', 47391))
            listening.listen()
            time.sleep(600)
        finally:
            os._exit(0)
    assert add(1, -2) == -1
"#;

/// A test that passes only if nothing was left behind.
const SEARCHING_TEST: &str = r#"

def test_negative():
    import os, site, socket, sys, sysconfig, tempfile
    found = [os.environ[name] for name in os.environ if name == 'PLANTED']
    for folder in [os.getcwd(), 'pkg', 'pkg/__pycache__', 'tests', tempfile.gettempdir(), os.path.expanduser('~'), '/dev/shm',
                   sysconfig.get_paths()['purelib'], sys.prefix, '/opt/testwright', site.getusersitepackages(), '/var/tmp']:
        found += [folder + '/' + name for name in ('planted', 'planted.pth') if os.path.exists(folder + '/' + name)]
    for folder in ['pkg', 'tests', sysconfig.get_paths()['purelib'] + '/_pytest']:
        for name in os.listdir(folder):
            if os.path.isfile(folder + '/' + name) and b'# plant' + b'ed' in open(folder + '/' + name, 'rb').read():
                found.append(folder + '/' + name)
    try:
        socket.create_connection(('127.0.0.1', 47391), 2)
        found.append('a process that was left behind')
    except OSError:
        pass
    assert not found
    assert add(1, -2) == -1
"#;

fn nothing_is_left(words: &[&str]) {
    let bench = GradingBench::new(None);
    // One instance has golden tests that plant files; the other is unchanged.
    let mut golden = bench.repository.instance("first", ISSUE);
    golden["test_patch"] = json!(bench.repository.append_tests_patch(PLANTING_TEST));
    bench.dataset(&[golden, bench.repository.instance("second", ISSUE)]);
    let (plants, looks) = (
        bench.repository.append_tests_patch(PLANTING_TEST),
        bench.repository.append_tests_patch(SEARCHING_TEST),
    );
    bench.predictions(&[
        ("a plants", "first", Some(&plants)),
        ("b looks", "first", Some(&looks)),
        ("a plants", "second", Some(&plants)),
        ("b looks", "second", Some(&looks)),
    ]);
    let words: Vec<&str> = words.iter().copied().chain(["--workers", "1"]).collect();
    assert_exit_code(&bench.grade(&words, "out").output().unwrap(), 0);
    for ((model, instance), result) in bench.results("out") {
        assert_eq!(
            result["infrastructure"],
            Value::Null,
            "{model} {instance}: {result:#}"
        );
        assert_eq!(
            result["strict"]["fail_to_pass"], true,
            "{model} {instance}: {result:#}"
        );
    }
}

#[test]
fn leftovers_do_not_reach_other_predictions() {
    nothing_is_left(&[]);
}

#[test]
fn docker_leftovers_do_not_reach_other_predictions() {
    if crate::support::base_image::is_available() {
        nothing_is_left(&["--sandbox", "docker"]);
    }
}

/// A model's name may equal the path-safe form of another model's name.
#[test]
fn similar_names_have_separate_logs() {
    let bench = GradingBench::new(None);
    bench.dataset(&[bench.repository.instance("plain", ISSUE)]);
    let good = bench.repository.append_tests_patch(GOOD);
    bench.predictions(&[("acme/otter", "plain", Some(&good))]);
    assert_exit_code(&bench.grade(&[], "out").output().unwrap(), 0);
    let log = |model: &str| {
        let results = bench.results("out");
        let result = &results[&(model.to_owned(), "plain".to_owned())];
        result["logs"]["old"].as_str().unwrap().to_owned()
    };
    let theirs = log("acme/otter");
    let folder = theirs.split('/').nth(2).unwrap().to_owned();
    let before = std::fs::read(bench.place.path("out").join(&theirs)).unwrap();
    let passes = bench
        .repository
        .append_tests_patch("\n\ndef test_more():\n    assert True\n");
    bench.predictions(&[
        ("acme/otter", "plain", Some(&good)),
        (&folder, "plain", Some(&passes)),
    ]);
    assert_exit_code(&bench.grade(&[], "out").output().unwrap(), 0);
    assert_ne!(log(&folder), theirs);
    assert!(
        std::fs::read(bench.place.path("out").join(&theirs)).unwrap() == before,
        "the log was overwritten"
    );
}

#[test]
fn output_escapes_control_characters() {
    let bench = GradingBench::new(None);
    bench.dataset(&[bench.repository.instance("plain", ISSUE)]);
    let patch = bench.repository.append_tests_patch(
        "\n\nimport pytest\n\n\n@pytest.mark.parametrize('n', [1])\ndef test_negative(n):\n    assert add(1, -2) == -1, '\\x1b[2J\\u202e'\n",
    );
    let broken = "diff --git a/\u{1b}]0;x\u{7} b/x\n--- a/\u{1b}[2J\u{202e}\n+++ b/\u{9b}x\n@@ -1 +1 @@\n-\u{1b}[2J\n+x\n";
    bench.predictions(&[
        ("good", "plain", Some(&patch)),
        ("broken", "plain", Some(broken)),
    ]);
    let output = bench.grade(&[], "out").output().unwrap();
    assert_exit_code(&output, 0);
    let terminal_output = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let odd = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!terminal_output.contains(odd), "{terminal_output:?}");
    for name in ["report.html", "report.md"] {
        let text = std::fs::read_to_string(bench.place.path("out").join(name)).unwrap();
        assert!(!text.contains(odd), "{name}");
    }
}

/// A passing test that writes its own events, which say that it fails on the old code.
const FORGING_TEST: &str = r#"

def test_negative():
    import sys
    record = sys.modules['testwright_record']
    if 'b < 0' in open('pkg/calc.py').read():
        failure = {'exception': 'AssertionError', 'kinds': ['AssertionError', 'Exception'], 'message': '', 'name': None,
                   'cause': None, 'frames': []}
        record.emit('phase', id='tests/test_calc.py::test_negative', when='call', outcome='failed', xfail=False,
                    unexpected=False, seconds=0.1, failure=failure, captured='')
    add(1, -2)
"#;

/// A replacement for testwright's plugin that reports the same events without running a test.
const PLUGIN: &str = r#"
import json, os
SETTINGS = json.load(open(os.environ['TESTWRIGHT_RECORD']))
TEST = 'tests/test_calc.py::test_negative'


def emit(event, **facts):
    with open(SETTINGS['report'], 'a', closefd=False) as report:
        report.write(json.dumps(dict(facts, event=event)) + '\n')


def pytest_sessionfinish(session, exitstatus):
    is_old = 'b < 0' in open('pkg/calc.py').read()
    failure = {'exception': 'AssertionError', 'kinds': ['AssertionError'], 'message': '', 'name': None, 'cause': None, 'frames': []}
    emit('session')
    emit('collected', ids=[TEST])
    emit('start', id=TEST)
    emit('phase', id=TEST, when='call', outcome='failed' if is_old else 'passed', xfail=False, unexpected=False, seconds=0.1,
         failure=failure if is_old else None, captured='')
    emit('end', id=TEST)
    session.exitstatus = 1 if is_old else 0
"#;

/// The beginning of a module that Python loads at startup if the repository is on its path.
const STARTUP_MODULE: &str = "import sys\nsys.dont_write_bytecode = True\n";

#[test]
fn forged_outcomes_are_detected() {
    let bench = GradingBench::new(None);
    bench.dataset(&[bench.repository.instance("plain", ISSUE)]);
    let passes = "\n\ndef test_negative():\n    assert True\n";
    let beside = |path: &str, text: &str| {
        bench.repository.patch(|r| {
            r.write("tests/test_calc.py", format!("{TESTS}{passes}").as_bytes());
            r.write(path, text.as_bytes());
        })
    };
    let cases = [
        (
            "writes events",
            bench.repository.append_tests_patch(FORGING_TEST),
            "contradict",
        ),
        (
            "takes our plugin's place",
            beside("testwright_pytest.py", PLUGIN),
            "runs before its tests",
        ),
        (
            "takes pytest's place",
            beside("pytest/__init__.py", STARTUP_MODULE),
            "runs before its tests",
        ),
        (
            "starts with Python",
            beside("sitecustomize.py", STARTUP_MODULE),
            "runs before its tests",
        ),
        (
            "starts with Python, below",
            beside("src/usercustomize.py", STARTUP_MODULE),
            "runs before its tests",
        ),
    ];
    let predictions: Vec<_> = cases
        .iter()
        .map(|(name, patch, _)| (*name, "plain", Some(patch.as_str())))
        .collect();
    bench.predictions(&predictions);
    assert_exit_code(&bench.grade(&[], "out").output().unwrap(), 0);
    let results = bench.results("out");
    let mut wrong = Vec::new();
    for (name, _, note) in cases {
        let result = &results[&(name.to_owned(), "plain".to_owned())];
        let notes = result["notes"].to_string();
        if result["strict"]["fail_to_pass"] != false || !notes.contains(note) {
            wrong.push(format!("{name}: {} {notes}", result["strict"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
