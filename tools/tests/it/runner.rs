//! The pytest runner: outcomes, classes of failure, crashes, unknown ids, odd configurations.

use std::time::{Duration, Instant};

use testwright_tools::outcomes::report::{FailureClass, Outcome, Phase, Place, Report};

use crate::project::{Project, test};

const PKG: &str = "\
def half(n):
    if n == 13:
        raise ValueError('unlucky %d at %r' % (n, object()))
    assert n >= 0
    return n // 2

def call(f):
    return f()
";

fn pkg(test: &str) -> Project {
    Project::new(&[("pkg/__init__.py", PKG), ("tests/test_a.py", test)])
}

#[test]
fn outcomes_stay_apart() {
    let project = pkg("\
import sys, unittest, pytest
def test_pass(): print('garbage {\"event\": \"phase\"}')
def test_fail(): assert 1 == 2
@pytest.mark.skip(reason='x')
def test_skip(): pass
def test_skip_inside(): pytest.skip('x')
@pytest.mark.xfail
def test_xfail(): assert 0
@pytest.mark.xfail
def test_xpass(): pass
@pytest.mark.xfail(strict=True)
def test_strict(): pass
@pytest.fixture
def broken(): raise KeyError('k')
def test_setup(broken): pass
@pytest.fixture
def late():
    yield
    raise KeyError('late')
def test_teardown(late): pass
class TestCase(unittest.TestCase):
    def test_unit(self): self.assertEqual(1, 2)
    def test_ok(self): pass
    @unittest.skip('x')
    def test_unit_skip(self): pass
    @unittest.expectedFailure
    def test_unit_xfail(self): assert 0
    def test_subs(self):
        for i in range(3):
            with self.subTest(i=i): self.assertNotEqual(i, 1)
");
    let report = project.run(&["tests/test_a.py"]);
    let got: Vec<(&str, Outcome)> = report
        .tests
        .iter()
        .map(|t| (t.id.rsplit("::").next().unwrap(), t.outcome))
        .collect();
    use Outcome::{Error, Failed, Passed, Skipped, Xfailed, Xpassed};
    let expected = [
        ("test_pass", Passed),
        ("test_fail", Failed),
        ("test_skip", Skipped),
        ("test_skip_inside", Skipped),
        ("test_xfail", Xfailed),
        ("test_xpass", Xpassed),
        ("test_strict", Xpassed),
        ("test_setup", Error),
        ("test_teardown", Error),
        ("test_ok", Passed),
        ("test_subs", Failed),
        ("test_unit", Failed),
        ("test_unit_skip", Skipped),
        ("test_unit_xfail", Xfailed),
    ];
    let mut got_sorted = got.clone();
    got_sorted[9..].sort_by_key(|(name, _)| *name);
    assert_eq!(got_sorted, expected, "{}", report.printed);
    assert_eq!(report.exit_code, Some(1));
    let phase = |id: &str| {
        test(&report, &format!("tests/test_a.py::{id}"))
            .failure
            .as_ref()
            .unwrap()
            .phase
    };
    assert_eq!(phase("test_setup"), Phase::Setup);
    assert_eq!(phase("test_teardown"), Phase::Teardown);
    assert_eq!(phase("TestCase::test_unit"), Phase::Call);
}

#[test]
fn classes_of_failure_follow_the_traceback() {
    let project = pkg("\
import unittest, pytest
import pkg
from tests.helper import check
def test_assert(): assert pkg.half(4) == 3
def test_helper(): check(pkg.half(4), 3)
def test_raises():
    with pytest.raises(ValueError): pkg.half(1)
def test_warns():
    with pytest.warns(UserWarning): pkg.half(1)
def test_pytest_fail(): pytest.fail('no good')
def test_exception(): pkg.half(13)
def test_source_assert(): pkg.half(-1)
def test_callback():
    def inner(): assert pkg.half(2) == 2
    pkg.call(inner)
def test_own_value(): int('x')
def test_attribute(): pkg.quarter(1)
def test_name(): half(1)
def test_keyword(): pkg.half(1, up=True)
def test_argument(): pkg.half()
def test_import():
    from pkg import third
def test_module():
    import pkg.sub
def test_cause():
    try: pkg.half(13)
    except ValueError: assert False, 'then this'
class TestCase(unittest.TestCase):
    def test_unit(self): self.assertEqual(pkg.half(4), 3)
    def test_unit_raises(self):
        with self.assertRaises(KeyError): pkg.half(4)
");
    std::fs::write(project.root().join("tests/__init__.py"), "").unwrap();
    std::fs::write(
        project.root().join("tests/helper.py"),
        "def check(a, b):\n    assert a == b\n",
    )
    .unwrap();
    let report = project.run(&["tests/test_a.py"]);
    let got = |name: &str| {
        let result = test(&report, &format!("tests/test_a.py::{name}"));
        let failure = result
            .failure
            .as_ref()
            .unwrap_or_else(|| panic!("{result:?}"));
        (
            failure.class,
            failure.exception.as_str(),
            failure.missing_name.as_deref(),
        )
    };
    use FailureClass::{Assertion, Error, Exception};
    for (name, expected) in [
        ("test_assert", (Assertion, "AssertionError", None)),
        ("test_helper", (Assertion, "AssertionError", None)),
        ("test_raises", (Assertion, "Failed", None)),
        ("test_warns", (Assertion, "Failed", None)),
        ("test_pytest_fail", (Assertion, "Failed", None)),
        ("test_exception", (Exception, "ValueError", None)),
        ("test_source_assert", (Exception, "AssertionError", None)),
        ("test_callback", (Assertion, "AssertionError", None)),
        ("test_own_value", (Error, "ValueError", None)),
        ("test_attribute", (Error, "AttributeError", Some("quarter"))),
        ("test_name", (Error, "NameError", Some("half"))),
        ("test_keyword", (Error, "TypeError", Some("up"))),
        ("test_argument", (Error, "TypeError", Some("n"))),
        ("test_import", (Error, "ImportError", Some("third"))),
        (
            "test_module",
            (Error, "ModuleNotFoundError", Some("pkg.sub")),
        ),
        ("test_cause", (Assertion, "AssertionError", None)),
        ("TestCase::test_unit", (Assertion, "AssertionError", None)),
        (
            "TestCase::test_unit_raises",
            (Assertion, "AssertionError", None),
        ),
    ] {
        assert_eq!(got(name), expected, "{name}");
    }
    let failure = |name: &str| {
        test(&report, &format!("tests/test_a.py::{name}"))
            .failure
            .clone()
            .unwrap()
    };
    let cause = failure("test_cause").message;
    assert!(
        cause.starts_with("then this")
            && cause.contains("(raised while handling ValueError: unlucky 13"),
        "{cause}"
    );
    let exception = failure("test_exception");
    assert!(
        exception.message.contains("<object object at 0x...>"),
        "{}",
        exception.message
    );
    let frames: Vec<_> = exception
        .frames
        .iter()
        .map(|f| (f.file.as_str(), f.function.as_str(), f.place))
        .collect();
    assert_eq!(
        frames,
        [
            ("tests/test_a.py", "test_exception", Place::Test),
            ("pkg/__init__.py", "half", Place::Source)
        ]
    );
    assert_eq!(exception.frames[1].line, 3);
    assert!(exception.frames[1].code.starts_with("raise ValueError"));
}

#[test]
fn unknown_ids_do_not_keep_the_rest_from_running() {
    let project = pkg("\
import pytest
@pytest.mark.parametrize('x', ['a::b', 'ü[1]', ' ', 'a/b'])
def test_p(x): assert x != ' '
class TestC:
    def test_m(self): pass
");
    let ids = [
        "tests/test_a.py::test_gone",
        "tests/test_a.py::test_p[a::b]",
        "tests/test_a.py::test_p[ ]",
        "tests/missing.py",
        "tests/missing.py::test_x",
        "tests/test_a.py::TestC",
        "tests/test_a.py::test_p[zzz]",
    ];
    let report = project.run(&ids);
    let ran: Vec<(&str, Outcome)> = report
        .tests
        .iter()
        .map(|t| (t.id.as_str(), t.outcome))
        .collect();
    assert_eq!(
        ran,
        [
            ("tests/test_a.py::test_p[a::b]", Outcome::Passed),
            ("tests/test_a.py::test_p[ ]", Outcome::Failed),
            ("tests/test_a.py::TestC::test_m", Outcome::Passed),
        ]
    );
    let mut missing = report.not_found.clone();
    missing.sort();
    assert_eq!(missing, [ids[3], ids[4], ids[0], ids[6]]);
    assert_eq!(project.run(&["tests/test_a.py::test_p"]).tests.len(), 4);
    assert_eq!(project.run(&["tests"]).tests.len(), 5);
    assert_eq!(project.run(&[]).tests.len(), 0);
}

#[test]
fn a_module_that_cannot_be_imported_is_an_error_of_its_tests_alone() {
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        (
            "tests/test_bad.py",
            "from pkg import third\ndef test_x(): pass\n",
        ),
        ("tests/test_syntax.py", "def test_x(:\n"),
        ("tests/test_good.py", "def test_x(): pass\n"),
    ]);
    let report = project.run(&[
        "tests/test_bad.py::test_x",
        "tests/test_syntax.py",
        "tests/test_good.py",
    ]);
    assert_eq!(
        test(&report, "tests/test_good.py::test_x").outcome,
        Outcome::Passed
    );
    let bad = test(&report, "tests/test_bad.py::test_x");
    assert_eq!(bad.outcome, Outcome::Error);
    let failure = bad.failure.as_ref().unwrap();
    assert_eq!(
        (failure.phase, failure.class),
        (Phase::Collect, FailureClass::Error)
    );
    assert_eq!(failure.missing_name.as_deref(), Some("third"));
    assert_eq!(failure.frames[0].file, "tests/test_bad.py");
    let mut errors: Vec<(&str, &str)> = report
        .collection_errors
        .iter()
        .map(|e| (e.id.as_str(), e.failure.exception.as_str()))
        .collect();
    errors.sort();
    assert_eq!(
        errors,
        [
            ("tests/test_bad.py", "ImportError"),
            ("tests/test_syntax.py", "SyntaxError")
        ]
    );
    assert!(report.not_found.is_empty(), "{:?}", report.not_found);
}

#[test]
fn a_broken_conftest_is_an_error_of_what_lies_beneath_it() {
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        ("tests/a/conftest.py", "import nothing_like_this\n"),
        ("tests/a/test_a.py", "def test_x(): pass\n"),
        ("tests/b/test_b.py", "def test_x(): pass\n"),
    ]);
    for asked in [
        ["tests/a/test_a.py::test_x", "tests/b/test_b.py"],
        ["tests/b", "tests/a/test_a.py::test_x"],
    ] {
        let report = project.run(&asked);
        assert_eq!(
            test(&report, "tests/b/test_b.py::test_x").outcome,
            Outcome::Passed,
            "{report:#?}"
        );
        let failure = test(&report, "tests/a/test_a.py::test_x")
            .failure
            .clone()
            .unwrap();
        assert_eq!(failure.exception, "ModuleNotFoundError");
        assert_eq!(failure.missing_name.as_deref(), Some("nothing_like_this"));
        assert_eq!(report.collection_errors[0].id, "tests/a/conftest.py");
    }
}

#[test]
fn a_process_that_dies_keeps_what_ran() {
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
fn a_process_that_dies_while_collecting_is_an_error() {
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
fn a_test_that_hangs_is_absent_and_leaves_no_process() {
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
        o.deadline = Instant::now() + Duration::from_secs(4);
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
fn a_further_test_that_hangs_after_one_that_fails_is_ended_in_its_time() {
    let project = pkg("\
import threading, time
def test_fails(): assert 0
def test_sees(): assert threading.active_count() == 1
def test_hangs(): time.sleep(1000)
def test_after(): pass
def test_own(): pass
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
fn tests_to_run_first_are_accounted_for_one_by_one() {
    let project = Project::new(&[
        ("tests/a/conftest.py", "import nothing_like_this\n"),
        ("tests/a/test_a.py", "def test_x(): pass\n"),
        ("tests/b/test_b.py", "def test_x(): pass\n"),
    ]);
    let first = [
        "tests/a/test_a.py::test_x",
        "tests/b/test_b.py::test_x",
        "tests/b/test_b.py::test_gone",
    ];
    let report = project.run_with(&["tests/a/test_a.py", "tests/b/test_b.py"], |o| {
        o.first = first.map(str::to_owned).to_vec();
    });
    assert_eq!(test(&report, first[0]).outcome, Outcome::Error);
    assert_eq!(test(&report, first[1]).outcome, Outcome::Passed);
    assert_eq!(report.not_found, [first[2]]);
}

#[test]
fn the_reason_of_a_skipped_module_is_the_same_each_time() {
    let project = pkg("\
import pytest
pytest.skip('not with %r' % object(), allow_module_level=True)
def test_a(): pass
");
    let report = project.run(&["tests/test_a.py::test_a"]);
    assert_eq!(
        report.tests[0].captured,
        "not with <object object at 0x...>"
    );
}

#[test]
fn a_forked_child_does_not_write_into_the_report() {
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
fn options_of_absent_plugins_are_dropped() {
    let test = "import pytest\n@pytest.mark.slow\ndef test_x(): pass\n";
    for ini in [
        "[pytest]\naddopts = --cov=pkg -n 4\nmarkers = slow\n",
        "[pytest]\naddopts = -p pytest_of_nobody\nmarkers = slow\n",
    ] {
        let project = Project::new(&[("pytest.ini", ini), ("tests/test_a.py", test)]);
        let report = project.run(&["tests/test_a.py"]);
        assert_eq!(report.tests.len(), 1, "{}", report.printed);
        assert_eq!(report.tests[0].outcome, Outcome::Passed);
        assert!(
            report
                .printed
                .starts_with("[run without the repository's addopts"),
            "{}",
            report.printed
        );
    }
}

#[test]
fn options_that_stop_early_or_select_are_taken_back() {
    let ini = "[pytest]\naddopts = -x --maxfail=1 --strict -p no:doctest --lf\nmarkers =\n    slow: takes long\n";
    let test = "def test_a(): assert 0\ndef test_b(): assert 0\ndef test_c(): pass\n";
    let project = Project::new(&[("tox.ini", ini), ("tests/test_a.py", test)]);
    for _ in 0..2 {
        let report = project.run(&["tests/test_a.py"]);
        let outcomes: Vec<Outcome> = report.tests.iter().map(|t| t.outcome).collect();
        assert_eq!(
            outcomes,
            [Outcome::Failed, Outcome::Failed, Outcome::Passed],
            "{}",
            report.printed
        );
    }
    assert!(!project.root().join(".pytest_cache").exists());
}

#[test]
fn a_plugin_may_use_the_cache_folder_from_the_start() {
    let conftest = "import os\ndef pytest_runtest_setup(item):\n    \
                    os.mkdir(os.path.join(str(item.config.getini('cache_dir')), 'mine'))\n";
    let project = Project::new(&[
        ("tests/conftest.py", conftest),
        ("tests/test_a.py", "def test_a(): pass\n"),
    ]);
    let report = project.run(&["tests/test_a.py"]);
    assert_eq!(report.tests[0].outcome, Outcome::Passed, "{report:?}");
}

#[test]
fn tests_left_out_by_marks_are_skipped_and_say_so() {
    let ini = "[pytest]\naddopts = -m \"not slow\"\nmarkers =\n    slow: takes long\n";
    let test_file = "import pytest\n@pytest.mark.slow\ndef test_a(): pass\ndef test_b(): pass\n";
    let project = Project::new(&[("tox.ini", ini), ("tests/test_a.py", test_file)]);
    let report = project.run(&["tests/test_a.py::test_a"]);
    let result = test(&report, "tests/test_a.py::test_a");
    assert_eq!(result.outcome, Outcome::Skipped);
    assert!(result.captured.contains("deselected"));
    let report = project.run_with(&["tests/test_a.py"], |o| o.keyword = Some("test_b".into()));
    assert_eq!(report.tests.len(), 1);
}

#[test]
fn ids_are_relative_to_the_workspace_wherever_the_ini_file_lies() {
    let project = Project::new(&[
        ("sub/tests/pytest.ini", "[pytest]\n"),
        ("sub/tests/test_a.py", "def test_a(): assert 0\n"),
    ]);
    let report = project.run(&["sub/tests/test_a.py::test_a"]);
    assert_eq!(
        test(&report, "sub/tests/test_a.py::test_a").outcome,
        Outcome::Failed
    );
}

#[test]
fn sessions_inside_tests_do_not_load_the_plugin() {
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

#[test]
fn hash_seed_order_and_trace() {
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
fn functions_run_by_processes_that_a_test_starts_count_as_executed() {
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
    let outcomes = |report: &Report| -> Vec<Outcome> {
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
    let left = std::fs::read_dir(project.config.scratch.join("pytest")).unwrap();
    let mut names: Vec<_> = left.map(|e| e.unwrap().file_name()).collect();
    names.sort();
    names.retain(|name| name != "cache");
    assert_eq!(names, ["children", "plugin"]);
}

#[test]
fn following_processes_ends_with_the_test_and_does_not_show_in_tracebacks() {
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
    let failure = |report: &Report| test(report, &traced[1]).failure.clone();
    assert_eq!(failure(&report), failure(&untraced));
}

#[test]
fn the_workspace_stays_clean_and_two_runs_say_the_same() {
    let project = pkg("import pkg\ndef test_a(tmpdir): print(tmpdir); assert object() == tmpdir\n");
    let strip = |mut report: testwright_tools::outcomes::report::Report| {
        report.seconds = 0.0;
        for test in &mut report.tests {
            test.seconds = 0.0;
        }
        report
    };
    let first = strip(project.run(&["tests/test_a.py"]));
    let second = strip(project.run(&["tests/test_a.py"]));
    assert_eq!(first, second);
    let mut names: Vec<_> = std::fs::read_dir(project.root())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["pkg", "tests"]);
}
