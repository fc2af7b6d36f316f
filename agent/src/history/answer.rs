//! The answer of one commit, and the places that are asked.

use serde::{Deserialize, Serialize};

/// The answer to the question whether a commit has the bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The tests fail for the reason for which they were accepted.
    Fails,
    /// The tests ran twice and passed both times.
    Passes,
    /// The tests could not be applied, built or imported, or failed for another reason.
    CannotTell,
}

impl Verdict {
    /// Returns the word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Fails => "fails",
            Verdict::Passes => "passes",
            Verdict::CannotTell => "cannot tell",
        }
    }

    /// Returns the other of `Fails` and `Passes`.
    pub(super) fn opposite(self) -> Verdict {
        match self {
            Verdict::Fails => Verdict::Passes,
            Verdict::Passes => Verdict::Fails,
            Verdict::CannotTell => Verdict::CannotTell,
        }
    }
}

/// A verdict and its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Verdict on the commit.
    pub verdict: Verdict,
    /// Failure, or the reason why nothing is known; empty for `Passes`.
    pub reason: String,
    /// Whether the reason is outside of the code, such as the network or a timeout, so that a later command must ask again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_external: bool,
}

impl Answer {
    /// Creates an answer for a reason in the code.
    pub(super) fn new(verdict: Verdict, reason: impl Into<String>) -> Answer {
        Answer {
            verdict,
            reason: reason.into(),
            is_external: false,
        }
    }

    /// Creates an answer without a verdict, for a reason in the code.
    pub(super) fn cannot_tell(reason: impl Into<String>) -> Answer {
        Answer::new(Verdict::CannotTell, reason)
    }

    /// Creates an answer without a verdict, for a reason outside of the code.
    pub(super) fn cannot_tell_yet(reason: impl Into<String>) -> Answer {
        Answer {
            is_external: true,
            ..Answer::cannot_tell(reason)
        }
    }
}

/// A commit to ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Full object name, in hex digits.
    pub commit: String,
    /// Time of the commit, in seconds since 1970.
    pub committed: i64,
    /// Version, or name of the branch that ends here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Point {
    /// Returns the name, or the abbreviated hash.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| self.short())
    }

    /// Returns the abbreviated hash.
    pub fn short(&self) -> &str {
        self.commit.get(..12).unwrap_or(&self.commit)
    }

    /// Returns the day of the commit (UTC).
    pub fn day(&self) -> String {
        match jiff::Timestamp::from_second(self.committed) {
            Ok(time) => time.strftime("%Y-%m-%d").to_string(),
            Err(_) => String::new(),
        }
    }
}
