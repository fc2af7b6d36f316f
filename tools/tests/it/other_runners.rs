//! Tests of the other runners with the real programs: unittest, Django's runtests.py, SymPy's bin/test.

mod projects;
mod unittest;

use std::path::Path;
use std::process::Command;

use testwright_tools::config::RunnerKind;
use testwright_tools::coverage::Measure;
use testwright_tools::outcomes::report::{FailureClass, Outcome, Phase, TestReport};

use crate::project::{
    Project, answer, coverage_for, environment, outcomes, run, shared_folder, test,
};

fn unittest(files: &[(&str, &str)]) -> Project {
    let mut project = Project::new(files);
    project.config.runner.kind = RunnerKind::Unittest;
    project
}

fn measure(python: &Path, file: &str) -> Measure {
    Measure {
        package: coverage_for(python),
        files: vec![file.to_owned()],
        counted: false,
        until: Default::default(),
        whole: None,
    }
}

#[test]
fn runner_failures_are_reported() {
    let mut project = Project::new(&[
        ("sympy/__init__.py", "import none_such\n"),
        ("sympy/test_a.py", ""),
    ]);
    project.config.runner.kind = RunnerKind::Sympy;
    let report = answer(&project.request(&["sympy/test_a.py::test_x"])).report;
    let failure = report.tests[0].failure.clone().unwrap();
    assert_eq!(report.tests[0].outcome, Outcome::Error);
    assert_eq!(
        failure.missing_name, None,
        "it is the package that is broken"
    );
    assert_eq!(failure.exception, "ModuleNotFoundError");

    let mut project = unittest(&[("test_a.py", "")]);
    project.config.runner.options = vec!["--unknown".to_owned()];
    let request = serde_json::to_string(&project.request(&["test_a.py"])).unwrap();
    let output = crate::project::toolbox_test(&request);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}
