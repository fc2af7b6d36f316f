//! Texts on the host that a model reads with `open_file`: the unfolded issue, and files before there is a sandbox.

use serde_json::Value;

/// Default number of lines to show.
const LINES: usize = 200;

/// Returns the requested lines of the issue with their numbers.
pub(super) fn numbered_issue_lines(issue: &str, arguments: &Value) -> String {
    numbered_lines("The issue", issue, arguments)
}

/// Returns the requested lines of a text with their numbers, below its title.
pub(crate) fn numbered_lines(title: &str, text: &str, arguments: &Value) -> String {
    let number = |name: &str| {
        let value = arguments[name].as_u64()?;
        usize::try_from(value).ok()
    };
    let first = number("first").unwrap_or(1).max(1);
    let all = text.lines().count();
    let lines = number("lines").unwrap_or(LINES);
    let mut out = format!("{title}, {all} lines\n");
    for (at, line) in text.lines().enumerate().skip(first - 1).take(lines) {
        out.push_str(&format!("{:>4}  {line}\n", at + 1));
    }
    let last_line = (first - 1).saturating_add(lines);
    if last_line < all {
        let below = all - last_line;
        let lines = if below == 1 { "line" } else { "lines" };
        out.push_str(&format!("({below} {lines} below)\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_start_at_requested_line() {
        assert_eq!(
            numbered_issue_lines("a\nb\nc", &json!({"path": "ISSUE", "first": 2, "lines": 1})),
            "The issue, 3 lines\n   2  b\n(1 line below)\n"
        );
        assert_eq!(
            numbered_issue_lines("a", &json!({})),
            "The issue, 1 lines\n   1  a\n"
        );
    }
}
