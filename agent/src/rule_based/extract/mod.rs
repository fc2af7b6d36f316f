//! Splits an issue into prose, code, REPL transcripts, tracebacks and outputs, in their order.
//!
//! This works on text alone. Whether a piece of code parses, runs or shows anything is found out later, in
//! the sandbox.

mod blocks;
mod code;
mod expected_exceptions;
mod marks;
mod open_code;
mod prose;
mod repl;
mod statements;
#[cfg(test)]
mod tests;
mod traceback;

use regex::Regex;

pub use code::{balanced, has_long_string, punctuation, split_note};
pub use expected_exceptions::{ExpectedException, expected_exceptions, is_exception_name};
pub use marks::{flat, sentences};
pub use prose::{
    Polarity, bare_contrast, classify_words, messages_only, reports_a_fault, stance_after,
    stance_before, wanted_exceptions,
};
pub use repl::Entry;
pub use statements::{Claim, claims};
pub use traceback::RaisedException;

/// The parts of an issue.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Issue {
    /// First line of the text.
    pub title: String,
    /// Parts, in the order of the text.
    pub parts: Vec<Part>,
}

/// A part of an issue.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Heading above the part, in lower case; empty before the first one.
    pub heading: String,
    /// Kind of the part, with its content.
    pub kind: Kind,
}

/// The kind of a part.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Text outside of code blocks.
    Prose(String),
    /// Session of an interactive Python interpreter.
    Repl(Vec<Entry>),
    /// Python code outside of a session.
    Code(String),
    /// Exception, shown as a traceback or its last line.
    Raised(RaisedException),
    /// Commands of a shell.
    Shell(String),
    /// Any other block: outputs, files in other languages.
    Text {
        /// Language of the block, as after its fence; empty if it has none.
        lang: String,
        /// Text of the block.
        text: String,
    },
}

/// Splits the text of an issue; its first line is the title.
pub fn extract(text: &str) -> Issue {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let text = text.trim_start_matches(['\n', ' ', '\u{feff}']);
    let (title, body) = text.split_once('\n').unwrap_or((text, ""));
    Issue {
        title: title.trim().trim_start_matches('#').trim().to_owned(),
        parts: blocks::parts(body),
    }
}

/// Returns the issue in a prompt: the text between `<issue>` and the last `</issue>`.
pub fn issue_in(prompt: &str) -> Option<&str> {
    let (_, rest) = prompt.split_once("<issue>")?;
    let (issue, _) = rest.rsplit_once("</issue>")?;
    Some(issue.trim_matches('\n'))
}

impl Issue {
    /// Returns all prose, starting with the title.
    pub fn prose(&self) -> String {
        let mut all = self.title.clone();
        for part in &self.parts {
            if let Kind::Prose(text) = &part.kind {
                all.push_str("\n\n");
                all.push_str(text);
            }
        }
        all
    }

    /// Returns every exception that the issue shows, in order.
    pub fn raised(&self) -> Vec<&RaisedException> {
        let mut all = Vec::new();
        for part in &self.parts {
            match &part.kind {
                Kind::Raised(raised) => all.push(raised),
                Kind::Repl(entries) => all.extend(entries.iter().filter_map(|e| e.raised.as_ref())),
                _ => {}
            }
        }
        all
    }
}

/// Compiles a pattern written in this module; a test compiles each of them.
#[allow(clippy::expect_used)]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant")
}
