//! Tests of outcomes, failure classes, and ids and modules that pytest does not find.

use testwright_tools::outcomes::report::{FailureClass, Outcome, Phase, Place};

use super::{PKG, pkg};
use crate::project::{Project, test};

#[test]
fn outcomes_are_distinguished() {
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
    @unittest.expectedFailure
    def test_unit_xpass(self): pass
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
        ("test_unit_xpass", Xpassed),
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
fn odd_exceptions_do_not_end_the_record() {
    let project = pkg("\
def test_undecodable(): assert 0, 'bad \\udce9'
class Odd(Exception):
    @property
    def name(self): raise KeyError(1)
def test_odd(): raise Odd
def test_later(): assert 1 == 2
");
    let report = project.run(&["tests/test_a.py"]);
    let outcomes: Vec<Outcome> = report.tests.iter().map(|t| t.outcome).collect();
    assert_eq!(outcomes, [Outcome::Failed; 3], "{report:?}");
    let failure = report.tests[0].failure.as_ref().unwrap();
    assert_eq!(failure.message, "bad ?\nassert 0");
}

#[test]
fn failure_class_follows_traceback() {
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
        exception.message.contains("<object object at 0x...1>"),
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
fn unknown_ids_do_not_stop_others() {
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
fn import_error_affects_own_tests_only() {
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        (
            "tests/test_bad.py",
            "from pkg import third\ndef test_x(): pass\n",
        ),
        ("tests/test_exit.py", "import sys\nsys.exit(3)\n"),
        ("tests/test_syntax.py", "def test_x(:\n"),
        ("tests/test_good.py", "def test_x(): pass\n"),
    ]);
    let report = project.run(&[
        "tests/test_bad.py::test_x",
        "tests/test_exit.py",
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
            ("tests/test_exit.py", "SystemExit"),
            ("tests/test_syntax.py", "SyntaxError")
        ]
    );
    assert!(report.not_found.is_empty(), "{:?}", report.not_found);
}

#[test]
fn broken_conftest_affects_tests_below() {
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        ("tests/a/conftest.py", "import nothing_like_this\n"),
        ("tests/a/test_a.py", "def test_x(): pass\n"),
        ("tests/b/test_b.py", "def test_x(): pass\n"),
    ]);
    for ids in [
        ["tests/a/test_a.py::test_x", "tests/b/test_b.py"],
        ["tests/b", "tests/a/test_a.py::test_x"],
    ] {
        let report = project.run(&ids);
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
fn conftest_that_exits_or_skips_is_broken() {
    for (conftest, exception) in [
        ("raise SystemExit(3)", "SystemExit"),
        (
            "import pytest; pytest.skip('no', allow_module_level=True)",
            "Skipped",
        ),
        ("pytest_plugins = ['nothing_like_this']", "ImportError"),
    ] {
        let project = Project::new(&[
            ("tests/a/conftest.py", conftest),
            ("tests/a/test_a.py", "def test_x(): pass\n"),
            ("tests/b/test_b.py", "def test_x(): pass\n"),
        ]);
        let report = project.run(&["tests/a/test_a.py", "tests/b/test_b.py"]);
        let error = &report.collection_errors[0];
        assert_eq!(
            (error.id.as_str(), error.failure.exception.as_str()),
            ("tests/a/conftest.py", exception)
        );
        assert_eq!(
            test(&report, "tests/b/test_b.py::test_x").outcome,
            Outcome::Passed,
            "{report:#?}"
        );
    }
}

#[test]
fn first_tests_are_reported_individually() {
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
fn skipped_module_reason_is_stable() {
    let project = pkg("\
import pytest
pytest.skip('not with %r' % object(), allow_module_level=True)
def test_a(): pass
");
    let report = project.run(&["tests/test_a.py::test_a"]);
    assert_eq!(
        report.tests[0].captured,
        "not with <object object at 0x...1>"
    );
}

#[test]
fn runs_are_clean_and_repeatable() {
    let project = pkg("import pkg\ndef test_a(tmpdir): print(tmpdir); assert object() == tmpdir\n");
    let strip = |mut report: testwright_tools::outcomes::report::TestReport| {
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

#[test]
fn many_ids_are_accepted() {
    let many = "import pytest\n@pytest.mark.parametrize('n', range(4000))\ndef test_n(n): pass\n";
    let project = pkg(many);
    let ids: Vec<String> = (0..4000)
        .map(|n| format!("tests/test_a.py::test_n[{n}]"))
        .collect();
    assert!(ids.iter().map(String::len).sum::<usize>() > 100_000);
    let mut requested_ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    requested_ids.push("tests/test_a.py::test_gone[and a name of some length, so that it is more than 128 KB in all]");
    let report = project.run(&requested_ids);
    let ran = report.tests.iter().filter(|t| t.outcome == Outcome::Passed);
    assert_eq!(ran.count(), 4000);
    assert_eq!(report.not_found, requested_ids[4000..]);
}
