//! Regular expressions that are compiled at their first use.

use std::sync::OnceLock;

use regex::{Captures, Regex};

/// A regular expression of this crate. One that is not valid matches nothing.
pub(crate) struct Pattern {
    text: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    pub(crate) const fn new(text: &'static str) -> Pattern {
        Pattern {
            text,
            compiled: OnceLock::new(),
        }
    }

    pub(crate) fn regex(&self) -> Option<&Regex> {
        let compiled = self.compiled.get_or_init(|| Regex::new(self.text).ok());
        compiled.as_ref()
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }

    pub(crate) fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        self.regex()?.captures(text)
    }

    pub(crate) fn captures_iter<'t>(&self, text: &'t str) -> impl Iterator<Item = Captures<'t>> {
        let regex = self.regex().into_iter();
        regex.flat_map(move |regex| regex.captures_iter(text))
    }
}
