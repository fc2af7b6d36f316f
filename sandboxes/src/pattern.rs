//! Constant regular expressions.

use std::ops::Deref;
use std::sync::OnceLock;

use regex::Regex;

/// A regular expression that is constant, and compiled when it is first used.
pub struct Pattern {
    text: &'static str,
    regex: OnceLock<Regex>,
}

impl Pattern {
    /// Returns the pattern with this text, which must be valid.
    pub const fn new(text: &'static str) -> Pattern {
        Pattern {
            text,
            regex: OnceLock::new(),
        }
    }
}

impl Deref for Pattern {
    type Target = Regex;

    #[allow(clippy::expect_used)] // tests use each pattern
    fn deref(&self) -> &Regex {
        let compile = || Regex::new(self.text).expect("the pattern is a constant");
        self.regex.get_or_init(compile)
    }
}
