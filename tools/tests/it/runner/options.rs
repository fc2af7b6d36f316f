//! Tests with the repository's own configuration.

use testwright_tools::outcomes::report::Outcome;

use crate::project::{self, Project, test};

#[test]
fn options_of_absent_plugins_are_dropped() {
    let test = "import pytest\n@pytest.mark.slow\ndef test_x(): pass\n";
    for ini in [
        "[pytest]\naddopts = --cov=pkg -n 4\nmarkers = slow\n",
        "[pytest]\naddopts = -p pytest_of_nobody\nmarkers = slow\n",
    ] {
        let project = Project::new(&[("pytest.ini", ini), ("tests/test_a.py", test)]);
        let report = project.run(&["tests/test_a.py"]);
        assert_eq!(report.tests.len(), 1, "{}", report.printed);
        assert_eq!(report.tests[0].outcome, Outcome::Passed);
        assert!(
            report
                .printed
                .starts_with("[run without the repository's addopts"),
            "{}",
            report.printed
        );
    }
}

#[test]
fn tests_run_from_folder_of_project() {
    let test = "def test_x(): assert open('data.txt').read() == NAME\n";
    let test = |name: &str| test.replace("NAME", &format!("{name:?}"));
    let conftest = "import pytest\n@pytest.fixture(autouse=True)\ndef same(): pass\n";
    let [root, a, b] = ["root", "a", "b"].map(test);
    let mut project = Project::new(&[
        ("data.txt", "root"),
        ("tests/test_x.py", &root),
        ("packages/a/data.txt", "a"),
        ("packages/a/tests/test_x.py", &a),
        ("packages/a/tests/conftest.py", conftest),
        ("packages/b/data.txt", "b"),
        ("packages/b/tests/test_x.py", &b),
        ("packages/b/tests/conftest.py", conftest),
    ]);
    project.config.runner.projects = ["packages/a", "packages/b"].map(str::to_owned).into();
    let ids = [
        "packages/a/tests/test_x.py::test_x",
        "packages/b",
        "tests/test_x.py",
        "packages/a/tests/test_x.py::test_none",
    ];
    let report = project.run_with(&ids, |options| {
        options.first = vec!["packages/b/tests/test_x.py::test_x".to_owned()];
    });
    for file in [
        "tests/test_x.py",
        "packages/a/tests/test_x.py",
        "packages/b/tests/test_x.py",
    ] {
        let result = project::test(&report, &format!("{file}::test_x"));
        assert_eq!(result.outcome, Outcome::Passed, "{result:?}");
    }
    assert_eq!(report.not_found, [ids[3]]);
}

#[test]
fn stopping_and_selecting_options_are_overridden() {
    let ini = "[pytest]\naddopts = -x --maxfail=1 --strict -p no:doctest --lf --stepwise-skip\nmarkers =\n    slow: takes long\n";
    let test = "def test_a(): assert 0\ndef test_b(): assert 0\ndef test_c(): pass\n";
    let project = Project::new(&[("tox.ini", ini), ("tests/test_a.py", test)]);
    for _ in 0..2 {
        let report = project.run(&["tests/test_a.py"]);
        let outcomes: Vec<Outcome> = report.tests.iter().map(|t| t.outcome).collect();
        assert_eq!(
            outcomes,
            [Outcome::Failed, Outcome::Failed, Outcome::Passed],
            "{}",
            report.printed
        );
    }
    assert!(!project.root().join(".pytest_cache").exists());
}

#[test]
fn cache_folder_exists_from_start() {
    let conftest = "import os\ndef pytest_runtest_setup(item):\n    \
                    os.mkdir(os.path.join(str(item.config.getini('cache_dir')), 'mine'))\n";
    let project = Project::new(&[
        ("tests/conftest.py", conftest),
        ("tests/test_a.py", "def test_a(): pass\n"),
    ]);
    let report = project.run(&["tests/test_a.py"]);
    assert_eq!(report.tests[0].outcome, Outcome::Passed, "{report:?}");
}

#[test]
fn deselected_tests_are_skipped_with_reason() {
    let ini = "[pytest]\naddopts = -m \"not slow\"\nmarkers =\n    slow: takes long\n";
    let test_file = "import pytest\n@pytest.mark.slow\ndef test_a(): pass\ndef test_b(): pass\n";
    let project = Project::new(&[("tox.ini", ini), ("tests/test_a.py", test_file)]);
    let report = project.run(&["tests/test_a.py::test_a"]);
    let result = test(&report, "tests/test_a.py::test_a");
    assert_eq!(result.outcome, Outcome::Skipped);
    assert!(result.captured.contains("deselected"));
    let report = project.run_with(&["tests/test_a.py"], |o| o.keyword = Some("test_b".into()));
    assert_eq!(report.tests.len(), 1);
}

#[test]
fn ids_are_relative_to_workspace() {
    let project = Project::new(&[
        ("sub/tests/pytest.ini", "[pytest]\n"),
        ("sub/tests/test_a.py", "def test_a(): assert 0\n"),
    ]);
    let report = project.run(&["sub/tests/test_a.py::test_a"]);
    assert_eq!(
        test(&report, "sub/tests/test_a.py::test_a").outcome,
        Outcome::Failed
    );
}
