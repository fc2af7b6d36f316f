//! Errors printed by a failing test or by a program it started. They explain a failed assertion on an exit
//! code.

use testwright_tools::outcomes::report::TestResult;

const LINES: usize = 30;
const TRACEBACK: &str = "Traceback (most recent call last)";

/// Returns the captured output from its first error on, or only its end. Returns `None` if the failure's
/// message says as much.
pub(super) fn printed_errors(test: &TestResult) -> Option<String> {
    let message = (test.failure.as_ref()).map_or("", |failure| failure.message.as_str());
    let lines = of_repository(&test.captured);
    let first = (lines.iter()).position(|line| is_error(line) && !message.contains(line.trim()))?;
    let first = first.max(lines.len().saturating_sub(LINES));
    Some(lines[first..].join("\n"))
}

/// Removes the calls of a traceback that are outside of the repository; their paths are absolute.
fn of_repository(captured: &str) -> Vec<&str> {
    let mut is_outside = false;
    let is_inside = |line: &&str| {
        let is_call = line.starts_with("  File \"");
        is_outside = match is_call {
            true => line.starts_with("  File \"/"),
            // The code of the call follows, indented further.
            false => is_outside && line.starts_with("    "),
        };
        !is_outside
    };
    captured.lines().filter(is_inside).collect()
}

/// Returns whether a line is the header of a traceback, or starts with the name of an exception, as in
/// `pkg.SomeError: why`.
fn is_error(line: &str) -> bool {
    // pytest puts `E` before the lines of an error.
    let line = line.trim_start_matches("E  ").trim_start();
    let name = line.split([':', ' ']).next().unwrap_or_default();
    let is_dotted_name =
        (name.split('.')).all(|part| part.chars().all(|c| c.is_alphanumeric() || c == '_'));
    line.starts_with(TRACEBACK)
        || is_dotted_name && (name.ends_with("Error") || name.ends_with("Exception"))
}
