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
mod tests {
    use super::*;

    #[test]
    fn long_tracebacks_keep_their_ends() {
        let calls = |count: usize| -> String {
            (0..count)
                .map(|n| format!("  File \"a.py\", line {n}, in f{n}\n    g({n})\n      ^\n"))
                .collect()
        };
        let long = format!(
            "It fails:\nTraceback (most recent call last):\n{}ValueError: no\n\nbye",
            calls(20)
        );
        let folded_text = without_middles(&long);
        assert!(
            folded_text.contains("in f1\n    g(1)\n      ^\n[… 13 calls of the traceback folded]\n  File \"a.py\", line 15, in f15\n"),
            "{folded_text}"
        );
        assert!(
            folded_text.starts_with("It fails:\nTraceback"),
            "{folded_text}"
        );
        assert!(
            folded_text.ends_with("in f19\n    g(19)\n      ^\nValueError: no\n\nbye"),
            "{folded_text}"
        );
        let short = format!(
            "Traceback (most recent call last):\n{}ValueError: no",
            calls(10)
        );
        assert_eq!(without_middles(&short), short);
    }

    #[test]
    fn pytest_tracebacks_are_folded() {
        let calls: String = (0..12)
            .map(|n| format!("src/_pytest/a.py:{n}: in f\n    g({n})\n"))
            .collect();
        let folded_text = without_middles(&format!("{calls}E   ValueError\n"));
        assert_eq!(folded_text.matches(": in f").count(), 7);
        assert!(
            folded_text.contains("[… 5 calls of the traceback folded]\nsrc/_pytest/a.py:7: in f"),
            "{folded_text}"
        );
        let listing = "a.py:1: in f\n    x\n\nb.py:2: in g\n    y";
        assert_eq!(without_middles(listing), listing);
    }
}
