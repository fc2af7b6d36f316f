mod guide_samples;
mod reference;

use super::*;

#[test]
fn misspelled_command_after_help_has_suggestion() {
    let words = ["testwright", "help", "histor"].map(OsString::from);
    let error = parse(words.to_vec()).err().map(|error| error.to_string());
    assert!(error.is_some_and(|error| error.contains("'history'")));
}

#[test]
fn resumed_run_keeps_its_model() {
    let error = |flags: &[&str]| {
        let words = ["testwright", "run", "--resume", "out"].iter().chain(flags);
        parse(words.map(OsString::from).collect()).err()
    };
    assert!(error(&["--max-steps", "90"]).is_none());
    let refused = error(&["--model", "other"]);
    assert!(refused.is_some_and(|error| error.kind() == ErrorKind::ArgumentConflict));
}

#[test]
fn interrupted_command_is_named() {
    let words = || ["history", "runs/a b"].into_iter().map(str::to_owned);
    let error = name_command(Error::interrupted(), words());
    let expected = "run it again to continue: testwright history 'runs/a b'";
    assert_eq!(error.hint.as_deref(), Some(expected));
    let cancelled = name_command(Error::cancelled("the run was cancelled"), words());
    assert_eq!(cancelled.hint, None);
}
