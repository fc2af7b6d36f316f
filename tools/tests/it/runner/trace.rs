//! Files that a test runs, including in processes that it starts.

use testwright_tools::outcomes::report::{Outcome, TestReport};

use super::{PKG, pkg};
use crate::project::{Project, test};

#[test]
fn hash_seed_order_and_trace_apply() {
    let project = pkg("\
import os, pytest, threading
import pkg
def test_a(): pkg.half(2)
def test_b(): assert os.environ['PYTHONHASHSEED'] == '5'
def test_c():
    t = threading.Thread(target=pkg.half, args=(1,))
    t.start(); t.join()
def test_d(): assert pkg.half(2) == 2
");
    let report = project.run_with(&["tests/test_a.py"], |o| {
        o.hash_seed = 5;
        o.reversed = true;
        o.trace = ["a", "b", "c"]
            .map(|n| format!("tests/test_a.py::test_{n}"))
            .to_vec();
    });
    let got: Vec<(&str, &[String])> = report
        .tests
        .iter()
        .map(|t| (&t.id["tests/test_a.py::".len()..], t.executed.as_slice()))
        .collect();
    let source = ["pkg/__init__.py".to_owned()];
    let expected: [(&str, &[String]); 4] = [
        ("test_d", &[]),
        ("test_c", &source),
        ("test_b", &[]),
        ("test_a", &source),
    ];
    assert_eq!(got, expected);
    assert_eq!(
        test(&report, "tests/test_a.py::test_b").outcome,
        Outcome::Passed
    );
}

#[test]
fn child_process_functions_count_as_executed() {
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        (
            "pkg/__main__.py",
            "import os, sys\nimport pkg\ndef main():\n    print(pkg.half(4), sorted(k for k in os.environ if k != 'PYTEST_CURRENT_TEST'), sys.path[1:], 'sitecustomize' in sys.modules)\n\
             \x20   sys.stdout.flush()\n    os.kill(os.getpid(), 9) if 'die' in sys.argv else None\nmain()\n",
        ),
        ("sub/sitecustomize.py", "print('own')\n"),
        (
            "tests/test_a.py",
            "\
import multiprocessing, os, subprocess, sys
pytest_plugins = ['pytester']
def out(*args, **more):
    child = subprocess.Popen([sys.executable] + list(args), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    return child.communicate()[0].decode().splitlines()
def seen(env):
    [line] = out('-c', 'import os, sys; print(sorted(k for k in os.environ if k != \"PYTEST_CURRENT_TEST\"), sys.path[1:], \"sitecustomize\" in sys.modules)', env=env)
    return ['2 ' + line]
BEFORE = seen(None), seen({'PYTHONPATH': os.getcwd()})
def test_module():
    assert out('-m', 'pkg') == BEFORE[0]
def test_dies():
    assert out('-m', 'pkg', 'die') == BEFORE[0]
def test_own_environment():
    assert out('-m', 'pkg', env={'PYTHONPATH': os.getcwd()}) == BEFORE[1]
def test_own_customization():
    assert out('-c', 'import pkg; pkg.half(1)', env={'PYTHONPATH': 'sub:.'}) == ['own']
def test_by_a_shell():
    assert os.system(sys.executable + ' -m pkg > /dev/null') == 0
def test_grandchild():
    out('-c', 'import os, subprocess, sys; subprocess.check_call([sys.executable, \"-m\", \"pkg\"], env=dict(os.environ))')
def test_fork():
    import pkg
    child = multiprocessing.get_context('fork').Process(target=pkg.half, args=(2,))
    child.start(); child.join()
def test_pytester(testdir):
    testdir.makepyfile('import pkg\\ndef test_x(): assert pkg.half(4) == 2')
    assert testdir.runpytest_subprocess('-p', 'no:cacheprovider').ret == 0
def test_elsewhere(tmp_path):
    (tmp_path / 'pkg.py').write_text(u'def half(): pass\\nhalf()\\n')
    assert out(str(tmp_path / 'pkg.py')) == []
def test_isolated():
    assert out('-I', '-c', 'print(1)') == ['1']
def test_itself():
    assert not any('TESTWRIGHT' in name for name in os.environ)
",
        ),
    ]);
    let untraced = project.run(&["tests/test_a.py"]);
    let report = project.run_with(&["tests/test_a.py"], |o| {
        o.trace = vec!["tests".to_owned()];
    });
    let outcomes = |report: &TestReport| -> Vec<Outcome> {
        let tests = report.tests.iter();
        tests.map(|t| t.outcome).collect()
    };
    assert_eq!(outcomes(&untraced), [Outcome::Passed; 11], "{untraced:#?}");
    assert_eq!(outcomes(&report), [Outcome::Passed; 11], "{report:#?}");
    let (init, main) = ("pkg/__init__.py", "pkg/__main__.py");
    for (name, expected) in [
        ("module", [init, main].as_slice()),
        ("dies", &[init, main]),
        ("own_environment", &[init, main]),
        ("own_customization", &[init]),
        ("by_a_shell", &[init, main]),
        ("grandchild", &[init, main]),
        ("fork", &[init]),
        ("pytester", &[init]),
        ("elsewhere", &[]),
        ("isolated", &[]),
        ("itself", &[]),
    ] {
        let result = test(&report, &format!("tests/test_a.py::test_{name}"));
        assert_eq!(result.executed, expected, "{name}");
    }
    let leftovers = std::fs::read_dir(project.config.scratch.join("pytest/children")).unwrap();
    assert_eq!(leftovers.count(), 0);
}

#[test]
fn process_tracing_ends_with_test() {
    let project = pkg("\
import os, pytest
pytestmark = pytest.mark.skipif(not hasattr(os, 'posix_spawn'), reason='came with Python 3.8')
def spawn(env, program='/bin/sh'):
    pid = os.posix_spawn(program, [program, '-c', 'env > printed'], env)
    assert os.waitpid(pid, 0)[1] == 0
    return open('printed').read()
def test_puts_back_late(monkeypatch):
    monkeypatch.setattr(os, 'posix_spawn', lambda *args: None)
def test_after():
    assert 'TESTWRIGHT' not in spawn(os.environ) + spawn({'PYTHONPATH': 'x'})
def test_fails():
    spawn({}, '/nothing/here')
");
    let traced = ["puts_back_late", "fails"].map(|n| format!("tests/test_a.py::test_{n}"));
    let untraced = project.run(&["tests/test_a.py"]);
    let report = project.run_with(&["tests/test_a.py"], |o| o.trace = traced.to_vec());
    let outcomes: Vec<Outcome> = report.tests.iter().map(|t| t.outcome).collect();
    if outcomes == [Outcome::Skipped; 3] {
        return;
    }
    assert_eq!(
        outcomes,
        [Outcome::Passed, Outcome::Passed, Outcome::Failed],
        "{report:#?}"
    );
    let failure = |report: &TestReport| test(report, &traced[1]).failure.clone();
    assert_eq!(failure(&report), failure(&untraced));
}
