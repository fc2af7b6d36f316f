//! The oldest and the newest Python and pytest that the plugin supports, with xdist requested by the repository.

use serde_json::json;
use testwright_tools::outcomes::report::{Outcome, TestReport};

use super::PKG;
use crate::project::{Project, answer, environment, interpreter, outcomes};
use crate::toolbox::Client;

const TESTS: &str = "\
import unittest, pytest
import pkg
def test_pass(own): assert own == 'x'
def test_fail(): assert pkg.half(2) == 2
def test_raise(): pkg.half(13)
def test_skip(): pytest.skip('x')
@pytest.mark.xfail
def test_xfail(): assert 0
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
@pytest.mark.parametrize('a', ['x y', '[b]', 'a::b'])
def test_p(a): pass
class TestC(object):
    class TestD(object):
        def test_in(self): pass
class TestCase(unittest.TestCase):
    @unittest.expectedFailure
    def test_a(self): pass
    def test_b(self): self.assertEqual(1, 2)
";

/// Loading takes time, and is recorded in a file beside the workspace.
const CONFTEST: &str = "\
import os, pytest, time
time.sleep(0.35)
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../loads'), 'a') as f:
    f.write('x')
def pytest_addoption(parser): parser.addoption('--own', default='x')
@pytest.fixture
def own(request): return request.config.getoption('--own')
";

fn check(name: &str, python: &str, packages: &[&str]) {
    let Some(base) = interpreter(python) else {
        return;
    };
    let mut project = Project::new(&[
        ("pkg/__init__.py", PKG),
        ("pytest.ini", "[pytest]\naddopts = -n 2\n"),
        ("tests/conftest.py", CONFTEST),
        ("tests/test_a.py", TESTS),
        ("tests/test_bad.py", "import none_such\n"),
    ]);
    project.config.python = environment(name, Some(&base), packages);
    let report = answer(&project.request(&["tests"])).report;
    use Outcome::{Error, Failed, Passed, Skipped, Xfailed, Xpassed};
    let expected = [
        ("test_pass", Passed),
        ("test_fail", Failed),
        ("test_raise", Failed),
        ("test_skip", Skipped),
        ("test_xfail", Xfailed),
        ("test_strict", Xpassed),
        ("test_setup", Error),
        ("test_teardown", Error),
        ("test_p[x y]", Passed),
        ("test_p[[b]]", Passed),
        ("test_p[a::b]", Passed),
        ("TestC::TestD::test_in", Passed),
        ("TestCase::test_a", Xpassed),
        ("TestCase::test_b", Failed),
    ];
    assert_eq!(outcomes(&report), expected, "{}", report.printed);
    assert_eq!(report.collection_errors.len(), 1);
    assert_eq!(report.collection_errors[0].id, "tests/test_bad.py");
    // xdist is installed, and its option did not cause a second run without it.
    assert!(report.printed.contains("xdist"), "{}", report.printed);

    let loads = || {
        std::fs::read(project.root().join("../loads"))
            .unwrap()
            .len()
    };
    let before = loads();
    let mut client = Client::start(&project);
    for _ in 0..3 {
        let (_, data) = client.call("run_pytest", &json!({ "tests": ["tests"] }));
        let report: TestReport = serde_json::from_value(data).unwrap();
        assert_eq!(outcomes(&report), expected, "{}", report.printed);
        assert_eq!(report.collection_errors.len(), 1);
    }
    // The package is loaded by a new process, and by the one from which the others are forked.
    assert_eq!(loads() - before, 2);
}

#[test]
fn oldest_versions() {
    let packages = ["pytest==3.0.7", "pytest-xdist==1.24.1", "setuptools<60"];
    check("3.6-pytest-3.0.7", "3.6", &packages);
}

#[test]
fn newest_versions() {
    check(
        "3.13-pytest-9.0.1",
        "3.13",
        &["pytest==9.0.1", "pytest-xdist==3.8.0"],
    );
}
