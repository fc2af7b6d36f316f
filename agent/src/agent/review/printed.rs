//! Errors that a failing test, or a program that it started, printed: there a failed assertion on an exit code has its cause.

use testwright_tools::outcomes::report::TestResult;

const LINES: usize = 30;
const TRACEBACK: &str = "Traceback (most recent call last)";

/// What was captured from its first error to its end, or the end alone, where the failure's message does not say as much.
pub(super) fn printed_errors(test: &TestResult) -> Option<String> {
    let message = (test.failure.as_ref()).map_or("", |failure| failure.message.as_str());
    let lines = of_repository(&test.captured);
    let first = (lines.iter()).position(|line| is_error(line) && !message.contains(line.trim()))?;
    let first = first.max(lines.len().saturating_sub(LINES));
    Some(lines[first..].join("\n"))
}

/// Without the calls of a traceback that are outside of the repository, whose paths are whole.
fn of_repository(captured: &str) -> Vec<&str> {
    let mut is_outside = false;
    let is_kept = |line: &&str| {
        let is_call = line.starts_with("  File \"");
        is_outside = match is_call {
            true => line.starts_with("  File \"/"),
            // Its code stands below it, further in.
            false => is_outside && line.starts_with("    "),
        };
        !is_outside
    };
    captured.lines().filter(is_kept).collect()
}

/// The head of a traceback, or a line that begins with the name of an exception, as `pkg.SomeError: why`.
fn is_error(line: &str) -> bool {
    // pytest puts `E` before the lines of an error.
    let line = line.trim_start_matches("E  ").trim_start();
    let name = line.split([':', ' ']).next().unwrap_or_default();
    let is_dotted_name =
        (name.split('.')).all(|part| part.chars().all(|c| c.is_alphanumeric() || c == '_'));
    line.starts_with(TRACEBACK)
        || is_dotted_name && (name.ends_with("Error") || name.ends_with("Exception"))
}
