//! Versions in the names of tags, such as `v2.3.0`, `release-1.0rc1` or `REL_1_4_2`.

use std::cmp::Ordering;

use testwright_sandboxes::Pattern;

/// Words before the version that say nothing about it.
const PLAIN_PREFIXES: [&str; 6] = ["v", "ver", "version", "r", "rel", "release"];

/// Numbers of a version, such as `1_4_0` in `1_4_0rc1`.
static NUMBERS: Pattern = Pattern::new("^[0-9]+(?:[._][0-9]+)*");

/// A version, in the order of PEP 440.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    /// Text before the version; empty if it is one of [`PLAIN_PREFIXES`].
    pub prefix: String,
    /// The version itself, without the prefix.
    pub text: String,
    /// Numbers without zeros at the end, so that 1.0 equals 1.0.0.
    numbers: Vec<u64>,
    /// Rank and number of the suffix: below 0 before the release, 0 for the release, above 0 after it.
    suffix: (i8, u64),
}

impl Version {
    /// Parses the name of a tag; `None` if it does not look like a release.
    pub(super) fn parse(tag: &str) -> Option<Version> {
        let tag = tag.rsplit('/').next().unwrap_or(tag);
        let start = tag.find(|c: char| c.is_ascii_digit())?;
        let (prefix, text) = tag.split_at(start);
        let prefix = prefix.trim_end_matches(['-', '_', '.']).to_lowercase();
        let (release, suffix) = text.split_at(NUMBERS.find(text)?.end());
        let numbers = release.split(['.', '_']).map(str::parse::<u64>);
        let mut numbers = numbers.collect::<Result<Vec<_>, _>>().ok()?;
        let is_plain = prefix.is_empty() || PLAIN_PREFIXES.contains(&prefix.as_str());
        // Tags such as `py3` and `python-3` are not releases.
        if numbers.len() < 2 && !is_plain {
            return None;
        }
        while numbers.pop_if(|last| *last == 0).is_some() {}
        Some(Version {
            prefix: if is_plain { String::new() } else { prefix },
            text: text.to_owned(),
            suffix: parse_suffix(suffix)?,
            numbers,
        })
    }

    pub(super) fn is_pre_release(&self) -> bool {
        self.suffix.0 < 0
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.numbers, self.suffix).cmp(&(&other.numbers, other.suffix))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Returns the rank and the number of a suffix such as `rc1` or `.post2`; `None` if it is unknown.
fn parse_suffix(suffix: &str) -> Option<(i8, u64)> {
    let suffix = suffix.trim_start_matches(['.', '-', '_']).to_lowercase();
    let word_len = suffix.find(|c: char| c.is_ascii_digit());
    let (word, number) = suffix.split_at(word_len.unwrap_or(suffix.len()));
    let number = match number {
        "" => 0,
        number => number.parse().ok()?,
    };
    let rank = match word.trim_matches(['.', '-', '_']) {
        "dev" => -4,
        "a" | "alpha" => -3,
        "b" | "beta" => -2,
        "c" | "rc" | "pre" | "preview" => -1,
        "" if suffix.is_empty() => 0,
        "final" => 0,
        // `1.0-1` is a post-release, too.
        "" | "post" | "rev" | "r" => 1,
        _ => return None,
    };
    Some((rank, number))
}

#[cfg(test)]
mod tests;
