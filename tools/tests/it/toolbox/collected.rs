//! Tests that the repository's own runner collects, whatever their files are called.

use serde_json::{Value, json};

use super::Client;
use crate::project::{Project, environment};

/// Returns the answer to `submit` after a shell command.
fn submitted(project: &Project, prepare: &str) -> Value {
    let mut client = Client::start(project);
    client.call("shell", &json!({ "command": prepare }));
    let (text, _) = client.call("run_pytest", &json!({}));
    assert!(text.contains("1 failed"), "{text}");
    client.call("submit", &json!({})).1
}

/// Checks that nothing was reverted, and that this is the only contributed test, which fails.
fn check(data: &Value, id: &str) {
    let files = data["files"].as_array().unwrap();
    assert!(files.iter().all(|file| file["kept"] == true), "{files:?}");
    assert_eq!(data["problems"], json!([]));
    assert_eq!(data["contributed"][0]["id"], id, "{}", data["contributed"]);
    assert_eq!(data["contributed"].as_array().unwrap().len(), 1);
    let tests = data["old"]["tests"].as_array().unwrap();
    let own = tests.iter().find(|test| test["id"] == id).unwrap();
    assert_eq!(own["outcome"], "failed");
    let reruns = data["reruns"].as_array().unwrap();
    let orders: Vec<&str> = reruns
        .iter()
        .filter_map(|rerun| rerun["order"].as_str())
        .collect();
    assert_eq!(orders[..3], ["given", "reversed", "alone"]);
}

const PKG: &str = "def half(n):\n    return n // 2 if n > 0 else 1\n";

#[test]
fn configured_files_and_functions_are_tests() {
    let old = "import pkg\n\ndef check_old():\n    assert pkg.half(4) == 2\n";
    let options = "python_files = check_*.py\npython_functions = check_*\n";
    for (config, section) in [
        ("pytest.ini", "[pytest]\n"),
        (".pytest.ini", "[pytest]\n"),
        ("tox.ini", "[pytest]\n"),
        ("setup.cfg", "[tool:pytest]\n"),
        ("lib/pytest.ini", "[pytest]\n"),
    ] {
        let text = format!("{section}{options}");
        let folder = if config.contains('/') {
            "lib/checks"
        } else {
            "checks"
        };
        let path = format!("{folder}/check_a.py");
        let project = Project::new(&[
            ("pkg.py", PKG),
            (config, text.as_str()),
            (path.as_str(), old),
        ]);
        let prepare =
            format!("printf '\\ndef check_new():\\n    assert pkg.half(0) == 0\\n' >> {path}");
        check(
            &submitted(&project, &prepare),
            &format!("{path}::check_new"),
        );
    }
}

#[test]
fn tests_py_of_applications_is_a_test_file() {
    let old = "import unittest, pkg\n\nclass HalfTests(unittest.TestCase):\n    def test_old(self):\n        self.assertEqual(pkg.half(4), 2)\n";
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        ("pkg/shop/__init__.py", ""),
        ("pkg/shop/tests.py", old),
    ]);
    let prepare = "printf '\\n    def test_new(self):\\n        self.assertEqual(pkg.half(0), 0)\\n' >> pkg/shop/tests.py";
    check(
        &submitted(&project, prepare),
        "pkg/shop/tests.py::HalfTests::test_new",
    );
}

#[test]
fn blocks_of_pytest_describe_hold_tests() {
    let old =
        "import pkg\n\ndef describe_half():\n    def of_four():\n        assert pkg.half(4) == 2\n";
    let mut project = Project::new(&[("pkg.py", PKG), ("tests/test_a.py", old)]);
    project.config.python = environment("describe", None, &["pytest==8.3.5", "pytest-describe"]);
    let prepare =
        "printf '\\n    def of_zero():\\n        assert pkg.half(0) == 0\\n' >> tests/test_a.py";
    check(
        &submitted(&project, prepare),
        "tests/test_a.py::describe_half::of_zero",
    );
}

/// Collects YAML files by themselves, and the files of a folder for a test class, as mypy does.
const CONFTEST: &str = "import pathlib, pytest, pkg
class Case(pytest.Item):
    def __init__(self, line, **more):
        super().__init__(**more)
        self.line = line
    def runtest(self):
        number, expected = self.line.split()
        assert pkg.half(int(number)) == int(expected)
class Cases(pytest.File):
    def collect(self):
        for line in self.path.read_text().splitlines():
            yield Case.from_parent(self, name='half-' + line.split()[0], line=line)
def pytest_collect_file(parent, file_path):
    if file_path.suffix == '.yaml':
        return Cases.from_parent(parent, path=file_path)
class Suite(pytest.Class):
    def collect(self):
        for path in sorted(pathlib.Path('data').glob('check-*.test')):
            for line in path.read_text().splitlines():
                yield Case.from_parent(self, name=path.name + ':' + line.split()[0], line=line)
def pytest_pycollect_makeitem(collector, name, obj):
    if name == 'DataSuite':
        return Suite.from_parent(collector, name=name)
";

#[test]
fn files_that_plugins_collect_hold_tests() {
    let suite = "FILES = 'check-*.test'\nclass DataSuite: pass\n";
    let project = || {
        Project::new(&[
            ("pkg.py", PKG),
            ("conftest.py", CONFTEST),
            ("tests/cases.yaml", "4 2\n"),
            ("data/check-a.test", "4 2\n"),
            ("tests/test_data.py", suite),
        ])
    };
    for (prepare, id) in [
        ("echo '0 0' >> tests/cases.yaml", "tests/cases.yaml::half-0"),
        ("echo '0 0' > tests/new.yaml", "tests/new.yaml::half-0"),
        ("echo '0 0' > cases.yaml", "cases.yaml::half-0"),
    ] {
        check(&submitted(&project(), prepare), id);
    }
    let prepare = "echo '0 0' >> data/check-a.test";
    let data = submitted(&project(), prepare);
    assert_eq!(
        data["contributed"][0]["id"],
        "tests/test_data.py::DataSuite::check-a.test:0"
    );
}

#[test]
fn doctests_in_text_files_are_tests() {
    let ini = "[pytest]\naddopts = --doctest-glob=*.rst\n";
    let project = Project::new(&[
        ("pkg.py", PKG),
        ("pytest.ini", ini),
        ("docs/usage.rst", ">>> import pkg\n>>> pkg.half(4)\n2\n"),
    ]);
    let prepare = "printf '>>> pkg.half(0)\\n0\\n' >> docs/usage.rst";
    check(&submitted(&project, prepare), "docs/usage.rst::usage.rst");
}
