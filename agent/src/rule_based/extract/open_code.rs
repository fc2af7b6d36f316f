//! Code without a fence or an indentation, as in issues that were moved from Trac.

use testwright_sandboxes::Pattern;

use super::code;

/// First line of a statement, so strict that a sentence hardly looks like it.
static STATEMENT: Pattern = Pattern::new(
    r"^(?:import [\w.]+(?: as \w+)?$|from [\w.]+ import (?:\*|\w+(?: as \w+)?(?:, \w+(?: as \w+)?)*|\()$|@\w[\w.]*(?:\(.*)?$|(?:async )?def \w+\(|class \w+(?:\(.*\))?:$|(?:for|with|if|while|try)\b.*:$|(?:print|assert) ?[\w('\x22]|[A-Za-z_][\w.]*(?:\[[^\]]*\])? ?= ?[^\s=]|[A-Za-z_][\w.]*\((?:.*\)(?:\.\w+|\(.*\)|\[.*\])*(?:\s+#.*)?|[^)]*)$)",
);
/// Line that continues a statement without an indentation.
static CONTINUATION: Pattern = Pattern::new(r"^(?:[)\]}]|(?:else|elif|except|finally)\b.*:$)");

/// Returns the lines from the first on that look like code: statements, what continues them, and comments between them.
pub(super) fn run<'a, 'b>(lines: &'b [&'a str]) -> &'b [&'a str] {
    let starts_session = |line: &str| line.starts_with(">>>") || line.starts_with("In [");
    let mut end = 0;
    for (at, line) in lines.iter().enumerate() {
        if starts_session(line.trim_start()) {
            break;
        }
        let is_comment = at > 0 && line.starts_with('#');
        let is_inside = at > 0 && (line.starts_with([' ', '\t']) || CONTINUATION.is_match(line));
        if STATEMENT.is_match(line) || is_inside && !line.trim().is_empty() {
            end = at + 1;
        } else if !is_comment {
            break;
        }
    }
    &lines[..end]
}

/// Returns whether a run of lines has at least two and is complete.
pub(super) fn is_code(run: &[&str]) -> bool {
    let is_block = |line: &&str| {
        let first = line.split([' ', '(']).next().unwrap_or_default();
        ["for", "with", "if", "while", "try"].contains(&first)
    };
    // A sentence such as "with these lines:" has nothing inside.
    let has_body = run.iter().zip(run.iter().skip(1)).all(|(line, next)| {
        !is_block(line) || !line.ends_with(':') || next.starts_with([' ', '\t'])
    });
    let is_open = run.last().is_some_and(|line| line.ends_with(':'));
    run.len() > 1 && has_body && !is_open && code::balanced(&run.join("\n"))
}

#[cfg(test)]
mod tests;
