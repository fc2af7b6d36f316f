//! Tests of the unittest runner, which uses unittest's own loader.

use super::*;

const PKG: &str = "\
def half(n):
    if n == 13:
        raise ValueError('unlucky')
    return n // 2
";

const TESTS: &str = "\
import os, sys, unittest
import pkg
from tests.base import Base
print('ok {\"event\": \"phase\"}')
class A(unittest.TestCase):
    def test_pass(self): self.assertEqual(pkg.half(4), 2)
    def test_fail(self): self.assertEqual(pkg.half(4), 3)
    def test_raise(self): pkg.half(13)
    def test_own(self): half(1)
    @unittest.skip('why')
    def test_skip(self): pass
    def test_skip_inside(self): self.skipTest('why')
    @unittest.expectedFailure
    def test_xfail(self): self.fail()
    @unittest.expectedFailure
    def test_xpass(self): pass
    def test_subs(self):
        for i in range(3):
            with self.subTest(i=i): self.assertNotEqual(i, 1)
    def test_subs_skip(self):
        with self.subTest(i=0): self.skipTest('part')
class B(unittest.TestCase):
    def setUp(self): raise KeyError('s')
    def test_b(self): pass
class C(unittest.TestCase):
    def tearDown(self): raise KeyError('t')
    def test_c(self): pass
class D(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise KeyError('c')
    def test_d1(self): pass
    def test_d2(self): pass
class E(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest('class')
    def test_e(self): pass
class F(unittest.TestCase):
    @classmethod
    def tearDownClass(cls): raise KeyError('late')
    def test_f1(self): pass
    def test_f2(self): pass
class G(Base):
    pass
class H(unittest.TestCase):
    def __call__(self, result=None):
        super().__call__(result)
        try:
            raise KeyError('after')
        except KeyError:
            result.addError(self, sys.exc_info())
    def test_h1(self): pkg.half(13)
    def test_h2(self): pass
";

fn cases() -> Project {
    unittest(&[
        ("pkg/__init__.py", PKG),
        ("tests/__init__.py", ""),
        (
            "tests/base.py",
            "import unittest\nclass Base(unittest.TestCase):\n    def test_inherited(self): pass\n",
        ),
        ("tests/test_a.py", TESTS),
    ])
}

#[test]
fn unittest_outcomes_are_distinguished() {
    let project = cases();
    let report = answer(&project.request(&["tests/test_a.py"])).report;
    use Outcome::{Error, Failed, Passed, Skipped, Xfailed, Xpassed};
    let expected = [
        ("A::test_fail", Failed),
        ("A::test_own", Failed),
        ("A::test_pass", Passed),
        ("A::test_raise", Failed),
        ("A::test_skip", Skipped),
        ("A::test_skip_inside", Skipped),
        ("A::test_subs", Failed),
        ("A::test_subs_skip", Skipped),
        ("A::test_xfail", Xfailed),
        ("A::test_xpass", Xpassed),
        ("B::test_b", Error),
        ("Base::test_inherited", Passed),
        ("C::test_c", Error),
        ("D::test_d1", Error),
        ("D::test_d2", Error),
        ("E::test_e", Skipped),
        ("F::test_f1", Passed),
        ("F::test_f2", Error),
        ("G::test_inherited", Passed),
        ("H::test_h1", Failed),
        ("H::test_h2", Error),
    ];
    assert_eq!(outcomes(&report), expected, "{}", report.printed);
    assert_eq!(report.exit_code, Some(1));
    let failure = |id: &str| {
        let result = test(&report, &format!("tests/test_a.py::{id}"));
        result.failure.clone().unwrap()
    };
    for (id, phase, class, exception) in [
        (
            "A::test_fail",
            Phase::Call,
            FailureClass::Assertion,
            "AssertionError",
        ),
        (
            "A::test_raise",
            Phase::Call,
            FailureClass::Exception,
            "ValueError",
        ),
        ("A::test_own", Phase::Call, FailureClass::Error, "NameError"),
        (
            "A::test_subs",
            Phase::Call,
            FailureClass::Assertion,
            "AssertionError",
        ),
        ("B::test_b", Phase::Setup, FailureClass::Error, "KeyError"),
        (
            "C::test_c",
            Phase::Teardown,
            FailureClass::Error,
            "KeyError",
        ),
        ("D::test_d2", Phase::Setup, FailureClass::Error, "KeyError"),
        (
            "F::test_f2",
            Phase::Teardown,
            FailureClass::Error,
            "KeyError",
        ),
        (
            "H::test_h1",
            Phase::Call,
            FailureClass::Exception,
            "ValueError",
        ),
        (
            "H::test_h2",
            Phase::Teardown,
            FailureClass::Error,
            "KeyError",
        ),
    ] {
        let actual = failure(id);
        let got = (actual.phase, actual.class, actual.exception.as_str());
        assert_eq!(got, (phase, class, exception), "{id}");
    }
    let files: Vec<String> = failure("A::test_raise")
        .frames
        .into_iter()
        .map(|f| f.file)
        .collect();
    assert_eq!(files, ["tests/test_a.py", "pkg/__init__.py"]);
    let skipped = test(&report, "tests/test_a.py::A::test_skip");
    assert_eq!(skipped.captured, "why");
}

#[test]
fn unittest_runs_requested_ids() {
    let project = cases();
    let ids = [
        "tests/test_a.py::A::test_pass",
        "tests/test_a.py::G",
        "tests/test_a.py::A::test_gone",
        "tests/gone.py",
    ];
    let mut request = project.request(&ids);
    request.options.reversed = true;
    let report = answer(&request).report;
    let expected = [
        ("G::test_inherited", Outcome::Passed),
        ("A::test_pass", Outcome::Passed),
    ];
    assert_eq!(outcomes(&report), expected);
    let mut missing = report.not_found.clone();
    missing.sort();
    assert_eq!(missing, [ids[3], ids[2]]);
    assert_eq!(report.exit_code, Some(0));
}

#[test]
fn unittest_finds_files_outside_packages() {
    let two = "import unittest, beside\nclass T(unittest.TestCase):\n    def test_t(self): pass\n";
    let project = unittest(&[
        ("a/beside.py", ""),
        ("a/test_same.py", two),
        ("b/beside.py", ""),
        ("b/test_same.py", two),
        ("b/sub/test_deep.py", two),
        ("b/broken/test_bad.py", "import none_such\n"),
        ("b/exits/test_exit.py", "raise SystemExit(3)\n"),
        (
            "b/skipped/test_skip.py",
            "import unittest\nraise unittest.SkipTest('not here')\n",
        ),
        ("b/other.py", two),
    ]);
    let report = answer(&project.request(&["a", "b", "b/skipped/test_skip.py::X::test_x"])).report;
    let ids: Vec<&str> = report.tests.iter().map(|t| t.id.as_str()).collect();
    let expected = [
        "a/test_same.py::T::test_t",
        "b/test_same.py::T::test_t",
        "b/sub/test_deep.py::T::test_t",
        "b/skipped/test_skip.py::X::test_x",
    ];
    assert_eq!(ids, expected, "{report:#?}");
    assert_eq!(report.tests[3].outcome, Outcome::Skipped);
    let errors = &report.collection_errors;
    let ids: Vec<&str> = errors.iter().map(|error| error.id.as_str()).collect();
    assert_eq!(ids, ["b/broken/test_bad.py", "b/exits/test_exit.py"]);
    let error = &errors[0];
    assert_eq!(error.failure.missing_name.as_deref(), Some("none_such"));

    let mut request = project.request(&["b"]);
    request.config.runner.options = vec!["-p".to_owned(), "oth*.py".to_owned()];
    let report = answer(&request).report;
    assert_eq!(report.tests[0].id, "b/other.py::T::test_t");
}

#[test]
fn unittest_keeps_results_before_crash() {
    let project = unittest(&[
        ("pkg/__init__.py", PKG),
        (
            "test_a.py",
            "\
import os, unittest
import pkg
class A(unittest.TestCase):
    def test_a(self): pkg.half(4)
    def test_b(self): os._exit(3)
    def test_c(self): pass
",
        ),
    ]);
    let report = answer(&project.request(&["test_a.py"])).report;
    use Outcome::{Absent, Passed};
    let expected = [
        ("A::test_a", Passed),
        ("A::test_b", Absent),
        ("A::test_c", Absent),
    ];
    assert_eq!(outcomes(&report), expected);
    let died = report.tests[1].failure.as_ref().unwrap();
    assert!(died.message.contains("exit status 3"), "{}", died.message);

    let mut request = project.request(&["test_a.py::A::test_a"]);
    request.coverage = Some(measure(&project.config.python, "pkg/__init__.py"));
    let coverage = answer(&request).coverage.unwrap();
    assert_eq!(coverage.problem, None);
    let lines = &coverage.files["pkg/__init__.py"];
    assert_eq!(lines.statements, [1, 2, 3, 4]);
    assert_eq!(lines.executed, [1, 2, 4]);
}
