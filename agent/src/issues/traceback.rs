//! Removes the middle calls of an issue's long tracebacks, for models that can ask for the full text.

use testwright_sandboxes::Pattern;

/// Number of calls to keep at the start of a traceback.
const FIRST: usize = 2;
const LAST: usize = 5;
const FOLDED: usize = 4;

/// Returns the text with one line instead of the middle calls of each long traceback.
pub(super) fn without_middles(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out: Vec<String> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        // Holds the start of each call, and `end` the line after the last one.
        let mut calls: Vec<usize> = Vec::new();
        let mut end = at;
        while let Some(length) = lines.get(end..).and_then(call) {
            calls.push(end);
            end += length;
        }
        if calls.len() < FIRST + FOLDED + LAST {
            let end = end.max(at + 1);
            out.extend(lines[at..end].iter().map(|line| (*line).to_owned()));
            at = end;
            continue;
        }
        let (from, to) = (calls[FIRST], calls[calls.len() - LAST]);
        out.extend(lines[at..from].iter().map(|line| (*line).to_owned()));
        out.push(format!(
            "[… {} calls of the traceback folded]",
            calls.len() - FIRST - LAST
        ));
        out.extend(lines[to..end].iter().map(|line| (*line).to_owned()));
        at = end;
    }
    out.join("\n")
}

/// Returns the number of lines of the call that starts here: `File "…", line 1, in f` or pytest's `path.py:1:
/// in f`, and the code below it.
fn call(lines: &[&str]) -> Option<usize> {
    static CALL: Pattern =
        Pattern::new(r#"^\s*(?:File "[^"]+", line \d+, in \S|\S+\.pyx?:\d+: in \S)"#);
    let (first, rest) = lines.split_first()?;
    if !CALL.is_match(first) {
        return None;
    }
    let indent = |line: &str| line.len() - line.trim_start().len();
    let of_call = |line: &&&str| {
        (indent(line) > indent(first) && !line.trim().is_empty())
            || (line.starts_with("[… ") && line.contains(" folded: the same as above"))
    };
    Some(1 + rest.iter().take_while(of_call).count())
}

#[cfg(test)]
mod tests;
