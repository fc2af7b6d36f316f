//! Measuring does not affect the tests, and the repository's settings do not affect measuring.

use super::*;

#[test]
fn outcomes_do_not_depend_on_measuring() {
    let project = project();
    let mut request = request(&project, &["tests"], &["pkg/__init__.py"]);
    request.options.reversed = true;
    let with = answer(&request);
    request.coverage = None;
    // The request needs no archive of the base commit.
    std::fs::remove_file(&project.config.base_archive).unwrap();
    let without = answer(&request);
    assert!(with.coverage.is_some() && without.coverage.is_none());
    let outcomes = |answer: &TestRunResult| -> Vec<(String, Outcome)> {
        let tests = answer.report.tests.iter();
        tests.map(|t| (t.id.clone(), t.outcome)).collect()
    };
    let expected = [
        ("tests/test_a.py::test_fails", Outcome::Failed),
        ("tests/test_a.py::test_cached", Outcome::Passed),
        ("tests/test_a.py::test_plain", Outcome::Passed),
    ];
    assert_eq!(outcomes(&with), expected.map(|(id, o)| (id.to_owned(), o)));
    assert_eq!(outcomes(&with), outcomes(&without));
    let failure = |answer: &TestRunResult| answer.report.tests[0].failure.clone();
    assert_eq!(failure(&with), failure(&without));
    // The toolbox leaves nothing in the tree.
    let mut names: Vec<_> = std::fs::read_dir(project.root())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["pkg", "tests"]);
}

#[test]
fn tests_cannot_see_the_measuring() {
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        (
            "tests/test_a.py",
            "\
import json, os, subprocess, sys
import pkg
CHILD = '''
import os, sys
print(sys.path, sorted(os.environ), [m for m in sys.modules if m.startswith('coverage')], sys.argv, os.listdir('.'))
'''
def test_dump():
    pkg.plain(1)
    facts = {
        'path': [p for p in sys.path], 'argv': sys.argv, 'environ': sorted(os.environ),
        'coverage': [m for m in sys.modules if m.startswith('coverage')],
        'main': [sys.modules['__main__'].__name__, sys.modules['__main__'].__spec__.name],
        'child': subprocess.check_output([sys.executable, '-c', CHILD]).decode(),
    }
    with open(os.path.join(os.environ['OUT'], 'facts'), 'w') as out:
        json.dump(facts, out)
",
        ),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let mut request = request(&project, &["tests"], &["pkg/__init__.py"]);
    let out = folder.path().display().to_string();
    request.config.env.insert("OUT".to_owned(), out);
    let facts = |request: &Request| -> serde_json::Value {
        let answer = answer(request);
        assert_eq!(
            answer.report.tests[0].outcome,
            Outcome::Passed,
            "{answer:#?}"
        );
        assert!(answer.coverage.is_none_or(|c| c.problem.is_none()));
        serde_json::from_slice(&std::fs::read(folder.path().join("facts")).unwrap()).unwrap()
    };
    let with = facts(&request);
    request.coverage = None;
    assert_eq!(with, facts(&request));
    assert_eq!(with["coverage"], json!([]));
}

#[test]
fn repository_coverage_settings_are_ignored() {
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        ("tests/test_a.py", TESTS),
        (
            "setup.cfg",
            "[coverage:run]\nparallel = true\nbranch = true\nomit = pkg/*\nsource = nothing\n\
             [coverage:report]\nexclude_lines = .*\n",
        ),
        (
            ".coveragerc",
            "[run]\nparallel = true\nomit = *\nplugins = none_such\n",
        ),
    ]);
    let mut request = request(
        &project,
        &["tests/test_a.py::test_plain"],
        &["pkg/__init__.py"],
    );
    for (name, value) in [("COVERAGE_FILE", "/nowhere/x"), ("COVERAGE_RCFILE", "none")] {
        request.config.env.insert(name.to_owned(), value.to_owned());
    }
    let coverage = answer(&request).coverage.unwrap();
    assert_eq!(coverage.problem, None);
    assert!(coverage.files["pkg/__init__.py"].executed.contains(&5));
    assert!(!coverage.files["pkg/__init__.py"].executed.contains(&16));
    assert!(!project.root().join(".coverage").exists());
}

#[test]
fn pytest_cov_does_not_interfere() {
    let needed = ["pytest==8.3.5", "pytest-cov==5.0.0", "coverage==7.4.4"];
    let python = environment("pytest-8.3.5-cov", None, &needed);
    let own = "import coverage\ndef test_own(): assert coverage.__version__ == '7.4.4'\n";
    let mut project = Project::new(&[
        ("pkg/__init__.py", PKG),
        ("tests/test_a.py", TESTS),
        ("tests/test_own.py", own),
        (
            "setup.cfg",
            "[tool:pytest]\naddopts = --cov=pkg --cov-report=term --cov-fail-under=100\n",
        ),
    ]);
    project.config.python.clone_from(&python);
    let ids = ["tests/test_a.py::test_plain", "tests/test_own.py"];
    let mut request = request(&project, &ids, &["pkg/__init__.py"]);
    request.coverage.as_mut().unwrap().package = coverage_for(&python);
    let answer = answer(&request);
    let outcomes: Vec<Outcome> = answer.report.tests.iter().map(|t| t.outcome).collect();
    assert_eq!(outcomes, [Outcome::Passed; 2], "{:#?}", answer.report);
    assert_eq!(answer.report.exit_code, Some(0));
    let coverage = answer.coverage.unwrap();
    assert_eq!(coverage.problem, None);
    assert!(coverage.files["pkg/__init__.py"].executed.contains(&5));
}

#[test]
fn pytest_can_be_code_under_test() {
    // A copy of pytest's own code in the workspace, as in its repository.
    let code = "import os, _pytest; print(os.path.dirname(os.path.dirname(_pytest.__file__)))";
    let output = Command::new(python()).args(["-c", code]).output().unwrap();
    let site = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    let project = Project::new(&[("tests/test_a.py", "def test_x(): pass\n")]);
    let source = project.root().join("src");
    std::fs::create_dir(&source).unwrap();
    for package in ["pytest", "_pytest"] {
        let copied = Command::new("cp")
            .arg("-r")
            .args([site.join(package), source.join(package)])
            .status();
        assert!(copied.unwrap().success());
    }
    let file = "src/_pytest/main.py";
    let mut request = request(&project, &["tests"], &[file]);
    let path = source.display().to_string();
    request.config.env.insert("PYTHONPATH".to_owned(), path);
    let answer = answer(&request);
    assert_eq!(answer.report.tests[0].outcome, Outcome::Passed);
    let coverage = answer.coverage.unwrap();
    assert_eq!(coverage.problem, None);
    let text = std::fs::read_to_string(project.root().join(file)).unwrap();
    let line = |start: &str| {
        let at = text.lines().position(|line| line.starts_with(start));
        u32::try_from(at.unwrap() + 1).unwrap()
    };
    let (statements, executed) = lines(&coverage, file);
    // A line of the module itself, which is imported long before any plugin, and a line inside a function.
    for line in [
        line("def pytest_addoption"),
        line("def pytest_cmdline_main") + 1,
    ] {
        assert!(
            statements.contains(&line) && executed.contains(&line),
            "{line}"
        );
    }
    assert!(executed.len() < statements.len());
}
