//! Finds the issues that a change claims to fix: in messages, in changelog fragments, and in changelog entries.
//!
//! A number that is only mentioned does not count.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use testwright_sandboxes::Pattern;

/// Returns the issues that a message claims to fix. Only numbers of the repository `own` (`owner/name`) count.
pub(super) fn in_message(message: &str, own: &str) -> BTreeSet<u64> {
    static CLAUSE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let reference =
            r"(?:https?://[\w.-]+/[\w.-]+/[\w.-]+/issues/\d+|(?:[\w.-]+/[\w.-]+)?#\d+|gh-\d+)";
        let clause = format!(
            r"(?i)\b(?:close[sd]?|closing|fix(?:e[sd])?|fixing|resolve[sd]?|resolving)\b\s*[:(]?\s*(?:(?:the\s+)?(?:issues?|bugs?)\s+)?({reference}(?:(?:\s*,?\s*(?:and|&)\s*|\s*,\s*){reference})*)"
        );
        Regex::new(&clause).ok()
    });
    let Some(clause) = CLAUSE.as_ref() else {
        return BTreeSet::new();
    };
    let clauses = clause.captures_iter(message).filter_map(|c| c.get(1));
    clauses
        .flat_map(|clause| numbers(clause.as_str(), own))
        .collect()
}

/// Returns the numbers in a list of references.
fn numbers(clause: &str, own: &str) -> Vec<u64> {
    static ONE: Pattern = Pattern::new(
        r"(?i)(?:https?://[\w.-]+/([\w.-]+/[\w.-]+)/issues/|([\w.-]+/[\w.-]+)?#|gh-)(\d+)",
    );
    let is_own = |captures: &regex::Captures<'_>| {
        let repository = captures.get(1).or(captures.get(2));
        repository.is_none_or(|name| name.as_str().eq_ignore_ascii_case(own))
    };
    let references = ONE.captures_iter(clause).filter(is_own);
    references
        .filter_map(|captures| captures[3].parse().ok())
        .collect()
}

/// Parses the number in a path such as `changes/123.bugfix.rst`, the format of towncrier.
pub(super) fn in_fragment(path: &str) -> Option<u64> {
    static FRAGMENT: Pattern = Pattern::new(
        r"(?i)(?:^|/)(?:change-?logs?|changes|changelog\.d|news|newsfragments|news\.d|fragments|upcoming_changes)/(?:[\w.-]+/)*(\d+)\.(?:bug|bugfix|fix|fixed|feature|improvement|enhancement|changed?|breaking|deprecation|removal|security|perf|performance)(?:\.\d+)?(?:\.(?:rst|md|txt))?$",
    );
    FRAGMENT.captures(path)?[1].parse().ok()
}

/// Returns whether a file is a changelog.
pub(super) fn is_change_log(path: &str) -> bool {
    let lower = path.to_lowercase();
    let (folder, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
    let text = [".rst", ".md", ".txt"]
        .iter()
        .any(|end| name.ends_with(end))
        || !name.contains('.');
    let starts = ["change", "history", "news", "release"];
    let speaks = |name: &str| starts.iter().any(|start| name.starts_with(start));
    text && (speaks(name) || folder.split('/').any(|part| part.starts_with("change")))
}

/// Returns issues named with an issue role in the lines that a patch adds to a changelog.
pub(super) fn in_entries(patch: &str) -> BTreeSet<u64> {
    static ROLE: Pattern =
        Pattern::new(r"(?::issue:|\{issue\})`(\d+)`|:tickets:\s*(\d+(?:\s*,\s*\d+)*)");
    let lines = |sign: char| {
        let of = move |line: &&str| line.starts_with(sign);
        patch.lines().filter(of).flat_map(|line| {
            let entries = ROLE.captures_iter(line);
            let texts =
                entries.filter_map(|captures| Some(captures.get(1).or(captures.get(2))?.as_str()));
            let numbers = texts.flat_map(|text| text.split(','));
            numbers.filter_map(|number| number.trim().parse().ok())
        })
    };
    // Moved or reworded entries do not count as new.
    let before: BTreeSet<u64> = lines('-').collect();
    lines('+')
        .filter(|number| !before.contains(number))
        .collect()
}

#[cfg(test)]
mod tests;
