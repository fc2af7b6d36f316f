//! Finds the issues of its own repository that a pull request mentions.

use std::sync::LazyLock;

use regex::Regex;

/// Maximum number of mentions per pull request: a long list of issues is probably not about them.
const MAX_MENTIONS: usize = 20;

static MENTION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    // `#1`, `OWNER/NAME#1`, `https://HOST/OWNER/NAME/issues/1`
    Regex::new(
        r"(?:https?://[\w.:-]+/(?P<of_url>[\w.-]+/[\w.-]+)/issues/|(?:^|[^\w/.#&-])(?P<of_name>[\w.-]+/[\w.-]+)?#)(?P<number>[1-9]\d{0,9})\b",
    )
    .ok()
});

/// Returns the numbers of the issues, in the order in which they are mentioned.
pub(super) fn mentioned(text: &str, repository: &str) -> Vec<u64> {
    let mut numbers = Vec::new();
    for captures in MENTION
        .iter()
        .flat_map(|pattern| pattern.captures_iter(text))
    {
        let of = captures.name("of_url").or_else(|| captures.name("of_name"));
        let is_own = of.is_none_or(|of| of.as_str().eq_ignore_ascii_case(repository));
        if let Ok(number) = captures["number"].parse()
            && is_own
            && !numbers.contains(&number)
            && numbers.len() < MAX_MENTIONS
        {
            numbers.push(number);
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_mentions_are_found() {
        for (text, numbers) in [
            ("Fixes #12", vec![12]),
            ("fixes #12, closes #7 (see #12)", vec![12, 7]),
            ("#3", vec![3]),
            ("See o/r#4 and O/R#5, not other/r#6", vec![4, 5]),
            ("https://github.com/o/r/issues/8#issuecomment-9", vec![8]),
            ("https://github.com/o/other/issues/8", vec![]),
            ("https://github.com/o/r/pull/8", vec![]),
            ("a#1 &#39; ##2 #0 #x /#3", vec![]),
        ] {
            assert_eq!(mentioned(text, "o/r"), numbers, "{text}");
        }
        let many: String = (1..100).map(|n| format!("#{n} ")).collect();
        assert_eq!(mentioned(&many, "o/r").len(), MAX_MENTIONS);
    }
}
