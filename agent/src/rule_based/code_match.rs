//! Finds code that a sentence quotes in the statements of an issue.

use testwright_sandboxes::Pattern;

use super::extract::balanced;

/// Returns whether a statement contains the quoted code. The receiver of a method may be its class: `Box.open(3)`.
pub(super) fn contains(statement: &str, code: &str) -> bool {
    static CALL: Pattern =
        Pattern::new(r"(?s)^(?:(?:[A-Za-z_]\w*\.)*[A-Z]\w*\.|)([A-Za-z_]\w*\(.*\))$");
    if !balanced(code) {
        return false;
    }
    let (statement, code) = (normalized(statement), normalized(code));
    occurs(&statement, &code, false)
        || CALL
            .captures(&code)
            .is_some_and(|call| occurs(&statement, &format!(".{}", &call[1]), true))
}

/// Returns whether a statement calls the function with this dotted name, which may have empty parentheses.
pub(super) fn calls(statement: &str, function: &str) -> bool {
    let name = function.split('(').next().unwrap_or_default();
    let name = name.rsplit('.').next().unwrap_or_default();
    occurs(&normalized(statement), &format!("{name}("), true)
}

/// Returns the code with one kind of quotes, and with white space only between words.
fn normalized(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut is_spaced = false;
    for c in code.chars() {
        if c.is_whitespace() {
            is_spaced = true;
            continue;
        }
        if is_spaced && is_word(c) && out.chars().next_back().is_some_and(is_word) {
            out.push(' ');
        }
        is_spaced = false;
        out.push(if c == '"' { '\'' } else { c });
    }
    out
}

/// Returns whether the text has the code as a whole; `as_method` allows a dot before it.
fn occurs(text: &str, code: &str, as_method: bool) -> bool {
    let starts_word = code.chars().next().is_some_and(is_word);
    let ends_word = code.chars().next_back().is_some_and(is_word);
    text.match_indices(code).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + code.len()..].chars().next();
        let extends_left = before.is_some_and(|c| is_word(c) || c == '.' && !as_method);
        let extends_right = after.is_some_and(|c| is_word(c) || "([.".contains(c));
        !(starts_word && extends_left || ends_word && extends_right)
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_code_is_found_as_whole() {
        assert!(contains("y = x.pop( -15 )", "x.pop(-15)"));
        assert!(contains("f(\"a\") in x", "f('a')"));
        assert!(contains("4  in x", "4 in x"));
        assert!(!contains("14 in x", "4 in x"));
        assert!(!contains("box.pop(-15)", "x.pop(-15)"));
        assert!(!contains("self.x.pop(-15)", "x.pop(-15)"));
        assert!(!contains("x.size(1)", "x.size"));
        assert!(!contains("x.pop(-15)", "x.pop("));
    }

    #[test]
    fn class_may_stand_for_receiver() {
        assert!(contains("x.pop(-15)", "IndexedSet.pop(-15)"));
        assert!(contains("x.pop(-15)", "pop(-15)"));
        assert!(!contains("x.pop(-15)", "y.pop(-15)"));
        assert!(!contains("x.pop(-1)", "IndexedSet.pop(-15)"));
    }

    #[test]
    fn calls_of_function_are_found() {
        assert!(calls("x.pop(-15)", "IndexedSet.pop()"));
        assert!(calls("low(3)", "low"));
        assert!(!calls("slow(3)", "low"));
    }
}
