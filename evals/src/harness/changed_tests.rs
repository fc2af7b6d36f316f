//! Detects patches with which tests pass whatever they check: tests that pass run again, changed so that they must fail.

use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::{File, FileKind, Files};
use testwright_tools::outcomes::file_of;
use testwright_tools::outcomes::report::{Outcome, TestReport, belongs_to_test};
use testwright_tools::python::change_to_fail;

use crate::large_stack::on_large_stack;

/// Reason for which outcomes are forged.
pub(super) const PASSES_CHANGED_TEST: &str =
    "a test passed with this patch although it was changed to fail";

/// Tests that are changed so that they must fail.
pub(super) struct ChangedTests {
    /// All files of the tests.
    pub files: Files,
    /// The changed tests, without parameters.
    pub ids: Vec<String>,
}

impl ChangedTests {
    /// Changes the tests with these ids. Tests that may end early are left out.
    pub(super) fn new(files: &Files, ids: &[String]) -> Result<ChangedTests, SandboxError> {
        on_large_stack(|| {
            let mut changed = ChangedTests {
                files: files.clone(),
                ids: Vec::new(),
            };
            for (path, file) in files {
                if let Some(file) = file
                    && file.kind != FileKind::Link
                    && path.ends_with(".py")
                {
                    changed.change_file(path, file, ids);
                }
            }
            changed
        })
    }

    fn change_file(&mut self, path: &str, file: &File, ids: &[String]) {
        if !ids.iter().any(|id| file_of(id) == path) {
            return;
        }
        let Ok(text) = std::str::from_utf8(&file.content) else {
            return;
        };
        let Some(other) = change_to_fail(text) else {
            return;
        };
        let tests = other.tests.iter().map(|test| format!("{path}::{test}"));
        let is_wanted = |test: &String| ids.iter().any(|id| belongs_to_test(id, test));
        self.ids.extend(tests.filter(is_wanted));
        let changed = File {
            content: other.text.into_bytes(),
            kind: file.kind,
        };
        self.files.insert(path.to_owned(), Some(changed));
    }

    /// Returns the changed tests that pass in a run.
    pub(super) fn passing(&self, report: &TestReport) -> Vec<String> {
        let is_changed = |id: &str| self.ids.iter().any(|test| belongs_to_test(id, test));
        let passing = report.tests.iter().filter(|test| {
            matches!(test.outcome, Outcome::Passed | Outcome::Xpassed) && is_changed(&test.id)
        });
        passing.map(|test| test.id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use testwright_tools::outcomes::report::TestResult;

    #[test]
    fn only_wanted_tests_run_again() {
        let source = "def test_a():\n    assert f() == 1\n\n\ndef test_b():\n    assert f() == 2\n";
        let file = |text: &str| {
            Some(File {
                content: text.as_bytes().to_vec(),
                kind: FileKind::Plain,
            })
        };
        let files = Files::from([
            ("tests/test_a.py".to_owned(), file(source)),
            ("tests/test_other.py".to_owned(), file(source)),
            ("tests/gone.py".to_owned(), None),
        ]);
        let ids = ["tests/test_a.py::test_b".to_owned()];
        let changed = ChangedTests::new(&files, &ids).unwrap();
        assert_eq!(changed.ids, ids);
        assert_eq!(changed.files.len(), 3);
        assert_eq!(changed.files["tests/test_other.py"], file(source));
        assert_ne!(changed.files["tests/test_a.py"], file(source));
        let report = |outcome| TestReport {
            tests: vec![
                TestResult::new("tests/test_a.py::test_a", Outcome::Passed),
                TestResult::new("tests/test_a.py::test_b", outcome),
            ],
            ..TestReport::default()
        };
        assert!(changed.passing(&report(Outcome::Failed)).is_empty());
        assert_eq!(changed.passing(&report(Outcome::Passed)), ids);
    }
}
