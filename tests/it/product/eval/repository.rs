//! A small repository with a bug, and its dataset.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

/// Old code: `add` is wrong for negative numbers, and `total` does not exist yet.
const OLD: &str = "def add(a, b):\n    if b < 0:\n        return a + b + 1\n    return a + b\n\n\ndef twice(a):\n    return add(a, a)\n";
const NEW: &str = "def add(a, b):\n    return a + b\n\n\ndef twice(a):\n    return add(a, a)\n\n\ndef total(numbers):\n    result = 0\n    for number in numbers:\n        result = add(result, number)\n    return result\n";
pub(crate) const TESTS: &str = "import pkg.calc\nfrom pkg.calc import add, twice\n\nSEEN = []\n\n\ndef test_add():\n    SEEN.append(1)\n    assert add(1, 2) == 3\n\n\ndef test_twice():\n    assert twice(2) == 4\n";
/// A test to append to [`TESTS`]. It fails on the old code for the reason the issue states.
pub(crate) const GOOD: &str = "\n\ndef test_negative():\n    assert add(1, -2) == -1\n";

/// The repository's own recipe, which installs only pytest.
const RECIPE: &str = "[environment]\npython = \"3.11\"\nexclude-newer = \"2024-10-01\"\nrequirements = [\"pytest==8.3.3\"]\ninstall = []\n";

pub(crate) struct Repository {
    pub folder: PathBuf,
}

impl Repository {
    /// Creates the repository; `after_install` is a shell command for its environment.
    pub(crate) fn new(folder: PathBuf, after_install: Option<&str>) -> Repository {
        let repository = Repository { folder };
        let recipe = match after_install {
            Some(command) => format!("{RECIPE}after-install = [{}]\n", json!(command)),
            None => RECIPE.to_owned(),
        };
        repository.write("testwright.toml", recipe.as_bytes());
        repository.write("pkg/__init__.py", b"");
        repository.write("pkg/calc.py", OLD.as_bytes());
        repository.write("pytest.ini", b"[pytest]\npythonpath = .\n");
        repository.write("tests/test_calc.py", TESTS.as_bytes());
        repository.write(
            "tests/test_other.py",
            b"def test_other():\n    assert True\n",
        );
        repository.git(&["init", "-q", "-b", "main"]);
        repository.git(&["add", "-A"]);
        repository.git(&["commit", "-qm", "Begin"]);
        repository
    }

    pub(crate) fn write(&self, path: &str, content: &[u8]) {
        let path = self.folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn git(&self, words: &[&str]) -> Vec<u8> {
        let output = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
            .args(["-c", "core.autocrlf=false", "-c", "commit.gpgsign=false"])
            .args(words)
            .current_dir(&self.folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_DATE", "2024-01-01T00:00:00Z")
            .env("GIT_COMMITTER_DATE", "2024-01-01T00:00:00Z")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {words:?}: {output:?}");
        output.stdout
    }

    /// Returns the `git diff` of an edit, and reverts the edit.
    pub(crate) fn patch(&self, edit: impl FnOnce(&Repository)) -> String {
        edit(self);
        self.git(&["add", "-A"]);
        let patch = self.git(&["diff", "--cached", "--binary", "HEAD"]);
        self.git(&["reset", "-q", "--hard", "HEAD"]);
        String::from_utf8(patch).unwrap()
    }

    /// Returns a patch that appends tests to the existing ones.
    pub(crate) fn append_tests_patch(&self, tests: &str) -> String {
        self.patch(|r| r.write("tests/test_calc.py", format!("{TESTS}{tests}").as_bytes()))
    }

    /// Returns an instance of a dataset whose golden test is [`GOOD`].
    pub(crate) fn instance(&self, id: &str, issue: &str) -> Value {
        let commit = String::from_utf8(self.git(&["rev-parse", "HEAD"])).unwrap();
        json!({
            "instance_id": id,
            "repo": name(&self.folder),
            "base_commit": commit.trim(),
            "problem_statement": issue,
            "patch": self.patch(|r| r.write("pkg/calc.py", NEW.as_bytes())),
            "test_patch": self.append_tests_patch(GOOD),
            "version": "1.0",
            "FAIL_TO_PASS": ["tests/test_calc.py::test_negative"],
            "PASS_TO_PASS": "[\"tests/test_calc.py::test_add\", \"tests/test_calc.py::test_twice\"]",
        })
    }
}

/// Returns `owner/name` of a folder `owner+name`.
fn name(path: &Path) -> String {
    path.file_name()
        .unwrap()
        .to_string_lossy()
        .replace('+', "/")
}

/// Writes records as JSON lines.
pub(crate) fn lines(path: &Path, records: &[Value]) {
    let lines: Vec<String> = records.iter().map(Value::to_string).collect();
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
}
