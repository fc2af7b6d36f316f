//! Changes docstrings on code on which a test must fail.

use tree_sitter::Node;

use super::syntax::is_simple;
use super::{Edit, Editor, LineNumbers};

/// Words of code that uses docstrings when it runs. Commands show them as help, and parsers have their grammar there.
const READERS: [&str; 6] = ["__doc__", "getdoc", "click", ".command", "docopt", "yacc"];

/// Words that are added to docstrings.
pub(super) const WORDS: &str = " (as before)";

/// Returns whether code uses docstrings when it runs.
pub(super) fn are_read(text: &str) -> bool {
    READERS.iter().any(|word| text.contains(word))
}

/// Returns the string of a statement that is a docstring if it is the first of a body.
pub(super) fn string_of(statement: Node<'_>) -> Option<Node<'_>> {
    let is_lone = statement.kind() == "expression_statement" && statement.named_child_count() == 1;
    let string = statement.named_child(0).filter(|_| is_lone)?;
    (string.kind() == "string").then_some(string)
}

impl<'m> Editor<'m> {
    /// Replaces, adds or removes a docstring, so that it is that of the other version. If both are the same, words may
    /// be added at its end, unless they may change what a doctest gives. Nothing happens if the code reads docstrings.
    pub(super) fn change_docstring(&mut self, body: Node<'m>, first: Node<'m>) {
        if self.reads_docstrings {
            return;
        }
        let other = self.other.as_ref();
        let other = other.and_then(|other| other.docstring(body));
        match (string_of(first), other) {
            (Some(string), Some("")) if body.parent().is_some() => self.replace(string, "pass"),
            // An import from `__future__` may follow the docstring of a module, but no other statement.
            (Some(string), Some("")) if self.ends_line(string.end_byte()) => {
                self.replace(string, "");
            }
            (None, Some(other)) if !other.is_empty() => self.add_docstring(first, other),
            (Some(string), Some(other))
                if !other.is_empty() && other != self.module.source(string) =>
            {
                self.replace(string, other);
            }
            (Some(string), _) if self.lines == LineNumbers::Moved => self.add_words(string),
            _ => {}
        }
    }

    fn replace(&mut self, node: Node<'m>, text: &str) {
        self.edits.push(Edit {
            start: node.start_byte(),
            end: node.end_byte(),
            text: text.to_owned(),
        });
    }

    /// Returns whether nothing follows on the same line.
    fn ends_line(&self, at: usize) -> bool {
        let rest = self.module.text().get(at..).unwrap_or_default();
        rest.split('\n')
            .next()
            .unwrap_or_default()
            .trim()
            .is_empty()
    }

    fn add_docstring(&mut self, first: Node<'m>, docstring: &str) {
        let offset = first.start_byte();
        match self.indentation(offset) {
            Some(indentation) => {
                let text = format!("{docstring}{}{indentation}", self.line_end);
                self.insert(offset, text);
            }
            None if is_simple(first) => self.insert(offset, format!("{docstring}; ")),
            None => {}
        }
    }

    fn add_words(&mut self, string: Node<'m>) {
        let last = string.child_count().saturating_sub(1);
        let (Some(open), Some(close)) = (string.child(0), string.child(last)) else {
            return;
        };
        let quotes = self.module.source(open);
        let content = self.module.text().get(open.end_byte()..close.start_byte());
        let content = content.unwrap_or_default();
        let last_line = content.rsplit('\n').next().unwrap_or_default();
        let ends_doctest = content.contains(">>>") && !last_line.trim().is_empty();
        let is_plain = matches!(quotes, "\"\"\"" | "'''" | "\"" | "'");
        let is_closed = close.kind() == "string_end";
        if is_plain && is_closed && !content.trim().is_empty() && !ends_doctest {
            self.insert(close.start_byte(), WORDS);
        }
    }
}
