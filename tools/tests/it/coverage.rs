//! Tests of `toolbox test` and the executed lines that it reports.

mod interference;
mod marks;
mod problems;
mod processes;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use testwright_tools::coverage::{Coverage, Measure, counts_are_cheap};
use testwright_tools::outcomes::report::{Outcome, TestResult};
use testwright_tools::test_run::{Request, TestRunResult};

use crate::project::{
    Project, answer, coverage_for, environment, interpreter, python, test, toolbox_test, uv,
};

fn package() -> PathBuf {
    coverage_for(&python())
}

/// Returns whether Python reports only the first run of each line (3.12).
fn is_monitored() -> bool {
    let mut python = Command::new(python());
    let probe = python.args(["-c", "import sys; sys.exit(not hasattr(sys, 'monitoring'))"]);
    probe.status().unwrap().success()
}

fn request(project: &Project, ids: &[&str], files: &[&str]) -> Request {
    let mut request = project.request(ids);
    request.coverage = Some(Measure {
        package: package(),
        files: files.iter().map(|file| (*file).to_owned()).collect(),
        counted: false,
        until: Default::default(),
        whole: None,
    });
    request
}

fn measured(project: &Project, ids: &[&str], files: &[&str]) -> TestRunResult {
    answer(&request(project, ids, files))
}

fn lines<'a>(coverage: &'a Coverage, file: &str) -> (&'a [u32], &'a [u32]) {
    let lines = &coverage.files[file];
    (&lines.statements, &lines.executed)
}

/// Statements are at lines 1, 2, 5, 9, 11, 15, 16, 18, 19.
const PKG: &str = "\
import functools
def plain(
    a, b=(1,
          2)):
    return [
        a,
        b,
    ]
@functools.lru_cache(
    maxsize=None)
def cached(n):
    '''A text.

    More of it.'''
    if n:  # pragma: no cover
        return (n +
                1)
    else:
        return 0
";

const TESTS: &str = "\
import pkg
def test_plain(): assert pkg.plain(1)
def test_cached(): assert pkg.cached(1) == 2
def test_fails(): assert pkg.cached(0) == 1
";

fn project() -> Project {
    Project::new(&[
        ("pkg/__init__.py", PKG),
        ("pkg/other.py", "def f():\n    return 1\n"),
        ("tests/test_a.py", TESTS),
    ])
}

#[test]
fn lines_are_first_of_statements() {
    let project = project();
    let files = ["pkg/__init__.py", "pkg/other.py", "pkg/gone.py"];
    let of = |id: &str| {
        let answer = measured(&project, &[&format!("tests/test_a.py::{id}")], &files);
        assert_eq!(answer.report.tests.len(), 1, "{:?}", answer.report);
        answer.coverage.unwrap()
    };
    let plain = of("test_plain");
    assert_eq!(plain.problem, None);
    let (statements, executed) = lines(&plain, "pkg/__init__.py");
    // Before Python 3.8, and in coverage.py of that time, a decorated function counted once.
    let def: &[u32] = if statements.contains(&11) {
        &[9, 11]
    } else {
        &[9]
    };
    let expected = |rest: &[u32]| [&[1, 2], rest].concat();
    let sorted = |mut lines: Vec<u32>| {
        lines.sort_unstable();
        lines
    };
    let all = sorted([expected(&[5, 15, 16, 19]), def.to_vec()].concat());
    assert_eq!(statements, all);
    assert_eq!(executed, sorted([expected(&[5]), def.to_vec()].concat()));
    assert_eq!(
        lines(&plain, "pkg/other.py"),
        ([1, 2].as_slice(), [].as_slice())
    );
    assert!(!plain.files.contains_key("pkg/gone.py"));

    let cached = of("test_cached");
    let (_, executed) = lines(&cached, "pkg/__init__.py");
    assert_eq!(
        executed,
        sorted([expected(&[15, 16]), def.to_vec()].concat())
    );
    let fails = of("test_fails");
    let (_, executed) = lines(&fails, "pkg/__init__.py");
    assert_eq!(
        executed,
        sorted([expected(&[15, 19]), def.to_vec()].concat())
    );
}

#[test]
fn line_counts_start_at_first_test() {
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        (
            "tests/test_a.py",
            "\
import subprocess, sys, threading
import pkg
pkg.plain(1)
def test_loop():
    for _ in range(3):
        pkg.plain(1)
def test_elsewhere():
    thread = threading.Thread(target=pkg.plain, args=(1,))
    thread.start(); thread.join()
    subprocess.check_call([sys.executable, '-c', 'import pkg; pkg.plain(1)'])
def test_replaced():
    sys.settrace(None)
",
        ),
    ]);
    let of = |test: &str| {
        let id = format!("tests/test_a.py::{test}");
        let mut request = request(&project, &[&id], &["pkg/__init__.py"]);
        request.coverage.as_mut().unwrap().counted = true;
        let answer = answer(&request);
        assert_eq!(
            answer.report.tests[0].outcome,
            Outcome::Passed,
            "{answer:#?}"
        );
        answer.coverage.unwrap()
    };
    let times = |coverage: &Coverage, line: u32| {
        let counts = &coverage.files["pkg/__init__.py"].counts;
        counts.get(&line).copied().unwrap_or_default()
    };
    let looped = of("test_loop");
    assert_eq!(looped.problem, None);
    // Lines that ran on import, or before the first test, do not count.
    assert_eq!((times(&looped, 5), times(&looped, 1)), (3, 0));
    let elsewhere = of("test_elsewhere");
    assert_eq!((elsewhere.problem.as_deref(), elsewhere.lost), (None, 0));
    assert_eq!(times(&elsewhere, 5), 2);
    // Monitoring does not need the trace function.
    let replaced = of("test_replaced");
    assert_eq!(replaced.problem.is_some(), !is_monitored());
}

/// Counting does not affect the other measurements from Python 3.12 on.
#[test]
fn counting_also_reports_executed_lines() {
    let project = project();
    let ids = ["tests/test_a.py::test_fails"];
    let mut request = request(&project, &ids, &["pkg/__init__.py"]);
    let plain = answer(&request).coverage.unwrap();
    request.coverage.as_mut().unwrap().counted = true;
    let mut counted = answer(&request).coverage.unwrap();
    let lines = counted.files.get_mut("pkg/__init__.py").unwrap();
    assert_eq!(lines.counts.get(&15), Some(&1), "{lines:?}");
    assert_eq!(counts_are_cheap("3.12"), !counts_are_cheap("3.11"));
    if is_monitored() {
        lines.counts.clear();
        assert_eq!(counted, plain);
    } else {
        assert!(lines.statements.is_empty());
    }
}

/// Measuring stops once all requested lines are known, so a later test that disturbs the measurement does no harm.
#[test]
fn measuring_stops_after_requested_lines_ran() {
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        (
            "tests/test_a.py",
            "\
import subprocess, sys
import pkg
def test_a(): pkg.cached(0)
def test_b():
    sys.settrace(None)
    if hasattr(sys, 'monitoring'):
        sys.monitoring.free_tool_id(3)
def test_c(): subprocess.check_call([sys.executable, '-c', 'import pkg; pkg.plain(1)'])
def test_d(): pkg.plain(1)
",
        ),
    ]);
    let until = |lines: &[u32]| {
        let mut request = request(&project, &["tests/test_a.py"], &["pkg/__init__.py"]);
        let name = "pkg/__init__.py".to_owned();
        request.coverage.as_mut().unwrap().until = [(name, lines.iter().copied().collect())].into();
        let answer = answer(&request);
        let passed = |test: &TestResult| test.outcome == Outcome::Passed;
        assert!(answer.report.tests.iter().all(passed), "{answer:#?}");
        answer.coverage.unwrap()
    };
    let ran = |coverage: &Coverage, line: u32| {
        let (_, executed) = lines(coverage, "pkg/__init__.py");
        executed.contains(&line)
    };
    // Measuring stops before the first test, and before the second.
    let imported = until(&[1]);
    assert_eq!(imported.problem, None);
    assert!(ran(&imported, 1) && !ran(&imported, 15));
    let called = until(&[1, 15]);
    assert_eq!(called.problem, None);
    assert!(ran(&called, 1) && ran(&called, 15) && !ran(&called, 5));
    // With a line that never runs, measuring continues to the end.
    let never = until(&[1, 15, 18]);
    assert!(never.problem.is_some(), "{never:?}");
}

#[test]
fn import_lines_are_not_called_lines() {
    let project = project();
    let ids = ["tests/test_a.py::test_plain"];
    let coverage = measured(&project, &ids, &["pkg/__init__.py"]).coverage;
    let coverage = coverage.unwrap();
    let lines = &coverage.files["pkg/__init__.py"];
    assert_eq!(lines.called, [5], "{lines:?}");
    assert!(lines.executed.starts_with(&[1, 2, 5]), "{lines:?}");
}

const LINES: &str = "\
import threading

def plain(n):
    total = 0
    for i in range(n):
        if i == 2:
            continue
        total += (
            i *
            2
        )
    return total

def made(n):
    while n:
        yield n
        n -= 1

class Cached(object):
    value = plain(3)

    @property
    def later(self):
        return [x for x in made(2) if x > 1]

def in_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(plain(4)))
    thread.start()
    thread.join()
    return found

def never():
    return 1
";

#[test]
fn all_measuring_methods_agree() {
    let tests = "\
import subprocess, sys
import pkg
from pkg import Cached

def test_a():
    assert Cached().later == [2] and pkg.in_thread() == [8]

def test_b():
    subprocess.check_call([sys.executable, '-c', 'import pkg; pkg.never()'])
";
    let mut project = Project::new(&[("pkg/__init__.py", LINES), ("tests/test_a.py", tests)]);
    let mut seen = Vec::new();
    for version in ["3.11", "3.12"] {
        let Some(base) = interpreter(version) else {
            return;
        };
        let name = format!("{version}-pytest-8.3.5");
        project.config.python = environment(&name, Some(&base), &["pytest==8.3.5"]);
        for id in ["tests/test_a.py::test_a", "tests/test_a.py"] {
            let mut request = request(&project, &[id], &["pkg/__init__.py"]);
            request.coverage.as_mut().unwrap().package = coverage_for(&project.config.python);
            let coverage = answer(&request).coverage.unwrap();
            assert_eq!((&coverage.problem, coverage.lost), (&None, 0));
            seen.push(coverage);
        }
    }
    assert_eq!(seen[0], seen[2]);
    assert_eq!(seen[1], seen[3]);
    let lines = &seen[0].files["pkg/__init__.py"];
    assert!(lines.executed.contains(&3) && !lines.called.contains(&3));
    assert!(lines.called.contains(&12) && !lines.executed.contains(&34));
    assert!(seen[1].files["pkg/__init__.py"].called.contains(&34));
}
