//! Tests that die, hang or fork, and pytest sessions inside tests.

use std::time::{Duration, Instant};

use testwright_tools::outcomes::report::{FailureClass, Outcome};

use super::pkg;
use crate::project::{Project, test};

#[test]
fn crash_keeps_earlier_results() {
    let project = pkg("\
import os
def test_before(): assert 0
def test_dies(): os._exit(7)
def test_after(): pass
");
    let report = project.run(&["tests/test_a.py"]);
    let outcomes: Vec<Outcome> = report.tests.iter().map(|t| t.outcome).collect();
    assert_eq!(
        outcomes,
        [Outcome::Failed, Outcome::Absent, Outcome::Absent]
    );
    let failure = report.tests[1].failure.as_ref().unwrap();
    assert_eq!(failure.class, FailureClass::Error);
    assert_eq!(
        failure.message,
        "the process ended with exit status 7 while this test ran"
    );
    assert!(report.tests[2].failure.is_none());
    assert_eq!((report.exit_code, report.timed_out), (Some(7), false));
}

#[test]
fn crash_during_collection_is_an_error() {
    let project = pkg("import os\nos.kill(os.getpid(), 9)\ndef test_x(): pass\n");
    let report = project.run(&["tests/test_a.py::test_x"]);
    assert_eq!(report.exit_code, None);
    let failure = test(&report, "tests/test_a.py::test_x")
        .failure
        .clone()
        .unwrap();
    assert!(
        failure
            .message
            .starts_with("the process was ended by signal 9 while"),
        "{}",
        failure.message
    );
}

#[test]
fn hanging_test_is_absent() {
    let project = pkg("\
import subprocess, time
def test_before(): pass
def test_hangs():
    child = subprocess.Popen(['sleep', '1000'], start_new_session=True)
    open('child.pid', 'w').write(str(child.pid))
    time.sleep(1000)
");
    testwright_tools::process::adopt_orphans().unwrap();
    let started = Instant::now();
    let report = project.run_with(&["tests/test_a.py"], |o| {
        o.deadline = Instant::now() + Duration::from_secs(8);
    });
    assert!(report.timed_out && report.exit_code.is_none());
    assert!(started.elapsed() < Duration::from_secs(60));
    let outcomes: Vec<Outcome> = report.tests.iter().map(|t| t.outcome).collect();
    assert_eq!(
        outcomes,
        [Outcome::Passed, Outcome::Absent],
        "{}",
        report.printed
    );
    let pid = std::fs::read_to_string(project.root().join("child.pid")).unwrap();
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists());
}

#[test]
fn hanging_later_test_is_ended() {
    let project = pkg("\
import threading, time
def test_own(): pass
def test_fails(): assert 0
def test_sees(): assert threading.active_count() == 1
def test_hangs(): time.sleep(1000)
def test_after(): pass
");
    let started = Instant::now();
    let report = project.run_with(&["tests/test_a.py"], |o| {
        o.first = vec!["tests/test_a.py::test_own".to_owned()];
        o.rest_seconds = Some(2);
    });
    assert!(started.elapsed() < Duration::from_secs(60));
    assert!(report.rest_timed_out && !report.timed_out);
    let got: Vec<(&str, Outcome, bool, &str)> = (report.tests.iter())
        .map(|t| {
            let name = &t.id["tests/test_a.py::test_".len()..];
            (name, t.outcome, t.failure.is_some(), t.captured.as_str())
        })
        .collect();
    assert_eq!(
        got,
        [
            ("own", Outcome::Passed, false, ""),
            ("fails", Outcome::Failed, true, ""),
            ("sees", Outcome::Passed, false, ""),
            ("hangs", Outcome::Absent, false, "not finished in time"),
            ("after", Outcome::Absent, false, ""),
        ]
    );
}

#[test]
fn pytest_internal_error_makes_test_absent() {
    let project = Project::new(&[
        (
            "conftest.py",
            "def pytest_runtest_protocol(item): raise AttributeError('of a plugin')\n",
        ),
        (
            "tests/test_a.py",
            "def test_a(): pass\ndef test_b(): pass\n",
        ),
    ]);
    let report = project.run(&["tests/test_a.py"]);
    let outcomes: Vec<Outcome> = report.tests.iter().map(|t| t.outcome).collect();
    assert_eq!(outcomes, [Outcome::Absent; 2]);
    let message = &report.tests[0].failure.as_ref().unwrap().message;
    assert!(
        message.contains("internal error") && message.contains("of a plugin"),
        "{message}"
    );
}

#[test]
fn forked_child_cannot_write_report() {
    let project = pkg("\
import os
def test_forks():
    if os.fork() == 0:
        raise RuntimeError('the child runs on through the session')
    os.wait()
def test_after(): pass
");
    let report = project.run(&["tests/test_a.py"]);
    let got: Vec<(&str, Outcome)> = report
        .tests
        .iter()
        .map(|t| (t.id.as_str(), t.outcome))
        .collect();
    let expected =
        ["test_forks", "test_after"].map(|n| (format!("tests/test_a.py::{n}"), Outcome::Passed));
    assert_eq!(got, expected.each_ref().map(|(id, o)| (id.as_str(), *o)));
}

#[test]
fn inner_pytest_sessions_lack_plugin() {
    let project = pkg("\
import os, subprocess, sys
pytest_plugins = ['pytester']
def test_inner(testdir):
    testdir.makepyfile('def test_inner_one(): assert 0')
    result = testdir.runpytest_subprocess('-v')
    assert 'testwright_pytest' not in result.stdout.str()
    testdir.inline_run()
    assert not any('testwright' in k.lower() for k in os.environ)
    code = 'import sys; print([p for p in sys.path if \"plugin\" in p])'
    assert subprocess.check_output([sys.executable, '-c', code]).strip() == b'[]'
def test_last(): pass
");
    let report = project.run(&["tests/test_a.py"]);
    let outcomes: Vec<Outcome> = report.tests.iter().map(|t| t.outcome).collect();
    assert_eq!(outcomes, [Outcome::Passed, Outcome::Passed], "{report:#?}");
}
