use super::*;
use crate::error::ErrorKind;

fn failed(output: &str) -> FailedCommand {
    FailedCommand {
        command: "alembic upgrade head".to_owned(),
        printed: StepOutput {
            code: 1,
            text: output.to_owned(),
        },
    }
}

#[test]
fn summary_states_error_of_command() {
    let background = "(Background on this error at: https://sqlalche.me/e/20/e3q8)";
    for (output, error) in [
        (
            format!("Traceback:\nOSError: [Errno 111] Connection refused\n{background}\n"),
            "OSError: [Errno 111] Connection refused",
        ),
        (
            "FAILED: No config file found\n\n".to_owned(),
            "FAILED: No config file found",
        ),
        (String::new(), "exit code 1"),
    ] {
        let summary = failed(&output).summary();
        let expected = format!("`alembic upgrade head` failed before the tests: {error}");
        assert_eq!(summary, expected);
    }
}

#[test]
fn failure_is_error_of_machine_with_hint() {
    let error = failed("one\nFAILED: two\n").error();
    assert_eq!(error.kind, ErrorKind::System);
    assert!(
        error
            .message
            .ends_with("exit code 1\n    one\n    FAILED: two"),
        "{error}"
    );
    let hint = error.hint.unwrap_or_default();
    assert!(hint.contains("before-tests"), "{hint}");

    let rejected = SandboxError::new(ErrorKind::Build, "none of the tests passes");
    let explained = failed("OSError: two\n").explain(rejected);
    assert_eq!(explained.kind, ErrorKind::Build);
    assert!(
        explained
            .message
            .ends_with("before the tests: OSError: two"),
        "{explained}"
    );
}
