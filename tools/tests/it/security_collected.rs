//! Files that the repository's runner collects are tests, but code under test never becomes one.

use serde_json::{Value, json};

use crate::project::Project;
use crate::toolbox::Client;

/// Returns the reverted files and the contributed tests after a shell command.
fn submitted(files: &[(&str, &str)], prepare: &str) -> (Vec<String>, Vec<String>) {
    let project = Project::new(files);
    let mut client = Client::start(&project);
    client.call("shell", &json!({ "command": prepare }));
    let (_, data) = client.call("submit", &json!({}));
    let texts = |list: &Value, key: &str, is_wanted: &dyn Fn(&Value) -> bool| -> Vec<String> {
        let list = list.as_array().unwrap().iter().filter(|one| is_wanted(one));
        list.map(|one| one[key].as_str().unwrap().to_owned())
            .collect()
    };
    let dropped = texts(&data["files"], "path", &|file| file["kept"] == false);
    (dropped, texts(&data["contributed"], "id", &|_| true))
}

const CODE: &str =
    "def half(n):\n    \"\"\"\n    >>> half(4)\n    2\n    \"\"\"\n    return n // 2\n";
const TESTS: &str = "import pkg\n\ndef test_old():\n    assert pkg.half(4) == 2\n";
/// Adds a test to the tests, which does not hide that code is changed too.
const NEW: &str =
    "printf '\\ndef test_new():\\n    assert pkg.half(3) == 2\\n' >> tests/test_a.py; ";

#[test]
fn broad_patterns_make_no_code_a_test() {
    for ini in [
        "[pytest]\npython_files = *.py\n",
        "[pytest]\npython_files = *.py\ntestpaths = .\n",
        "[pytest]\npython_files = *.py\ntestpaths = pkg tests\n",
        "[pytest]\naddopts = --doctest-modules\ntestpaths = pkg tests\n",
        "[pytest]\naddopts = -o python_files=[a-z]*.py\n",
    ] {
        let files = [
            ("pytest.ini", ini),
            ("pkg/__init__.py", CODE),
            (
                "pkg/more.py",
                "def test_connection(host):\n    return host\n",
            ),
            ("tests/test_a.py", TESTS),
        ];
        let prepare =
            format!("{NEW}echo 'x = 1' | tee -a pkg/__init__.py pkg/more.py > pkg/new.py");
        let (dropped, contributed) = submitted(&files, &prepare);
        assert_eq!(
            dropped,
            ["pkg/__init__.py", "pkg/more.py", "pkg/new.py"],
            "{ini}"
        );
        assert_eq!(contributed, ["tests/test_a.py::test_new"]);
    }
}

#[test]
fn code_with_names_of_tests_is_reverted() {
    let ini = "[pytest]\npython_files = check_*.py\npython_functions = check_*\n";
    let entry =
        "[project]\nname = 'pkg'\n[project.scripts]\nlinks = 'pkg.check_links:check_links'\n";
    let check = "def check_links():\n    return 1\n";
    let files = [
        ("pytest.ini", ini),
        ("pyproject.toml", entry),
        (
            "pkg/__init__.py",
            "from pkg.check_input import check_input\n",
        ),
        ("pkg/check_input.py", "def check_input():\n    return 1\n"),
        ("pkg/check_links.py", check),
        ("pkg/check_data.py", "def read():\n    return 1\n"),
        (
            "pkg/tests.py",
            "def test_odd(value):\n    return value % 2\n",
        ),
        (
            "checks/check_a.py",
            "import pkg\n\ndef check_old():\n    assert pkg.check_input() == 1\n",
        ),
    ];
    let prepare = "echo 'x = 1' | tee -a pkg/*.py; printf '\\ndef check_new():\\n    assert pkg.check_input() == 2\\n' >> checks/check_a.py";
    let (dropped, contributed) = submitted(&files, prepare);
    let expected = [
        "pkg/__init__.py",
        "pkg/check_data.py",
        "pkg/check_input.py",
        "pkg/check_links.py",
        "pkg/tests.py",
    ];
    assert_eq!(dropped, expected);
    assert_eq!(contributed, ["checks/check_a.py::check_new"]);
}

#[test]
fn collected_data_of_packages_is_reverted() {
    let files = [
        (
            "pytest.ini",
            "[pytest]\naddopts = --doctest-glob=*.txt --doctest-glob=*.rst\n",
        ),
        ("pkg/__init__.py", CODE),
        ("pkg/words.txt", ">>> 1\n1\n"),
        ("docs/usage.rst", ">>> import pkg\n>>> pkg.half(4)\n2\n"),
        ("notes.md", "x\n"),
        ("tests/test_a.py", TESTS),
    ];
    let prepare =
        "printf '\\n>>> 1\\n2\\n' | tee -a pkg/words.txt docs/usage.rst notes.md > docs/new.rst";
    let (dropped, contributed) = submitted(&files, prepare);
    assert_eq!(dropped, ["notes.md", "pkg/words.txt"]);
    assert_eq!(
        contributed,
        ["docs/new.rst::new.rst", "docs/usage.rst::usage.rst"]
    );
}

/// The base commit decides what is collected, not settings or plugins that are part of the change.
#[test]
fn changed_plugins_collect_no_further_files() {
    let files = [
        ("pkg/__init__.py", CODE),
        ("data/a.yaml", "a: 1\n"),
        ("tests/test_a.py", TESTS),
    ];
    let conftest = r"import pytest
class Item(pytest.Item):
    def runtest(self): assert 0
class File(pytest.File):
    def collect(self): yield Item.from_parent(self, name='a')
def pytest_collect_file(parent, file_path):
    if file_path.suffix == '.yaml': return File.from_parent(parent, path=file_path)
";
    let prepare = format!(
        "{NEW}echo 'b: 2' | tee -a data/a.yaml > data/b.yaml; cat > data/conftest.py <<'END'\n{conftest}END\n\
         cp data/conftest.py conftest.py; printf '[pytest]\\naddopts = --doctest-glob=*.yaml\\n' > pytest.ini"
    );
    let (dropped, contributed) = submitted(&files, &prepare);
    assert!(
        dropped.contains(&"data/a.yaml".to_owned()) && dropped.contains(&"data/b.yaml".to_owned()),
        "{dropped:?}"
    );
    assert_eq!(contributed, ["tests/test_a.py::test_new"]);
}
