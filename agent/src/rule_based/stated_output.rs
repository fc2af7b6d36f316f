//! What the issue says that code returns or prints.

use std::sync::LazyLock;

use regex::Regex;

use super::extract::{Stance, pattern};

/// A text that the issue gives for what a step returns or prints.
#[derive(Debug, Clone, PartialEq)]
pub struct StatedOutput {
    pub text: String,
    pub role: Role,
    /// Where the issue says so, if it was a sentence.
    pub sentence: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// What should come.
    Right,
    /// What comes, and should not.
    Wrong,
    /// What comes, and is fine.
    Fine,
    /// What comes.
    Shown,
}

impl From<Stance> for Role {
    fn from(stance: Stance) -> Role {
        match stance {
            Stance::Expected => Role::Right,
            Stance::Bad => Role::Wrong,
            Stance::Good => Role::Fine,
            Stance::Unknown => Role::Shown,
        }
    }
}

/// `should be 3`, `-> 3 expected`: the value in a comment.
pub(super) fn right_in(note: &str) -> Option<String> {
    static SHOULD: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?:should(?: be| return| give| print| equal| yield)|expected?(?: is| to be| to get)?:?|supposed to be|must be)\s+(`[^`]+`|\S.*)$",
        )
    });
    let found = SHOULD.captures(note)?;
    let text = found[1]
        .trim_matches('`')
        .trim()
        .trim_end_matches(['.', '!'])
        .to_owned();
    let plain = text.contains(['(', '[', '\'', '"', '{']) || !text.contains(' ');
    plain.then_some(text)
}
