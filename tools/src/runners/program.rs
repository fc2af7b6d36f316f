//! Runners that are one Python program each, run once: unittest, Django's, SymPy's.
//!
//! They need no second process: unknown ids and modules that cannot be imported do not stop the other tests.
//! pytest's `-k` and the time limit for further tests are not supported.

use std::ffi::OsString;

use super::Run;
use super::recording::{MAX_PRINTED_BYTES, Recording};
use crate::config::RunnerKind;
use crate::error::{Result, ToolError};
use crate::outcomes::report::TestReport;
use crate::outcomes::{Classifier, Session, last_line, normalize, seconds};
use crate::process::Command;

const MODULE: &str = "testwright_program";
const RESULT: (&str, &str) = ("testwright_result", include_str!("unittest/result.py"));

/// Returns the name of a runner's folder, and its modules.
fn modules(kind: RunnerKind) -> (&'static str, Vec<(&'static str, &'static str)>) {
    let program = |text| (MODULE, text);
    match kind {
        RunnerKind::Django => {
            let text = include_str!("django/program.py");
            ("django", vec![program(text), RESULT])
        }
        RunnerKind::Sympy => ("sympy", vec![program(include_str!("sympy/program.py"))]),
        RunnerKind::Unittest | RunnerKind::Pytest => {
            let text = include_str!("unittest/program.py");
            ("unittest", vec![program(text), RESULT])
        }
    }
}

pub(super) fn run(run: &mut Run<'_>, kind: RunnerKind, ids: &[String]) -> Result<TestReport> {
    let (checkout, options) = (run.checkout, run.options);
    let (config, root) = (checkout.config(), checkout.root());
    let (name, modules) = modules(kind);
    let mut recording = Recording::new(config, root, name, &modules, ids, options)?;
    let program = recording.modules.join(format!("{MODULE}.py"));
    let mut args = vec![OsString::from(program)];
    args.extend(config.runner.options.iter().map(OsString::from));
    let mut command = Command::python(config, args, root);
    command.env = recording.environment()?;
    command.max_output_bytes = MAX_PRINTED_BYTES;
    let finished = run.process(command, &mut recording.report)?;
    let session = Session::new(recording.read());
    run.done.is_whole = session.is_whole();
    let printed = normalize(&finished.stdout.text(), root);
    if !session.started && !finished.timed_out() {
        let last_line = last_line(&printed).unwrap_or("it printed nothing");
        return Err(ToolError::Broken(format!(
            "the tests could not be run with {name}: {last_line}"
        )));
    }
    let classifier = Classifier {
        layout: checkout.layout(),
        root,
    };
    let mut report = session.report(ids, finished.ended, printed, &classifier);
    report.seconds = seconds(finished.took);
    Ok(report)
}
