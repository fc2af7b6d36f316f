//! Outputs that the issue states for its code.

use testwright_sandboxes::Pattern;

use super::extract::{Polarity, is_exception_name};

/// A text that the issue gives as the result or output of a step.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StatedOutput {
    pub text: String,
    pub role: Role,
    /// Sentence of the issue with the statement, if it was in one.
    pub sentence: String,
}

impl StatedOutput {
    pub(super) fn new(text: &str, role: Role, sentence: &str) -> StatedOutput {
        StatedOutput {
            text: text.to_owned(),
            role,
            sentence: sentence.to_owned(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The expected output.
    Right,
    /// A text that the output should contain.
    Part,
    /// The actual output, which is wrong.
    Wrong,
    /// The actual output, which is right.
    Fine,
    /// The actual output, without a judgement.
    Shown,
}

impl From<Polarity> for Role {
    fn from(stance: Polarity) -> Role {
        match stance {
            Polarity::Expected => Role::Right,
            Polarity::Bad => Role::Wrong,
            Polarity::Good => Role::Fine,
            Polarity::Unknown => Role::Shown,
        }
    }
}

/// Returns the value in a section of an issue form that has nothing else, such as `4` below "Expected result".
pub(super) fn value_in_section(heading: &str, text: &str) -> Option<String> {
    static LITERAL: Pattern = Pattern::new(
        r#"^(?:True|False|None|-?\d[\d.e+-]*|'[^']*'|"[^"]*"|\[(?:['"\d(\[{-].*)?\]|\((?:['"\d(\[{-].*)?\)|\{(?:['"\d(-].*)?\})$"#,
    );
    let states = ["actual", "current", "expected", "desired"];
    let text = text.trim();
    let code = text.trim_matches('`');
    (states.iter().any(|word| heading.contains(word)) && LITERAL.is_match(code))
        .then(|| code.to_owned())
}

/// Returns the expected value in a comment such as `should be 3` or `-> 3 expected`.
pub(super) fn right_in(note: &str) -> Option<String> {
    static SHOULD: Pattern = Pattern::new(
        r"(?i)(?:should(?: be| return| give| print| equal| yield)|expected?(?: is| to be| to get)?:?|supposed to be|must be)\s+(`[^`]+`|\S.*)$",
    );
    let captures = SHOULD.captures(note)?;
    let text = captures[1]
        .trim_matches('`')
        .trim()
        .trim_end_matches(['.', '!'])
        .to_owned();
    let plain = text.contains(['(', '[', '\'', '"', '{']) || !text.contains(' ');
    // An expected exception is not a value.
    (plain && !is_exception_name(&text)).then_some(text)
}

#[cfg(test)]
mod tests;
