//! Rules for untrusted text, such as names in datasets and predictions, and the output of tests and programs: which
//! characters a name may contain, and how other text is displayed.

use std::fmt::Write as _;

/// Maximum characters of a name, so that it fits into a path and into a table.
pub const MAX_NAME_CHARS: usize = 200;

/// Returns whether a character is invisible or changes the display of others: terminal controls, direction marks,
/// zero-width spaces, tags.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Returns the first invisible character of a text.
pub fn find_invisible(text: &str) -> Option<char> {
    text.chars().find(|c| is_unseen(*c))
}

/// Reason why a text is not a valid name. Messages continue "`field` …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The text contains this invisible character.
    #[error("contains an invisible character (U+{:04X})", u32::from(*.0))]
    Unseen(char),
    /// The text exceeds the maximum length of a name.
    #[error("is longer than {MAX_NAME_CHARS} characters")]
    TooLong,
}

/// Checks that a text is a valid name.
///
/// # Errors
///
/// Fails if the text is too long, or contains an invisible character.
pub fn check_name(text: &str) -> Result<(), NameError> {
    if let Some(c) = find_invisible(text) {
        return Err(NameError::Unseen(c));
    }
    if text.chars().nth(MAX_NAME_CHARS).is_some() {
        return Err(NameError::TooLong);
    }
    Ok(())
}

/// Returns a text on one line, with invisible characters escaped, and shortened to at most `most` characters.
pub fn excerpt(text: &str, most: usize) -> String {
    let mut excerpt = visible(text.chars().take(most), |_| false);
    if text.chars().nth(most).is_some() {
        excerpt.push('…');
    }
    excerpt
}

/// Returns the full text with its line breaks, and with invisible characters escaped.
pub fn escape_lines(text: &str) -> String {
    visible(text.chars(), |c| matches!(c, '\n' | '\t'))
}

fn visible(text: impl Iterator<Item = char>, is_allowed: fn(char) -> bool) -> String {
    let mut output = String::new();
    for c in text {
        match c {
            '\n' | '\t' if !is_allowed(c) => output.push(' '),
            c if is_unseen(c) && !is_allowed(c) => {
                // Writing to a string cannot fail.
                let _ = write!(output, "\\u{{{:x}}}", u32::from(c));
            }
            c => output.push(c),
        }
    }
    output
}

#[cfg(test)]
mod tests;
