//! Parses the answers of `run_pytest`, `insert_function` and `submit`.

use super::candidates::Expects;

const NOT_RUN: &str = "it did not run";
const ERROR_BEFORE: &str = "it has an error before it starts";

/// Checks whether the only contributed test failed as it should; `Err` has the reason why not.
pub(super) fn check_failure(report: &str, expects: &Expects) -> Result<(), String> {
    if report.contains("COULD NOT BE COLLECTED") {
        return Err("its file could not be collected".to_owned());
    }
    let mut lines = report
        .lines()
        .skip_while(|l| !l.starts_with("FAILED ") && !l.starts_with("ERROR "));
    let Some(headline) = lines.next() else {
        let why = if report.contains("passed ") {
            "it passes today"
        } else {
            NOT_RUN
        };
        return Err(why.to_owned());
    };
    if headline.starts_with("ERROR") {
        return Err(ERROR_BEFORE.to_owned());
    }
    let kind = lines.next().unwrap_or("").trim();
    let error = lines.next().unwrap_or("").trim();
    let exception = error.split(':').next().unwrap_or("");
    let short = exception.rsplit('.').next().unwrap_or(exception);
    let by_source = kind.contains("raised by the code under test");
    let by_assertion = kind.contains("an assertion of the test did not hold");
    match expects {
        Expects::Raised(name) if by_source && short == name => Ok(()),
        Expects::Assertion if by_assertion => Ok(()),
        _ => Err(format!("it fails with {error}")),
    }
}

/// Returns whether a test was not run, for this reason.
pub(super) fn never_started(why: &str) -> bool {
    why == NOT_RUN || why == ERROR_BEFORE
}

/// The reason why a test cannot be inserted as it is.
#[derive(Debug, PartialEq)]
pub(super) enum Conflict {
    /// Another test has its name.
    Test,
    /// The file binds this name otherwise than an import.
    Import(String),
}

/// Returns the conflict that `insert_function` reports.
pub(super) fn conflict(answer: &str) -> Option<Conflict> {
    let (_, why) = first_line(answer).split_once("Not written: ")?;
    if why.contains("` already (line ") && why.contains(" defines `") {
        return Some(Conflict::Test);
    }
    let (name, rest) = why.strip_prefix('`')?.split_once('`')?;
    let is_taken = rest.starts_with(" is bound already")
        || rest.starts_with(" is defined in the file already");
    is_taken.then(|| Conflict::Import(name.to_owned()))
}

/// Returns whether the tool refused the call.
pub(super) fn refused(answer: &str) -> bool {
    !answer.starts_with("Written to") && !answer.starts_with("Made ")
}

pub(super) fn first_line(answer: &str) -> &str {
    answer.lines().next().unwrap_or("").trim_end_matches('.')
}

/// Returns the gate's findings, on one line.
pub(super) fn findings(answer: &str) -> String {
    let lines: Vec<&str> = answer
        .lines()
        .filter_map(|l| l.trim().strip_prefix("- "))
        .collect();
    let joined = lines.join(" ");
    joined
        .chars()
        .take(200)
        .collect::<String>()
        .trim_end_matches('.')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASSERTION: &str = "1 test: 1 failed\n\nFAILED tests/test_a.py::test_b\n  an assertion of the test did not hold\n  \
                             AssertionError: assert 1 == 2\n    [test] tests/test_a.py:3 in test_b: assert low(1) == 2";
    const RAISED: &str = "1 test: 1 failed\n\nFAILED tests/test_a.py::test_b\n  raised by the code under test\n  \
                          pkg.errors.OddError: no\n    [source] pkg/a.py:3 in low: raise OddError('no')";

    #[test]
    fn conflicts_name_test_or_import() {
        let taken = "Not written: tests/test_a.py defines `TestA.test_b` already (line 3). Replace that one, or use another name.";
        assert_eq!(conflict(taken), Some(Conflict::Test));
        let bound = "Not written: `low` is bound already by `from a import low`; `from b import low` would take its place.";
        assert_eq!(conflict(bound), Some(Conflict::Import("low".into())));
        let defined = "Not written: `low` is defined in the file already (line 3), so `from b import low` would take its place.";
        assert_eq!(conflict(defined), Some(Conflict::Import("low".into())));
        assert_eq!(
            conflict("Not written: tests/test_a.py would not parse."),
            None
        );
        assert_eq!(conflict("Written to tests/test_a.py, lines 1-2."), None);
    }

    #[test]
    fn test_must_fail_as_expected() {
        let odd = Expects::Raised("OddError".into());
        assert_eq!(check_failure(ASSERTION, &Expects::Assertion), Ok(()));
        assert_eq!(check_failure(RAISED, &odd), Ok(()));
        assert!(check_failure(ASSERTION, &odd).is_err());
        assert!(check_failure(RAISED, &Expects::Assertion).is_err());
        assert_eq!(
            check_failure("1 test: 1 passed\n\npassed tests/test_a.py::test_b", &odd),
            Err("it passes today".into())
        );
    }
}
