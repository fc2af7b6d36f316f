//! `toolbox test`, and the lines that it says ran.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use testwright_tools::coverage::{Coverage, Measure};
use testwright_tools::outcomes::report::Outcome;
use testwright_tools::test_run::{Answer, Request};

use crate::project::{Project, answer, coverage_for, environment, python, test, toolbox_test, uv};

fn package() -> PathBuf {
    coverage_for(&python())
}

fn request(project: &Project, ids: &[&str], files: &[&str]) -> Request {
    let mut request = project.request(ids);
    request.coverage = Some(Measure {
        package: package(),
        files: files.iter().map(|file| (*file).to_owned()).collect(),
        counted: false,
    });
    request
}

fn measured(project: &Project, ids: &[&str], files: &[&str]) -> Answer {
    answer(&request(project, ids, files))
}

fn lines<'a>(coverage: &'a Coverage, file: &str) -> (&'a [u32], &'a [u32]) {
    let lines = &coverage.files[file];
    (&lines.statements, &lines.executed)
}

/// Statements at lines 1, 2, 5, 9, 11, 15, 16, 18, 19.
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
fn lines_are_the_first_of_their_statements() {
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
fn outcomes_are_the_same_with_and_without() {
    let project = project();
    let mut request = request(&project, &["tests"], &["pkg/__init__.py"]);
    request.reversed = true;
    let with = answer(&request);
    request.coverage = None;
    // What the request needs; the archive of the base commit is not.
    std::fs::remove_file(&project.config.base_archive).unwrap();
    let without = answer(&request);
    assert!(with.coverage.is_some() && without.coverage.is_none());
    let outcomes = |answer: &Answer| -> Vec<(String, Outcome)> {
        let tests = answer.report.tests.iter();
        tests.map(|t| (t.id.clone(), t.outcome)).collect()
    };
    let expected = [
        ("tests/test_a.py::test_fails", Outcome::Failed),
        ("tests/test_a.py::test_cached", Outcome::Passed),
        ("tests/test_a.py::test_plain", Outcome::Passed),
    ];
    assert_eq!(outcomes(&with), expected.map(|(id, o)| (id.to_owned(), o)));
    assert_eq!(outcomes(&with), outcomes(&without));
    let failure = |answer: &Answer| answer.report.tests[0].failure.clone();
    assert_eq!(failure(&with), failure(&without));
    // Nothing of ours is left in the tree.
    let mut names: Vec<_> = std::fs::read_dir(project.root())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["pkg", "tests"]);
}

#[test]
fn tests_see_nothing_of_it() {
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        (
            "tests/test_a.py",
            "\
import json, os, subprocess, sys
import pkg
CHILD = '''
import os, sys
print(sys.path, sorted(os.environ), [m for m in sys.modules if m.startswith('coverage')], sys.argv, os.listdir('.'))
'''
def test_dump():
    pkg.plain(1)
    facts = {
        'path': [p for p in sys.path], 'argv': sys.argv, 'environ': sorted(os.environ),
        'coverage': [m for m in sys.modules if m.startswith('coverage')],
        'main': [sys.modules['__main__'].__name__, sys.modules['__main__'].__spec__.name],
        'child': subprocess.check_output([sys.executable, '-c', CHILD]).decode(),
    }
    with open(os.path.join(os.environ['OUT'], 'facts'), 'w') as out:
        json.dump(facts, out)
",
        ),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let mut request = request(&project, &["tests"], &["pkg/__init__.py"]);
    let out = folder.path().display().to_string();
    request.config.env.insert("OUT".to_owned(), out);
    let facts = |request: &Request| -> serde_json::Value {
        let answer = answer(request);
        assert_eq!(
            answer.report.tests[0].outcome,
            Outcome::Passed,
            "{answer:#?}"
        );
        assert!(answer.coverage.is_none_or(|c| c.problem.is_none()));
        serde_json::from_slice(&std::fs::read(folder.path().join("facts")).unwrap()).unwrap()
    };
    let with = facts(&request);
    request.coverage = None;
    assert_eq!(with, facts(&request));
    assert_eq!(with["coverage"], json!([]));
}

#[test]
fn the_repositorys_own_coverage_settings_do_not_matter() {
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        ("tests/test_a.py", TESTS),
        (
            "setup.cfg",
            "[coverage:run]\nparallel = true\nbranch = true\nomit = pkg/*\nsource = nothing\n\
             [coverage:report]\nexclude_lines = .*\n",
        ),
        (
            ".coveragerc",
            "[run]\nparallel = true\nomit = *\nplugins = none_such\n",
        ),
    ]);
    let mut request = request(
        &project,
        &["tests/test_a.py::test_plain"],
        &["pkg/__init__.py"],
    );
    for (name, value) in [("COVERAGE_FILE", "/nowhere/x"), ("COVERAGE_RCFILE", "none")] {
        request.config.env.insert(name.to_owned(), value.to_owned());
    }
    let coverage = answer(&request).coverage.unwrap();
    assert_eq!(coverage.problem, None);
    assert!(coverage.files["pkg/__init__.py"].executed.contains(&5));
    assert!(!coverage.files["pkg/__init__.py"].executed.contains(&16));
    assert!(!project.root().join(".coverage").exists());
}

#[test]
fn a_plugin_that_measures_too_does_not_disturb() {
    let needed = ["pytest==8.3.5", "pytest-cov==5.0.0", "coverage==7.4.4"];
    let python = environment("pytest-8.3.5-cov", None, &needed);
    let own = "import coverage\ndef test_own(): assert coverage.__version__ == '7.4.4'\n";
    let mut project = Project::new(&[
        ("pkg/__init__.py", PKG),
        ("tests/test_a.py", TESTS),
        ("tests/test_own.py", own),
        (
            "setup.cfg",
            "[tool:pytest]\naddopts = --cov=pkg --cov-report=term --cov-fail-under=100\n",
        ),
    ]);
    project.config.python.clone_from(&python);
    let ids = ["tests/test_a.py::test_plain", "tests/test_own.py"];
    let mut request = request(&project, &ids, &["pkg/__init__.py"]);
    request.coverage.as_mut().unwrap().package = coverage_for(&python);
    let answer = answer(&request);
    let outcomes: Vec<Outcome> = answer.report.tests.iter().map(|t| t.outcome).collect();
    assert_eq!(outcomes, [Outcome::Passed; 2], "{:#?}", answer.report);
    assert_eq!(answer.report.exit_code, Some(0));
    let coverage = answer.coverage.unwrap();
    assert_eq!(coverage.problem, None);
    assert!(coverage.files["pkg/__init__.py"].executed.contains(&5));
}

#[test]
fn what_makes_the_figures_too_small_is_told() {
    for (body, problem, outcome) in [
        (
            "os._exit(3)",
            "the process ended with exit status 3 before its coverage was written",
            Outcome::Absent,
        ),
        (
            "os.kill(os.getpid(), 9)",
            "the process was ended by signal 9 before its coverage was written",
            Outcome::Absent,
        ),
        (
            "if os.fork() == 0: raise RuntimeError('the child runs on')\n    os.wait(); os._exit(3)",
            "the process ended with exit status 3 before its coverage was written",
            Outcome::Absent,
        ),
        (
            "sys.settrace(None)",
            "the trace function was replaced (sys.settrace in test_a.py); \
             the trace function was not there any more at the end",
            Outcome::Passed,
        ),
        (
            "old = sys.gettrace(); sys.settrace(lambda *a: None); pkg.plain(1); sys.settrace(old)",
            "the trace function was replaced (sys.settrace in test_a.py)",
            Outcome::Passed,
        ),
    ] {
        let tests = format!("import os, sys\nimport pkg\ndef test_x():\n    {body}\n");
        let project = Project::new(&[("pkg/__init__.py", PKG), ("tests/test_a.py", &tests)]);
        let answer = measured(&project, &["tests"], &["pkg/__init__.py"]);
        assert_eq!(answer.report.tests[0].outcome, outcome, "{body}");
        let coverage = answer.coverage.unwrap();
        assert_eq!(coverage.problem.as_deref(), Some(problem), "{body}");
        assert!(coverage.files.contains_key("pkg/__init__.py"));
    }
}

#[test]
fn a_deadline_is_a_problem_of_the_figures() {
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        (
            "tests/test_a.py",
            "import time\ndef test_x(): pass\ndef test_y(): time.sleep(100)\n",
        ),
    ]);
    let mut request = request(&project, &["tests"], &["pkg/__init__.py"]);
    request.seconds = 8;
    let answer = answer(&request);
    assert!(answer.report.timed_out);
    assert_eq!(answer.report.tests[0].outcome, Outcome::Passed);
    assert_eq!(
        answer.coverage.unwrap().problem.as_deref(),
        Some("the deadline came before its coverage was written")
    );
}

#[test]
fn trace_functions_that_are_put_back_at_once_and_children_that_fork_are_no_problem() {
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        (
            "tests/test_a.py",
            "\
import os, sys, threading
import pkg
def test_forks():
    if os.fork() == 0:
        raise RuntimeError('the child runs on through the session')
    os.wait()
def test_put_back():
    sys.settrace(sys.gettrace())
    pkg.plain(1)
def test_thread():
    thread = threading.Thread(target=pkg.cached, args=(1,))
    thread.start(); thread.join()
",
        ),
    ]);
    let answer = measured(&project, &["tests"], &["pkg/__init__.py"]);
    let outcomes: Vec<Outcome> = answer.report.tests.iter().map(|t| t.outcome).collect();
    assert_eq!(outcomes, [Outcome::Passed; 3], "{:#?}", answer.report);
    let coverage = answer.coverage.unwrap();
    assert_eq!(coverage.problem, None);
    let (_, executed) = lines(&coverage, "pkg/__init__.py");
    assert!(
        executed.contains(&5) && executed.contains(&16),
        "{executed:?}"
    );
}

#[test]
fn processes_that_tests_start_are_measured() {
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        (
            "tests/test_a.py",
            "\
import multiprocessing, os, subprocess, sys
GRANDCHILD = 'import pkg; pkg.cached(1)'
CHILD = 'import pkg, subprocess, sys; pkg.plain(1); subprocess.check_call([sys.executable, \"-c\", %r])' % GRANDCHILD
ENDED = 'import os, sys, pkg; pkg.cached(0); print(1); sys.stdout.flush(); os._exit(0)'
def test_child():
    subprocess.check_call([sys.executable, '-c', CHILD], env={})
def test_ended():
    subprocess.check_call([sys.executable, '-c', ENDED])
def test_others():
    from multiprocessing import shared_memory
    memory = shared_memory.SharedMemory(create=True, size=10)
    memory.close(); memory.unlink()
    subprocess.check_call([sys.executable, '-c', 'import os; os._exit(0)'])
    subprocess.check_call([sys.executable, '-c', 'import sys; sys.settrace(None)'])
def test_traces():
    subprocess.check_call([sys.executable, '-c', 'import pkg, sys; sys.settrace(None); pkg.plain(1)'])
def test_fails():
    assert subprocess.call([sys.executable, '-c', 'import pkg; raise SystemExit(3)']) == 3
",
        ),
    ]);
    let of = |test: &str| {
        let id = format!("tests/test_a.py::{test}");
        let answer = measured(&project, &[&id], &["pkg/__init__.py"]);
        assert_eq!(
            answer.report.tests[0].outcome,
            Outcome::Passed,
            "{answer:#?}"
        );
        let coverage = answer.coverage.unwrap();
        assert_eq!(coverage.problem, None);
        coverage
    };
    let child = of("test_child");
    let (_, executed) = lines(&child, "pkg/__init__.py");
    assert!(
        executed.contains(&5) && executed.contains(&16),
        "{executed:?}"
    );
    assert!(!executed.contains(&19), "{executed:?}");
    // Tests alone start them, so all that they run is of the tests, importing included.
    assert_eq!(child.files["pkg/__init__.py"].called, executed);
    assert_eq!(child.lost, 0);
    let ended = of("test_ended");
    assert_eq!(ended.lost, 1);
    assert!(lines(&ended, "pkg/__init__.py").1.is_empty());
    // What runs nothing of the files is no loss.
    assert_eq!(of("test_others").lost, 0);
    assert_eq!(of("test_traces").lost, 1);
    let fails = of("test_fails");
    assert_eq!(fails.lost, 0);
    assert!(lines(&fails, "pkg/__init__.py").1.contains(&1));
}

#[test]
fn how_often_lines_run_is_counted_since_the_first_test() {
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
    // What ran on import, and before the first test, does not count.
    assert_eq!((times(&looped, 5), times(&looped, 1)), (3, 0));
    let elsewhere = of("test_elsewhere");
    assert_eq!((elsewhere.problem.as_deref(), elsewhere.lost), (None, 0));
    assert_eq!(times(&elsewhere, 5), 2);
    assert!(of("test_replaced").problem.is_some());
}

#[test]
fn files_that_are_no_python_and_a_coverage_that_is_not_there_are_told() {
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        ("pkg/bad.py", "def f(:\n"),
        ("tests/test_a.py", TESTS),
    ]);
    let ids = ["tests/test_a.py::test_plain"];
    let answer_ = measured(&project, &ids, &["pkg/bad.py", "pkg/__init__.py"]);
    let coverage = answer_.coverage.unwrap();
    let problem = coverage.problem.as_deref().unwrap();
    assert!(
        problem.starts_with("pkg/bad.py cannot be parsed: "),
        "{problem}"
    );
    assert!(!problem.contains('\n'));
    assert!(coverage.files["pkg/__init__.py"].executed.contains(&5));
    assert!(coverage.files["pkg/bad.py"].statements.is_empty());

    let mut request = request(&project, &ids, &["pkg/__init__.py"]);
    request.coverage.as_mut().unwrap().package = "/nowhere".into();
    let answer = answer(&request);
    assert_eq!(test(&answer.report, ids[0]).outcome, Outcome::Passed);
    let problem = answer.coverage.unwrap().problem.unwrap();
    assert!(
        problem.starts_with("coverage.py could not be started: ModuleNotFoundError"),
        "{problem}"
    );
}

#[test]
fn lines_of_several_processes_are_united() {
    // Options that pytest refuses, a broken conftest beside a good one, and a file that is no test module.
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        ("pytest.ini", "[pytest]\naddopts = --of-an-absent-plugin\n"),
        (
            "tests/a/conftest.py",
            "import pkg\npkg.plain(1)\nimport none_such\n",
        ),
        ("tests/a/test_a.py", "def test_x(): pass\n"),
        (
            "tests/b/test_b.py",
            "import pkg\ndef test_x(): assert pkg.cached(0) == 0\n",
        ),
    ]);
    let ids = ["tests/a/test_a.py::test_x", "tests/b/test_b.py::test_x"];
    let answer = measured(&project, &ids, &["pkg/__init__.py"]);
    assert_eq!(test(&answer.report, ids[0]).outcome, Outcome::Error);
    assert_eq!(test(&answer.report, ids[1]).outcome, Outcome::Passed);
    let coverage = answer.coverage.unwrap();
    assert_eq!(coverage.problem, None);
    let (_, executed) = lines(&coverage, "pkg/__init__.py");
    assert!(
        executed.contains(&5) && executed.contains(&19),
        "{executed:?}"
    );
    assert!(!executed.contains(&16));
}

#[test]
fn pytest_can_be_the_code_under_test() {
    // A copy of pytest's own code in the workspace, as in its repository.
    let code = "import os, _pytest; print(os.path.dirname(os.path.dirname(_pytest.__file__)))";
    let found = Command::new(python()).args(["-c", code]).output().unwrap();
    let site = PathBuf::from(String::from_utf8(found.stdout).unwrap().trim());
    let project = Project::new(&[("tests/test_a.py", "def test_x(): pass\n")]);
    let source = project.root().join("src");
    std::fs::create_dir(&source).unwrap();
    for package in ["pytest", "_pytest"] {
        let copied = Command::new("cp")
            .arg("-r")
            .args([site.join(package), source.join(package)])
            .status();
        assert!(copied.unwrap().success());
    }
    let file = "src/_pytest/main.py";
    let mut request = request(&project, &["tests"], &[file]);
    let path = source.display().to_string();
    request.config.env.insert("PYTHONPATH".to_owned(), path);
    let answer = answer(&request);
    assert_eq!(answer.report.tests[0].outcome, Outcome::Passed);
    let coverage = answer.coverage.unwrap();
    assert_eq!(coverage.problem, None);
    let text = std::fs::read_to_string(project.root().join(file)).unwrap();
    let line = |start: &str| {
        let at = text.lines().position(|line| line.starts_with(start));
        u32::try_from(at.unwrap() + 1).unwrap()
    };
    let (statements, executed) = lines(&coverage, file);
    // The module itself, which is imported long before any plugin, and the inside of a function.
    for line in [
        line("def pytest_addoption"),
        line("def pytest_cmdline_main") + 1,
    ] {
        assert!(
            statements.contains(&line) && executed.contains(&line),
            "{line}"
        );
    }
    assert!(executed.len() < statements.len());
}

#[test]
fn bad_requests_and_broken_environments_have_their_exit_codes() {
    let project = project();
    let good = request(&project, &["tests"], &[]);
    let code = |request: &Request| {
        let output = toolbox_test(&serde_json::to_string(request).unwrap());
        assert!(output.stdout.is_empty() || output.status.success());
        output.status.code()
    };
    assert_eq!(toolbox_test("{}").status.code(), Some(2));
    assert_eq!(toolbox_test("").status.code(), Some(2));
    for ids in ["../x.py", "/etc/passwd", ""] {
        let mut request = good.clone();
        request.ids = vec![ids.to_owned()];
        assert_eq!(code(&request), Some(2), "{ids:?}");
    }
    let mut request = good.clone();
    request.coverage.as_mut().unwrap().files = vec!["../x.py".to_owned()];
    assert_eq!(code(&request), Some(2));
    let mut request = good.clone();
    request.seconds = u64::MAX;
    assert_eq!(code(&request), Some(0));
    let mut request = good.clone();
    request.config.workspace = project.root().join("nowhere");
    assert_eq!(code(&request), Some(3));
    let mut request = good.clone();
    request.config.python = "/nowhere/python".into();
    assert_eq!(code(&request), Some(3));
    let bare = tempfile::tempdir().unwrap();
    let made = uv()
        .args(["venv", "--quiet"])
        .arg(bare.path().join("venv"))
        .status();
    assert!(made.unwrap().success());
    for files in [[].as_slice(), &["pkg/__init__.py".to_owned()]] {
        // The package may be one for another version of Python than this one, too.
        let mut request = good.clone();
        request.config.python = bare.path().join("venv/bin/python");
        request.coverage.as_mut().unwrap().files = files.to_vec();
        assert_eq!(code(&request), Some(3), "no pytest");
    }
}

#[test]
fn nothing_that_the_tests_started_is_left() {
    let project = Project::new(&[(
        "tests/test_a.py",
        "\
import subprocess
def test_x():
    child = subprocess.Popen(['sleep', '1000'], start_new_session=True)
    open('child.pid', 'w').write(str(child.pid))
",
    )]);
    let mut request = request(&project, &["tests"], &[]);
    request.coverage = None;
    assert_eq!(answer(&request).report.tests[0].outcome, Outcome::Passed);
    let pid = std::fs::read_to_string(project.root().join("child.pid")).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists());
}

#[test]
fn what_runs_on_import_is_told_from_what_tests_run() {
    let project = project();
    let ids = ["tests/test_a.py::test_plain"];
    let coverage = measured(&project, &ids, &["pkg/__init__.py"]).coverage;
    let coverage = coverage.unwrap();
    let lines = &coverage.files["pkg/__init__.py"];
    assert_eq!(lines.called, [5], "{lines:?}");
    assert!(lines.executed.starts_with(&[1, 2, 5]), "{lines:?}");
}
