//! Makes text the same in every run: replaces memory addresses, temporary paths and times with placeholders. Equal
//! addresses and paths get equal placeholders; different ones get different placeholders.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::workspace::REPO;

static VOLATILE_PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    // Summaries that the test runners print before the duration.
    let counted = "failed|passed|skipped|deselected|xfailed|xpassed|errors?|warnings?|rerun|selected|tests? collected";
    let ended = format!(
        r"(\b(?:\d+ (?:{counted})|no tests ran|Ran \d+ tests?),?) in \d+\.\d+ ?s(?:econds)?\b(?: \(\d+:\d\d:\d\d\))?"
    );
    [
        // Timestamps that servers and loggers put before their lines.
        (
            r"\[\d\d/[A-Z][a-z]{2}/\d{4}[ :]\d\d:\d\d:\d\d[^\]]*\]",
            "[...]",
        ),
        (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\b", "..."),
        (r"\b0x[0-9a-fA-F]*\.\.\.", "0x..."),
        (r"/pytest-of-[^/\s]+/pytest-\d+", "/pytest"),
        (ended.as_str(), "$1 in ... s"),
    ]
    .into_iter()
    // The patterns are constant; the tests below compile them.
    .filter_map(|(pattern, instead)| Some((Regex::new(pattern).ok()?, instead)))
    .collect()
});

/// Patterns for names that may occur several times in a text, and their placeholders' prefixes.
static NAMES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"\b0x[0-9a-fA-F]{5,}", "0x..."),
        (r"/tmp/tmp[a-z0-9_]{8}\b", "/tmp/tmp..."),
    ]
    .into_iter()
    .filter_map(|(pattern, instead)| Some((Regex::new(pattern).ok()?, instead)))
    .collect()
});

/// Replaces everything in `text` that differs between runs. Addresses and temporary names are numbered in order of
/// first appearance. Paths below the workspace begin with [`REPO`], except in tracebacks, where they are relative.
pub fn normalize(text: &str, workspace: &Path) -> String {
    replace_volatile(without_root(text, workspace, REPO))
}

/// Normalizes text like [`normalize`], but with relative workspace paths, for readers that must write the paths again.
pub fn with_relative_paths(text: &str, workspace: &Path) -> String {
    replace_volatile(without_root(text, workspace, ""))
}

fn replace_volatile(mut text: String) -> String {
    for (pattern, beginning) in NAMES.iter() {
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let numbered = |captures: &Captures<'_>| {
            let next = numbers.len() + 1;
            let number = numbers.entry(captures[0].to_owned()).or_insert(next);
            format!("{beginning}{number}")
        };
        if let Cow::Owned(replaced) = pattern.replace_all(&text, numbered) {
            text = replaced;
        }
    }
    for (pattern, instead) in VOLATILE_PATTERNS.iter() {
        if let Cow::Owned(replaced) = pattern.replace_all(&text, *instead) {
            text = replaced;
        }
    }
    text
}

/// Replaces the workspace folder with `instead`, except if its name is part of a longer path.
fn without_root(text: &str, workspace: &Path, instead: &str) -> String {
    let root = format!("{}/", workspace.display().to_string().trim_end_matches('/'));
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(&root) {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '~');
        if out.chars().next_back().is_some_and(is_part) {
            out.push_str(&root);
        } else if !out.ends_with("File \"") {
            out.push_str(instead);
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
    fn run_dependent_text_is_replaced() {
        assert_eq!(
            (VOLATILE_PATTERNS.len(), NAMES.len()),
            (5, 2),
            "every pattern compiles"
        );
        let cases = [
            ("<A object at 0x7f12ab34cd56>", "<A object at 0x...1>"),
            (
                "at 0x7f12ab34cd56, 0x7f12ab34cd99, 0x7f12ab34cd56",
                "at 0x...1, 0x...2, 0x...1",
            ),
            ("- [21/Nov/2026 22:37:33] \"GET", "- [...] \"GET"),
            ("2026-11-21 22:37:33,123 INFO", "... INFO"),
            ("2026-11-21 22:37:33", "2026-11-21 22:37:33"),
            ("0xff stays", "0xff stays"),
            ("cut short at 0x7...", "cut short at 0x..."),
            (
                "/tmp/pytest-of-root/pytest-12/test_a0/x",
                "/tmp/pytest/test_a0/x",
            ),
            (
                "open('/tmp/tmpab12_9zz') /tmp/tmpab12_9zy",
                "open('/tmp/tmp...1') /tmp/tmp...2",
            ),
            ("1 failed in 0.03s", "1 failed in ... s"),
            ("1 failed in 0.03 seconds", "1 failed in ... s"),
            ("2 passed in 61.03s (0:01:01)", "2 passed in ... s"),
            ("Ran 2 tests in 0.003s", "Ran 2 tests in ... s"),
            (
                "3 passed, 1 warning in 0.20s",
                "3 passed, 1 warning in ... s",
            ),
            ("2 passed, in 0.20 seconds", "2 passed, in ... s"),
            ("the job ended in 0.5 s", "the job ended in 0.5 s"),
            ("/w/pkg/a.py:3", "<repo>/pkg/a.py:3"),
            (
                "assert '/w/a.py' == 'a.py'",
                "assert '<repo>/a.py' == 'a.py'",
            ),
            (
                "  File \"/w/pkg/a.py\", line 3, in f",
                "  File \"pkg/a.py\", line 3, in f",
            ),
            (
                "../../w/pkg/a.py:3 and ~/w/x",
                "../../w/pkg/a.py:3 and ~/w/x",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(normalize(text, Path::new("/w")), expected);
        }
        assert_eq!(with_relative_paths("/w/a.py", Path::new("/w")), "a.py");
    }
}
