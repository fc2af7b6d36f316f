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
    compiled(&[
        // Timestamps that servers and loggers put before their lines.
        (
            r"\[\d\d/[A-Z][a-z]{2}/\d{4}[ :]\d\d:\d\d:\d\d[^\]]*\]",
            "[...]",
        ),
        (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\b", "..."),
        (r"\b0x[0-9a-fA-F]*\.\.\.", "0x..."),
        (r"/pytest-of-[^/\s]+/pytest-\d+", "/pytest"),
        (ended.as_str(), "$1 in ... s"),
    ])
});

/// Patterns for names that may occur several times in a text, and their placeholders' prefixes.
static NAMES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    compiled(&[
        (r"\b0x[0-9a-fA-F]{5,}", "0x..."),
        (r"/tmp/tmp[a-z0-9_]{8}\b", "/tmp/tmp..."),
    ])
});

/// Compiles constant patterns; the tests compile all of them.
fn compiled(patterns: &[(&str, &'static str)]) -> Vec<(Regex, &'static str)> {
    let patterns = patterns.iter();
    patterns
        .filter_map(|(pattern, instead)| Some((Regex::new(pattern).ok()?, *instead)))
        .collect()
}

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
mod tests;
