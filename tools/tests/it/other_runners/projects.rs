//! Runners that projects bring themselves: Django's runtests.py, SymPy's bin/test.

use super::*;

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
    let output = Command::new(&python).args(["-c", code]).output().unwrap();
    put(
        &project,
        Path::new(String::from_utf8(output.stdout).unwrap().trim()),
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

/// Runs Django's own tests, from its source distribution.
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
    write(
        &project,
        "tests/basic/test_exit.py",
        "import sys\nsys.exit(3)\n",
    );
    write(
        &project,
        "tests/basic/test_skipped.py",
        "import unittest\nraise unittest.SkipTest('not here')\n",
    );
    project.config.python = environment("django-4.2", None, &["asgiref==3.8.1", "sqlparse==0.5.1"]);
    project.config.runner.kind = RunnerKind::Django;
    project.config.runner.options = vec!["--settings=test_sqlite".to_owned()];
    let mut request = project.request(&[
        "tests/basic/test_fixture.py",
        "tests/basic/test_broken.py::X::test_x",
        "tests/basic/test_exit.py::X::test_exit",
        "tests/basic/test_skipped.py::X::test_skipped",
        "tests/basic/tests.py::ModelTest::test_objects_attribute_is_only_available_on_the_class_itself",
        "tests/basic/tests.py::ModelTest::test_gone",
    ]);
    request.coverage = Some(measure(&project.config.python, "django/utils/text.py"));
    let answer = answer(&request);
    let report: &TestReport = &answer.report;
    use Outcome::{Error, Failed, Passed, Skipped};
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
        ("X::test_exit", Error),
        ("X::test_skipped", Skipped),
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
    let [error, exit] = report.collection_errors.as_slice() else {
        panic!("{report:#?}")
    };
    assert_eq!(error.id, "tests/basic/test_broken.py");
    assert_eq!(error.failure.missing_name.as_deref(), Some("nothing"));
    assert_eq!(exit.id, "tests/basic/test_exit.py");
    assert_eq!(exit.failure.exception, "SystemExit");
    let coverage = answer.coverage.unwrap();
    assert_eq!(coverage.problem, None);
    let lines = &coverage.files["django/utils/text.py"];
    assert!(!lines.executed.is_empty() && lines.executed.len() < lines.statements.len());
}
