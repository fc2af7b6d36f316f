//! Runners beside pytest, with the real programs: unittest, Django's runtests.py, SymPy's bin/test.

use std::path::Path;
use std::process::Command;

use testwright_tools::config::RunnerKind;
use testwright_tools::coverage::Measure;
use testwright_tools::outcomes::report::{FailureClass, Outcome, Phase, Report};

use crate::project::{
    Project, answer, coverage_for, environment, outcomes, run, shared_folder, test,
};

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
";

fn unittest(files: &[(&str, &str)]) -> Project {
    let mut project = Project::new(files);
    project.config.runner.kind = RunnerKind::Unittest;
    project
}

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
fn unittest_outcomes_stay_apart() {
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
    ] {
        let found = failure(id);
        let got = (found.phase, found.class, found.exception.as_str());
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
fn unittest_runs_what_is_asked_and_tells_what_is_missing() {
    let project = cases();
    let ids = [
        "tests/test_a.py::A::test_pass",
        "tests/test_a.py::G",
        "tests/test_a.py::A::test_gone",
        "tests/gone.py",
    ];
    let mut request = project.request(&ids);
    request.reversed = true;
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
fn unittest_finds_files_in_folders_with_and_without_packages() {
    let two = "import unittest, beside\nclass T(unittest.TestCase):\n    def test_t(self): pass\n";
    let project = unittest(&[
        ("a/beside.py", ""),
        ("a/test_same.py", two),
        ("b/beside.py", ""),
        ("b/test_same.py", two),
        ("b/sub/test_deep.py", two),
        ("b/broken/test_bad.py", "import none_such\n"),
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
    assert_eq!(report.collection_errors.len(), 1);
    let error = &report.collection_errors[0];
    assert_eq!(error.id, "b/broken/test_bad.py");
    assert_eq!(error.failure.missing_name.as_deref(), Some("none_such"));

    let mut request = project.request(&["b"]);
    request.config.runner.options = vec!["-p".to_owned(), "oth*.py".to_owned()];
    let report = answer(&request).report;
    assert_eq!(report.tests[0].id, "b/other.py::T::test_t");
}

#[test]
fn unittest_keeps_what_ran_before_a_death_and_measures() {
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

fn measure(python: &Path, file: &str) -> Measure {
    Measure {
        package: coverage_for(python),
        files: vec![file.to_owned()],
        counted: false,
    }
}

fn put(project: &Project, from: &Path) {
    let copied = Command::new("cp")
        .arg("-r")
        .arg(from)
        .arg(project.root())
        .status();
    assert!(copied.unwrap().success());
}

fn write(project: &Project, path: &str, text: &str) {
    std::fs::write(project.root().join(path), text).unwrap();
}

/// SymPy itself is the code under test, as in its repository.
#[test]
fn sympy_by_its_own_runner() {
    let python = environment("sympy-1.12", None, &["sympy==1.12", "mpmath==1.3.0"]);
    let mut project = Project::new(&[("setup.py", "")]);
    let code = "import os, sympy; print(os.path.dirname(sympy.__file__))";
    let found = Command::new(&python).args(["-c", code]).output().unwrap();
    put(
        &project,
        Path::new(String::from_utf8(found.stdout).unwrap().trim()),
    );
    let file = "sympy/core/tests/test_fixture.py";
    write(
        &project,
        file,
        "\
from sympy import Symbol, sympify, S
from sympy.testing.pytest import XFAIL, raises, skip, slow
from sympy.core.singleton import Singleton
def test_pass(): assert Symbol('x') == Symbol('x')
def test_fail(): assert Symbol('x') == Symbol('y')
def test_raise(): sympify('1 +')
def test_raises(): raises(ValueError, lambda: S(1))
def test_own(): assert nothing
def test_skip(): skip('why')
@slow
def test_slow(): assert False
@XFAIL
def test_xfail(): assert False
@XFAIL
def test_xpass(): pass
",
    );
    write(
        &project,
        "sympy/core/tests/test_broken.py",
        "from sympy import nothing\ndef test_x(): pass\n",
    );
    write(
        &project,
        "sympy/core/tests/test_disabled.py",
        "disabled = True\ndef test_x(): pass\n",
    );
    project.config.python = python.clone();
    project.config.runner.kind = RunnerKind::Sympy;
    let mut request = project.request(&[
        file,
        "sympy/core/tests/test_broken.py::test_x",
        "sympy/core/tests/test_disabled.py::test_x",
        "sympy/core/tests/test_priority.py::test_mul",
        "sympy/core/tests/test_priority.py::test_gone",
    ]);
    request.coverage = Some(measure(&python, "sympy/core/sympify.py"));
    let answer = answer(&request);
    let report = &answer.report;
    use Outcome::{Error, Failed, Passed, Skipped, Xfailed, Xpassed};
    let expected = [
        ("test_pass", Passed),
        ("test_fail", Failed),
        ("test_raise", Failed),
        ("test_raises", Failed),
        ("test_own", Failed),
        ("test_skip", Skipped),
        ("test_slow", Skipped),
        ("test_xfail", Xfailed),
        ("test_xpass", Xpassed),
        ("test_mul", Passed),
        ("test_x", Error),
        ("test_x", Skipped),
    ];
    assert_eq!(outcomes(report), expected, "{report:#?}");
    assert_eq!(
        report.not_found,
        ["sympy/core/tests/test_priority.py::test_gone"]
    );
    let class = |name: &str| {
        let result = test(report, &format!("{file}::{name}"));
        result.failure.as_ref().map(|f| f.class)
    };
    assert_eq!(class("test_fail"), Some(FailureClass::Assertion));
    assert_eq!(class("test_raise"), Some(FailureClass::Exception));
    assert_eq!(class("test_raises"), Some(FailureClass::Assertion));
    assert_eq!(class("test_own"), Some(FailureClass::Error));
    assert_eq!(report.collection_errors.len(), 1);
    let missing = report.collection_errors[0].failure.missing_name.as_deref();
    assert_eq!(missing, Some("nothing"));
    let coverage = answer.coverage.unwrap();
    assert_eq!(coverage.problem, None);
    let lines = &coverage.files["sympy/core/sympify.py"];
    let text = std::fs::read_to_string(project.root().join("sympy/core/sympify.py")).unwrap();
    let at = |start: &str| {
        let line = text
            .lines()
            .position(|line| line.trim_start().starts_with(start));
        u32::try_from(line.unwrap() + 1).unwrap()
    };
    assert!(
        lines
            .executed
            .contains(&at("raise SympifyError('could not parse"))
    );
    assert!(lines.executed.len() < lines.statements.len());
}

/// Django's own tests, from its source distribution.
#[test]
fn django_by_its_own_runner() {
    let source = shared_folder("django-4.2.16", |aside| {
        let archive = aside.with_extension("download");
        run(Command::new("python3")
            .args([
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--no-binary",
                ":all:",
            ])
            .args(["django==4.2.16", "--dest"])
            .arg(&archive));
        std::fs::create_dir(aside).unwrap();
        run(Command::new("tar")
            .args(["xzf"])
            .arg(archive.join("Django-4.2.16.tar.gz"))
            .args(["--strip-components=1", "-C"])
            .arg(aside));
        std::fs::remove_dir_all(archive).unwrap();
    });
    let mut project = Project::new(&[("tests/README", "")]);
    put(&project, &source.join("django"));
    for part in [
        "runtests.py",
        "test_sqlite.py",
        "urls.py",
        "templates",
        "basic",
        "utils_tests",
    ] {
        let into = project.root().join("tests");
        let copied = Command::new("cp")
            .arg("-r")
            .args([source.join("tests").join(part), into])
            .status();
        assert!(copied.unwrap().success());
    }
    write(
        &project,
        "tests/basic/test_fixture.py",
        "\
from django.test import SimpleTestCase, TestCase
from django.test.utils import get_runner
from django.utils.text import Truncator, slugify
from basic.models import Article
class A(TestCase):
    @classmethod
    def setUpTestData(cls): raise ValueError('data')
    def test_a(self): pass
class B(SimpleTestCase):
    def test_fails(self): self.assertEqual(slugify('A b'), 'x')
    def test_raises(self): Truncator('x').chars('y')
    def test_passes(self): pass
    def test_database(self): Article.objects.count()
class C(TestCase):
    def test_inner_run(self):
        import unittest
        class Inner(unittest.TestCase):
            def test_inner(self): assert False
        unittest.TextTestRunner(stream=open('/dev/null', 'w')).run(unittest.TestSuite([Inner('test_inner')]))
        self.assertEqual(Article.objects.count(), 0)
",
    );
    write(
        &project,
        "tests/basic/test_broken.py",
        "from django.utils.text import nothing\n",
    );
    project.config.python = environment("django-4.2", None, &["asgiref==3.8.1", "sqlparse==0.5.1"]);
    project.config.runner.kind = RunnerKind::Django;
    project.config.runner.options = vec!["--settings=test_sqlite".to_owned()];
    let mut request = project.request(&[
        "tests/basic/test_fixture.py",
        "tests/basic/test_broken.py::X::test_x",
        "tests/basic/tests.py::ModelTest::test_objects_attribute_is_only_available_on_the_class_itself",
        "tests/basic/tests.py::ModelTest::test_gone",
    ]);
    request.coverage = Some(measure(&project.config.python, "django/utils/text.py"));
    let answer = answer(&request);
    let report: &Report = &answer.report;
    use Outcome::{Error, Failed, Passed};
    let mut got = outcomes(report);
    got.sort();
    let expected = [
        ("A::test_a", Error),
        ("B::test_database", Failed),
        ("B::test_fails", Failed),
        ("B::test_passes", Passed),
        ("B::test_raises", Failed),
        ("C::test_inner_run", Passed),
        (
            "ModelTest::test_objects_attribute_is_only_available_on_the_class_itself",
            Passed,
        ),
        ("X::test_x", Error),
    ];
    assert_eq!(got, expected, "{report:#?}");
    assert_eq!(
        report.not_found,
        ["tests/basic/tests.py::ModelTest::test_gone"]
    );
    let failure = |id: &str| {
        let result = test(report, &format!("tests/basic/test_fixture.py::{id}"));
        result.failure.clone().unwrap()
    };
    assert_eq!(failure("A::test_a").phase, Phase::Setup);
    assert_eq!(failure("B::test_fails").class, FailureClass::Assertion);
    assert_eq!(failure("B::test_raises").class, FailureClass::Exception);
    let [error] = report.collection_errors.as_slice() else {
        panic!("{report:#?}")
    };
    assert_eq!(error.id, "tests/basic/test_broken.py");
    assert_eq!(error.failure.missing_name.as_deref(), Some("nothing"));
    let coverage = answer.coverage.unwrap();
    assert_eq!(coverage.problem, None);
    let lines = &coverage.files["django/utils/text.py"];
    assert!(!lines.executed.is_empty() && lines.executed.len() < lines.statements.len());
}

#[test]
fn what_cannot_run_at_all_is_told() {
    let mut project = Project::new(&[
        ("sympy/__init__.py", "import none_such\n"),
        ("sympy/test_a.py", ""),
    ]);
    project.config.runner.kind = RunnerKind::Sympy;
    let report = answer(&project.request(&["sympy/test_a.py::test_x"])).report;
    let failure = report.tests[0].failure.clone().unwrap();
    assert_eq!(report.tests[0].outcome, Outcome::Error);
    assert_eq!(
        failure.missing_name, None,
        "it is the package that is broken"
    );
    assert_eq!(failure.exception, "ModuleNotFoundError");

    let mut project = unittest(&[("test_a.py", "")]);
    project.config.runner.options = vec!["--unknown".to_owned()];
    let request = serde_json::to_string(&project.request(&["test_a.py"])).unwrap();
    let output = crate::project::toolbox_test(&request);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}
