//! The Python version on which an issue says it happens.

use testwright_sandboxes::Pattern;
use testwright_sandboxes::recipe::PreferredPython;

/// Returns the newest version that the title names, or on which the text says something happens. Tables of
/// versions and code do not count, because they show what the reporter has, not what the bug needs.
pub(super) fn named_python(title: &str, body: &str) -> Option<PreferredPython> {
    static TITLE: Pattern = Pattern::new(r"(?i)\b(?:c?python|py)[ -]?(3\.\d{1,2})\b");
    static TEXT: Pattern = Pattern::new(
        r"(?i)\b(?:on|in|with|under|since|from|using|for|to|only|is)\s+(?:c?python|py)[ -]?(3\.\d{1,2})\b",
    );
    let newest = |pattern: &Pattern, text: &str| -> Option<String> {
        let versions = pattern
            .captures_iter(text)
            .map(|captures| captures[1].to_owned());
        versions.max_by_key(|version| minor(version))
    };
    if let Some(version) = newest(&TITLE, title) {
        return Some(PreferredPython {
            version,
            only_if_newer: false,
        });
    }
    let mut is_code = false;
    let prose: Vec<&str> = (body.lines())
        .filter(|line| {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            !is_code && !is_fence
        })
        .collect();
    Some(PreferredPython {
        version: newest(&TEXT, &prose.join("\n"))?,
        only_if_newer: true,
    })
}

fn minor(version: &str) -> u32 {
    let minor = version.split_once('.').map(|(_, minor)| minor);
    minor
        .and_then(|minor| minor.parse().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affected_version_is_found() {
        let of = |title: &str, body: &str| {
            named_python(title, body).map(|python| (python.version, python.only_if_newer))
        };
        let expected_version =
            |version: &str, only_if_newer| Some((version.to_owned(), only_if_newer));
        assert_eq!(
            of("Fails on Python 3.14", "with Python 3.9"),
            expected_version("3.14", false)
        );
        assert_eq!(of("py3.12: crash", ""), expected_version("3.12", false));
        assert_eq!(
            of(
                "Crash",
                "It works on Python 3.9 and fails with Python 3.10."
            ),
            expected_version("3.10", true)
        );
        assert_eq!(of("Crash", "python: 3.7.3\nPython 3.8.1 | packaged"), None);
        assert_eq!(of("Crash", "```\nrun on Python 3.8\n```\n"), None);
        assert_eq!(of("Crash", "on Python 2.7"), None);
    }
}
