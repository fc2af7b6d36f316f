//! Lines of several processes: those that tests start, and those that fork.

use super::*;

#[test]
fn restored_trace_functions_and_forks_are_fine() {
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
fn child_processes_are_measured() {
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
    // Only tests start them, so all of their lines count as called, including imports.
    assert_eq!(child.files["pkg/__init__.py"].called, executed);
    assert_eq!(child.lost, 0);
    let ended = of("test_ended");
    assert_eq!(ended.lost, 1);
    assert!(lines(&ended, "pkg/__init__.py").1.is_empty());
    // A process that runs none of the files is not lost.
    assert_eq!(of("test_others").lost, 0);
    assert_eq!(of("test_traces").lost, u32::from(!is_monitored()));
    let fails = of("test_fails");
    assert_eq!(fails.lost, 0);
    assert!(lines(&fails, "pkg/__init__.py").1.contains(&1));
}

#[test]
fn lines_of_processes_are_merged() {
    // Options that pytest refuses, a broken conftest beside a valid one, and a file that is not a test module.
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
fn no_test_process_survives() {
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
