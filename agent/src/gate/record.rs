//! Rules about the recorded failures: they must be those of the test itself.

use testwright_tools::outcomes::file_of;
use testwright_tools::outcomes::report::{Failure, FailureClass, Frame, Place, belongs_to_test};
use testwright_tools::python::constant_failure;
use testwright_tools::tools::submission::{ContributedTest, Submission};

use super::case::{Case, contributed, is_in_module};

/// Checks that the record shows lines that the files have. A forged record does not.
pub(super) fn holds_lines_of_files(case: &Case<'_>, wrong: &mut dyn FnMut(String)) {
    for frame in &case.submission.invented_frames {
        let (id, what) = frame.split_once(": ").unwrap_or(("a test", frame.as_str()));
        wrong(format!(
            "the record of {id} shows a line that its file does not have: {what}. Something in the tests interferes with \
             how outcomes are recorded, or changes files that the failure passes through."
        ));
    }
}

/// Checks that no hook of the repository makes the tests fail. A helper that the test itself calls may do so.
pub(super) fn fails_in_own_code(case: &Case<'_>, wrong: &mut dyn FnMut(String)) {
    for test in case.failing {
        let Some(failure) = failure(case.submission, &test.id) else {
            continue;
        };
        let own_file = file_of(&test.id);
        let Some(file) = hook_file(failure, own_file) else {
            continue;
        };
        let name = file.rsplit('/').next().unwrap_or(file);
        let is_brought = (case.submission.files.iter()).any(|own| own.kept && own.path == file);
        if !is_brought && !case.issue.contains(name) {
            wrong(format!(
                "{} fails in {name} of the repository, not in the code under test.",
                test.id
            ));
        }
    }
}

/// Checks that a change of the code can make the failing tests pass.
pub(super) fn depends_on_code(case: &Case<'_>, wrong: &mut dyn FnMut(String)) {
    for own in contributed(case.submission) {
        let mut failing = case.failing.iter();
        let Some(test) = failing.find(|test| belongs_to_test(&test.id, &own.id)) else {
            continue;
        };
        let failure = failure(case.submission, &test.id);
        let failed = failure.and_then(|failure| failed_line(failure, own));
        if let Some(line) = constant_failure(&own.source, own.line as usize, failed) {
            wrong(format!(
                "{}, line {line}: the assertion is constant: it fails whatever the code does. Assert on what the code returns, \
                 changes or raises.",
                own.id
            ));
        }
    }
}

/// Returns the line of the failed assertion, if it is in the file of the test.
fn failed_line(failure: &Failure, own: &ContributedTest) -> Option<usize> {
    let file = file_of(&own.id);
    let mut frames = failure.frames.iter();
    let deepest = frames.rfind(|frame| frame.place != Place::External)?;
    let is_own = failure.class == FailureClass::Assertion && deepest.file == file;
    is_own.then_some(deepest.line as usize)
}

/// Returns the recorded failure of a test, or of the module that contains it.
fn failure<'a>(submission: &'a Submission, id: &str) -> Option<&'a Failure> {
    let old = &submission.old;
    let test = old.tests.iter().find(|test| test.id == id);
    test.and_then(|test| test.failure.as_ref()).or_else(|| {
        let mut errors = old.collection_errors.iter();
        let error = errors.find(|error| is_in_module(id, error))?;
        Some(&error.failure)
    })
}

/// Returns the file of the repository's deepest frame, if that is a hook of pytest that no frame of the test called.
fn hook_file<'a>(failure: &'a Failure, own_file: &str) -> Option<&'a str> {
    let mut frames = failure.frames.iter();
    let deepest = frames.rfind(|frame| frame.place != Place::External)?;
    let is_own = |frame: &Frame| frame.file == own_file;
    (is_hook(deepest) && !failure.frames.iter().any(is_own)).then_some(deepest.file.as_str())
}

/// Returns whether a frame runs code of a `conftest.py`, or a hook of a plugin in the folders of tests.
fn is_hook(frame: &Frame) -> bool {
    let is_conftest = frame.file.rsplit('/').next() == Some("conftest.py");
    let function = frame.function.rsplit('.').next().unwrap_or_default();
    is_conftest || (frame.place == Place::Test && function.starts_with("pytest_"))
}
