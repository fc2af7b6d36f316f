//! Incomplete figures have a problem; invalid requests and broken environments are errors.

use super::*;

#[test]
fn incomplete_figures_have_a_problem() {
    for (body, problem, outcome) in [
        (
            "os._exit(3)",
            "the process ended with exit status 3 before its coverage was written",
            Outcome::Absent,
        ),
        (
            "os.kill(os.getpid(), 9)",
            "the process was ended by signal 9 before its coverage was written",
            Outcome::Absent,
        ),
        (
            "if os.fork() == 0: raise RuntimeError('the child runs on')\n    os.wait(); os._exit(3)",
            "the process ended with exit status 3 before its coverage was written",
            Outcome::Absent,
        ),
        (
            "sys.settrace(None)",
            "the trace function was replaced (sys.settrace in test_a.py); \
             the trace function was not there any more at the end",
            Outcome::Passed,
        ),
        (
            "old = sys.gettrace(); sys.settrace(lambda *a: None); pkg.plain(1); sys.settrace(old)",
            "the trace function was replaced (sys.settrace in test_a.py)",
            Outcome::Passed,
        ),
    ] {
        let tests = format!("import os, sys\nimport pkg\ndef test_x():\n    {body}\n");
        let project = Project::new(&[("pkg/__init__.py", PKG), ("tests/test_a.py", &tests)]);
        let answer = measured(&project, &["tests"], &["pkg/__init__.py"]);
        assert_eq!(answer.report.tests[0].outcome, outcome, "{body}");
        let coverage = answer.coverage.unwrap();
        // From 3.12 on, nothing depends on the trace function.
        let problem = Some(problem).filter(|_| !(is_monitored() && body.contains("settrace")));
        assert_eq!(coverage.problem.as_deref(), problem, "{body}");
        assert!(coverage.files.contains_key("pkg/__init__.py"));
    }
}

#[test]
fn deadline_makes_figures_incomplete() {
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        (
            "tests/test_a.py",
            "import time\ndef test_x(): pass\ndef test_y(): time.sleep(100)\n",
        ),
    ]);
    let mut request = request(&project, &["tests"], &["pkg/__init__.py"]);
    request.seconds = 8;
    let answer = answer(&request);
    assert!(answer.report.timed_out);
    assert_eq!(answer.report.tests[0].outcome, Outcome::Passed);
    assert_eq!(
        answer.coverage.unwrap().problem.as_deref(),
        Some("the deadline passed before its coverage was written")
    );
}

#[test]
fn unparsable_files_and_missing_coverage_are_reported() {
    let project = Project::new(&[
        ("pkg/__init__.py", PKG),
        ("pkg/bad.py", "def f(:\n"),
        ("tests/test_a.py", TESTS),
    ]);
    let ids = ["tests/test_a.py::test_plain"];
    let answer_ = measured(&project, &ids, &["pkg/bad.py", "pkg/__init__.py"]);
    let coverage = answer_.coverage.unwrap();
    let problem = coverage.problem.as_deref().unwrap();
    assert!(
        problem.starts_with("pkg/bad.py cannot be parsed: "),
        "{problem}"
    );
    assert!(!problem.contains('\n'));
    assert!(coverage.files["pkg/__init__.py"].executed.contains(&5));
    assert!(coverage.files["pkg/bad.py"].statements.is_empty());

    let mut request = request(&project, &ids, &["pkg/__init__.py"]);
    request.coverage.as_mut().unwrap().package = "/nowhere".into();
    let answer = answer(&request);
    assert_eq!(test(&answer.report, ids[0]).outcome, Outcome::Passed);
    let problem = answer.coverage.unwrap().problem.unwrap();
    assert!(
        problem.starts_with("coverage.py could not be started: ModuleNotFoundError"),
        "{problem}"
    );
}

#[test]
fn invalid_requests_have_exit_codes() {
    let project = project();
    let good = request(&project, &["tests"], &[]);
    let code = |request: &Request| {
        let output = toolbox_test(&serde_json::to_string(request).unwrap());
        assert!(output.stdout.is_empty() || output.status.success());
        output.status.code()
    };
    assert_eq!(toolbox_test("{}").status.code(), Some(2));
    assert_eq!(toolbox_test("").status.code(), Some(2));
    for ids in ["../x.py", "/etc/passwd", ""] {
        let mut request = good.clone();
        request.ids = vec![ids.to_owned()];
        assert_eq!(code(&request), Some(2), "{ids:?}");
    }
    let mut request = good.clone();
    request.coverage.as_mut().unwrap().files = vec!["../x.py".to_owned()];
    assert_eq!(code(&request), Some(2));
    let mut request = good.clone();
    request.seconds = u64::MAX;
    assert_eq!(code(&request), Some(0));
    let mut request = good.clone();
    request.config.workspace = project.root().join("nowhere");
    assert_eq!(code(&request), Some(3));
    let mut request = good.clone();
    request.config.python = "/nowhere/python".into();
    assert_eq!(code(&request), Some(3));
    let bare = tempfile::tempdir().unwrap();
    let status = uv()
        .args(["venv", "--quiet"])
        .arg(bare.path().join("venv"))
        .status();
    assert!(status.unwrap().success());
    for files in [[].as_slice(), &["pkg/__init__.py".to_owned()]] {
        // The environment lacks pytest, and the coverage package may be for another Python version.
        let mut request = good.clone();
        request.config.python = bare.path().join("venv/bin/python");
        request.coverage.as_mut().unwrap().files = files.to_vec();
        assert_eq!(code(&request), Some(3), "no pytest");
    }
}
