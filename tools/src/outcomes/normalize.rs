//! Text that is the same in every run: memory addresses, temporary paths and times taken out.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

static CHANGING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        // What servers and loggers put before their lines.
        (
            r"\[\d\d/[A-Z][a-z]{2}/\d{4}[ :]\d\d:\d\d:\d\d[^\]]*\]",
            "[...]",
        ),
        (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\b", "..."),
        (r"\b0x(?:[0-9a-fA-F]{5,}|[0-9a-fA-F]*\.\.\.)", "0x..."),
        (r"/pytest-of-[^/\s]+/pytest-\d+", "/pytest"),
        (r"/tmp/tmp[a-z0-9_]{8}\b", "/tmp/tmp..."),
        (
            r"\bin \d+\.\d+ ?s(?:econds)?\b(?: \(\d+:\d\d:\d\d\))?",
            "in ... s",
        ),
    ]
    .into_iter()
    // Constant patterns, compiled by the tests below.
    .filter_map(|(pattern, instead)| Some((Regex::new(pattern).ok()?, instead)))
    .collect()
});

/// `text` with what differs from run to run replaced, and paths below the workspace made relative.
pub fn normalize(text: &str, workspace: &Path) -> String {
    let mut text = without_root(text, workspace);
    for (pattern, instead) in CHANGING.iter() {
        if let std::borrow::Cow::Owned(replaced) = pattern.replace_all(&text, *instead) {
            text = replaced;
        }
    }
    text
}

/// Paths below the workspace made relative, but for those in which its name is a part of a longer path.
fn without_root(text: &str, workspace: &Path) -> String {
    let root = format!("{}/", workspace.display().to_string().trim_end_matches('/'));
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(&root) {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '~');
        if out.chars().next_back().is_some_and(is_part) {
            out.push_str(&root);
        }
        rest = &after[root.len()..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_out_what_changes_from_run_to_run() {
        assert_eq!(CHANGING.len(), 6, "every pattern compiles");
        let cases = [
            ("<A object at 0x7f12ab34cd56>", "<A object at 0x...>"),
            ("- [21/Nov/2026 22:37:33] \"GET", "- [...] \"GET"),
            ("2026-11-21 22:37:33,123 INFO", "... INFO"),
            ("2026-11-21 22:37:33", "2026-11-21 22:37:33"),
            ("0xff stays", "0xff stays"),
            ("cut short at 0x7...", "cut short at 0x..."),
            (
                "/tmp/pytest-of-root/pytest-12/test_a0/x",
                "/tmp/pytest/test_a0/x",
            ),
            ("open('/tmp/tmpab12_9zz')", "open('/tmp/tmp...')"),
            ("1 failed in 0.03s", "1 failed in ... s"),
            ("1 failed in 0.03 seconds", "1 failed in ... s"),
            ("2 passed in 61.03s (0:01:01)", "2 passed in ... s"),
            ("/w/pkg/a.py:3", "pkg/a.py:3"),
            ("'/w/a.py' and (/w/b.py)", "'a.py' and (b.py)"),
            (
                "../../w/pkg/a.py:3 and ~/w/x",
                "../../w/pkg/a.py:3 and ~/w/x",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(normalize(text, Path::new("/w")), expected);
        }
    }
}
