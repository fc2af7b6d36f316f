//! Options and plugins of repositories that interfere with the recording plugin, under several versions of pytest.

use std::path::PathBuf;

use serde_json::json;
use testwright_tools::outcomes::report::{FailureClass, Outcome, TestReport};

use super::{PKG, pkg};
use crate::project::{Project, environment, interpreter, outcomes, test};
use crate::toolbox::Client;

/// Returns an interpreter with this pytest and pytest-rerunfailures, if the machine has the Python.
fn python(python: &str, pytest: &str) -> Option<PathBuf> {
    let base = interpreter(python)?;
    let pinned = format!("pytest=={pytest}");
    let packages = [pinned.as_str(), "pytest-rerunfailures", "pytest-xdist"];
    let name = format!("{python}-plugins-{pytest}");
    Some(environment(&name, Some(&base), &packages))
}

const VERSIONS: [(&str, &str); 5] = [
    ("3.8", "5.4.3"),
    ("3.9", "6.2.5"),
    ("3.11", "7.4.4"),
    ("3.11", "8.3.5"),
    ("3.12", "9.0.1"),
];

/// Options with the first version of pytest that knows them.
const OPTIONS: [(u32, &str); 4] = [
    (
        7,
        "-p no:legacypath -p no:cacheprovider --strict-config -W error",
    ),
    (
        6,
        "--import-mode=importlib --strict-config --strict-markers -n 2",
    ),
    (5, "-p no:cacheprovider --strict-markers -W error -x"),
    (5, "--reruns 2 -q -p no:warnings --lf"),
];

#[test]
fn repository_options_change_no_outcome() {
    let tests = "import pkg\n\ndef test_a(): assert pkg.half(4) == 2\n\ndef test_b(): assert pkg.half(4) == 3\n";
    for (python_version, pytest) in VERSIONS {
        let Some(python) = python(python_version, pytest) else {
            continue;
        };
        for (since, options) in OPTIONS {
            if pytest.split('.').next().unwrap().parse::<u32>().unwrap() < since {
                continue;
            }
            let ini = format!("[pytest]\naddopts = {options}\n");
            let mut project = Project::new(&[
                ("pkg/__init__.py", PKG),
                ("pytest.ini", ini.as_str()),
                ("tests/test_a.py", tests),
            ]);
            project.config.python = python.clone();
            // As in try_fix: the requested test first, the others within a time limit.
            let report = project.run_with(&["tests/test_a.py"], |run| {
                run.first = vec!["tests/test_a.py::test_b".to_owned()];
                run.rest_seconds = Some(30);
            });
            let expected = [("test_b", Outcome::Failed), ("test_a", Outcome::Passed)];
            assert_eq!(
                outcomes(&report),
                expected,
                "{pytest} {options}: {}",
                report.printed
            );
            assert_eq!(report.runner_error, None, "{pytest} {options}");
            assert!(
                !report.printed.starts_with("[run without"),
                "{}",
                report.printed
            );
        }
    }
}

#[test]
fn last_attempt_of_a_rerun_decides() {
    let tests = "import pytest
SEEN = []

@pytest.mark.flaky(reruns=2)
def test_second():
    SEEN.append(1)
    assert len(SEEN) > 1

@pytest.mark.flaky(reruns=2)
def test_never():
    assert 0

# The repository's own --reruns must not hide this failure.
def test_unmarked():
    SEEN.append(1)
    assert len(SEEN) > 3
";
    for (python_version, pytest) in [VERSIONS[1], VERSIONS[4]] {
        let Some(python) = python(python_version, pytest) else {
            continue;
        };
        for setting in ["addopts = --reruns 5", "reruns = 5"] {
            let ini = format!("[pytest]\nmarkers = flaky: x\n{setting}\n");
            let mut project =
                Project::new(&[("pytest.ini", ini.as_str()), ("tests/test_a.py", tests)]);
            project.config.python = python.clone();
            let report = project.run(&["tests/test_a.py"]);
            let expected = [
                ("test_second", Outcome::Passed),
                ("test_never", Outcome::Failed),
                ("test_unmarked", Outcome::Failed),
            ];
            assert_eq!(outcomes(&report), expected, "{pytest}: {}", report.printed);
            assert!(!report.contradicted);
        }
    }
}

#[test]
fn exception_groups_are_opened() {
    let Some(python) = python("3.12", "9.0.1") else {
        return;
    };
    let tests = "import pkg

def test_assertion():
    def inner(): assert 1 == 2
    try: inner()
    except AssertionError as error: saved = error
    raise ExceptionGroup('outer', [ExceptionGroup('inner', [saved]), KeyError('k')])

def test_code():
    try: pkg.half(13)
    except ValueError as error: raise ExceptionGroup('outer', [error])
";
    let mut project = Project::new(&[("pkg/__init__.py", PKG), ("tests/test_a.py", tests)]);
    project.config.python = python;
    let report = project.run(&["tests/test_a.py"]);
    let failure = |id: &str| test(&report, id).failure.clone().unwrap();
    let assertion = failure("tests/test_a.py::test_assertion");
    assert_eq!(assertion.class, FailureClass::Assertion);
    assert_eq!(assertion.exception, "AssertionError");
    assert!(
        assertion
            .message
            .contains("(one of 2 in ExceptionGroup: outer"),
        "{}",
        assertion.message
    );
    let code = failure("tests/test_a.py::test_code");
    assert_eq!(
        (code.class, code.exception.as_str()),
        (FailureClass::Exception, "ValueError")
    );
}

/// Errors of pytest and its plugins are no verdict on a fix.
#[test]
fn internal_error_says_nothing_about_the_fix() {
    let conftest = "import pkg\n\ndef pytest_runtest_logreport(report):\n    if pkg.half(2) == 2: raise RuntimeError('broken hook')\n";
    let old = "import pkg\n\ndef test_old(): assert pkg.half(4) == 2\n";
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        ("tests/conftest.py", conftest),
        ("tests/test_a.py", old),
    ]);
    let mut client = Client::start(&project);
    let fix = json!({
        "tests": ["tests/test_a.py"],
        "edits": [{"path": "pkg/__init__.py", "old": "return n // 2", "new": "return n"}],
    });
    let (text, data) = client.call("try_fix", &fix);
    assert!(text.starts_with("The tests could not be run, so this says nothing about the fix: pytest had an internal error"), "{text}");
    let report: TestReport = serde_json::from_value(data["report"].clone()).unwrap();
    assert!(report.runner_error.unwrap().contains("broken hook"));
}

#[test]
fn skipped_parameter_set_is_not_a_failure() {
    let project = pkg("import pytest, pkg
@pytest.mark.parametrize('n', [4, pytest.param(5, marks=pytest.mark.skip)])
def test_a(n): assert pkg.half(n) == 2
@pytest.mark.parametrize('n', [])
def test_empty(n): pass
");
    let mut client = Client::start(&project);
    let fix = json!({
        "tests": ["tests/test_a.py"],
        "edits": [{"path": "pkg/__init__.py", "old": "return n // 2", "new": "return int(n / 2)"}],
    });
    let (text, _) = client.call("try_fix", &fix);
    assert!(
        text.starts_with("The test that you named passes with this fix."),
        "{text}"
    );
}
