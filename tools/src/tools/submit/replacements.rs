//! Finds the code that failing contributed tests replace while they run. Only the reports on these tests name it.

use std::collections::{BTreeMap, BTreeSet};

use crate::outcomes::file_of;
use crate::outcomes::report::{TestReport, belongs_to_test};
use crate::python::{Module, own_names, replaced_code};
use crate::tools::submission::{Change, ContributedTest};
use crate::workspace::{FileChange, decode_source};

use super::failures::failing_ids;

/// Adds the replaced code to the contributed tests that fail in the report `old`.
pub(super) fn add_replaced_code(
    contributed: &mut [ContributedTest],
    old: &TestReport,
    changes: &[FileChange],
) {
    let failing = failing_ids(old, contributed);
    let mut names_by_path: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for test in contributed {
        let is_failing = failing.iter().any(|id| belongs_to_test(id, &test.id));
        if test.change == Change::Deleted || !is_failing {
            continue;
        }
        let path = file_of(&test.id);
        // Tests in other files, such as YAML, define no names.
        let mut changed_modules = changes.iter().filter(|change| change.path.ends_with(".py"));
        let module = changed_modules.find(|change| change.path == path);
        let names = names_by_path
            .entry(module.map_or("", |change| change.path.as_str()))
            .or_insert_with(|| match module.and_then(|change| change.now.as_deref()) {
                Some(bytes) => own_names(&Module::parse(decode_source(bytes))),
                None => BTreeSet::new(),
            });
        test.replaced_code = replaced_code(&test.source, names);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcomes::report::{Outcome, TestResult};

    #[test]
    fn only_failing_tests_name_replaced_code() {
        let test = |name: &str| ContributedTest {
            id: format!("t.py::{name}"),
            change: Change::Added,
            line: 1,
            source: format!(
                "def {name}(monkeypatch):\n    pkg.f = 1\n    Recorder.messages = []\n"
            ),
            replaced_code: Vec::new(),
        };
        let file = "import pkg\nclass Recorder:\n    messages = []\n";
        let change = FileChange {
            path: "t.py".to_owned(),
            change: Change::Added,
            base: None,
            now: Some(file.as_bytes().to_vec()),
            base_mode: None,
            mode: Some(0o100_644),
            oversized: None,
        };
        let old = TestReport {
            tests: vec![
                TestResult::new("t.py::test_a[1]", Outcome::Failed),
                TestResult::new("t.py::test_b", Outcome::Passed),
            ],
            ..TestReport::default()
        };
        let mut contributed = [test("test_a"), test("test_b")];
        add_replaced_code(&mut contributed, &old, &[change]);
        assert_eq!(contributed[0].replaced_code, ["pkg.f"]);
        assert!(contributed[1].replaced_code.is_empty());
    }
}
