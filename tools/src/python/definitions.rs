//! The classes and functions of a file, with their nesting.

use std::ops::Range;

use serde::Serialize;
use tree_sitter::Node;

use super::Module;
use super::nodes::{code_children, definition_of, is_compound, named_children};

/// The kind of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A class.
    Class,
    /// A function or method, also with `async`.
    Function,
}

/// A class or function. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Whether it is a class or a function.
    pub kind: Kind,
    /// Name without the enclosing scopes.
    pub name: String,
    /// Names of the enclosing classes and functions and its own, joined by dots.
    pub qualified: String,
    /// Sources of the decorators, with `@`.
    pub decorators: Vec<String>,
    /// `def f(a, b=1) -> int` or `class A(B)`, on one line.
    pub signature: String,
    /// First line, decorators included.
    pub first: usize,
    /// The line of `def` or `class`.
    pub line: usize,
    /// Last line, inclusive.
    pub last: usize,
    /// Byte range of the whole definition, decorators included.
    pub bytes: Range<usize>,
    /// Byte range of its body.
    pub body: Range<usize>,
    /// Columns of indentation.
    pub indent: usize,
    /// Definitions nested in its body, in order.
    pub children: Vec<Definition>,
}

/// The position of a docstring, with lines counted from 1.
#[derive(Debug, PartialEq, Eq)]
pub struct Docstring<'m> {
    /// First line.
    pub first: usize,
    /// Last line, inclusive.
    pub last: usize,
    /// Source with its quotes.
    pub source: &'m str,
}

impl Docstring<'_> {
    /// Returns the first line that is not empty.
    pub fn summary(&self) -> &str {
        let text = self.source.trim_start_matches(|c: char| c.is_alphabetic());
        text.trim_matches(['"', '\''])
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .unwrap_or_default()
    }
}

impl Module {
    /// Returns the top-level definitions with their nested ones. Definitions under `if`, `try` and `with` belong to the
    /// level of that statement.
    pub fn outline(&self) -> Vec<Definition> {
        let mut definitions = Vec::new();
        self.collect(self.root(), "", &mut definitions);
        definitions
    }

    fn collect(&self, node: Node<'_>, prefix: &str, definitions: &mut Vec<Definition>) {
        for child in named_children(node) {
            match child.kind() {
                "decorated_definition" | "class_definition" | "function_definition" => {
                    definitions.extend(self.definition(child, definition_of(child), prefix))
                }
                // Statements that contain blocks, and parse errors.
                kind if is_compound(kind) || child.is_error() => {
                    self.collect(child, prefix, definitions);
                }
                _ => {}
            }
        }
    }

    fn definition(&self, whole: Node<'_>, inner: Node<'_>, prefix: &str) -> Option<Definition> {
        let name = self.source(inner.child_by_field_name("name")?).to_owned();
        let body = inner.child_by_field_name("body")?;
        let qualified = match prefix {
            "" => name.clone(),
            _ => format!("{prefix}.{name}"),
        };
        let head = self
            .text()
            .get(inner.start_byte()..body.start_byte())
            .unwrap_or_default();
        let head = without_comments(head);
        let signature = head.split_whitespace().collect::<Vec<_>>().join(" ");
        let decorators = named_children(whole)
            .filter(|c| c.kind() == "decorator")
            .map(|c| self.source(c).trim_end().to_owned())
            .collect();
        let mut children = Vec::new();
        self.collect(body, &qualified, &mut children);
        Some(Definition {
            kind: match inner.kind() {
                "class_definition" => Kind::Class,
                _ => Kind::Function,
            },
            name,
            qualified,
            decorators,
            signature: signature
                .trim_end_matches(':')
                .trim_end()
                .replace("( ", "(")
                .replace(", )", ")")
                .replace(" )", ")"),
            first: whole.start_position().row + 1,
            line: inner.start_position().row + 1,
            last: last_line(whole),
            bytes: whole.byte_range(),
            body: body.byte_range(),
            indent: whole.start_position().column,
            children,
        })
    }

    /// Returns the definitions of a qualified name; several if it is defined more than once. Also accepts
    /// `a.<locals>.b` and `a::b`.
    pub fn find(&self, qualified: &str) -> Vec<Definition> {
        let name = plain_name(qualified);
        flatten(&self.outline())
            .into_iter()
            .filter(|d| d.qualified == name)
            .cloned()
            .collect()
    }

    /// Returns the docstring of a class or function.
    pub fn docstring(&self, definition: &Definition) -> Option<Docstring<'_>> {
        let body = &definition.body;
        let innermost = self.root().descendant_for_byte_range(body.start, body.end);
        // If a block holds a single node, both have the same bytes.
        let block = std::iter::successors(innermost, |node| node.parent())
            .find(|node| node.kind() == "block")?;
        let first = code_children(block).next()?;
        let string = match first.kind() {
            "expression_statement" => first.named_child(0)?,
            _ => first,
        };
        (string.kind() == "string").then(|| Docstring {
            first: string.start_position().row + 1,
            last: last_line(string),
            source: self.source(string),
        })
    }
}

/// Converts a qualified name to the form that this module uses.
pub fn plain_name(qualified: &str) -> String {
    qualified
        .trim()
        .trim_end_matches("()")
        .replace(".<locals>", "")
        .replace("::", ".")
}

/// Returns all definitions, outer ones before inner ones.
pub fn flatten(outline: &[Definition]) -> Vec<&Definition> {
    let mut all = Vec::new();
    for definition in outline {
        all.push(definition);
        all.extend(flatten(&definition.children));
    }
    all
}

/// Returns the innermost definition around a line.
pub fn in_function(outline: &[Definition], line: usize) -> Option<&Definition> {
    let outer = outline.iter().find(|d| d.first <= line && line <= d.last)?;
    Some(in_function(&outer.children, line).unwrap_or(outer))
}

/// Returns the last line that contains part of the node: a node may extend to the start of the next line.
pub(super) fn last_line(node: Node<'_>) -> usize {
    let end = node.end_position();
    match end.column {
        0 if end.row > node.start_position().row => end.row,
        _ => end.row + 1,
    }
}

/// Removes `# …` up to the ends of lines, except inside strings.
fn without_comments(head: &str) -> String {
    let mut out = String::new();
    for line in head.split_inclusive('\n') {
        let mut quote = None;
        let cut = line.char_indices().find(|&(_, c)| match (quote, c) {
            (None, '#') => true,
            (None, '"' | '\'') => {
                quote = Some(c);
                false
            }
            (Some(q), c) if q == c => {
                quote = None;
                false
            }
            _ => false,
        });
        out.push_str(cut.map_or(line, |(at, _)| &line[..at]));
        out.push(' ');
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    #[test]
    fn docstrings_have_their_lines() {
        let source = "def a():\n    # Why.\n    r\"\"\"\n    Does it.\n\n    Well.\n    \"\"\"\n    return 1\n\nclass B:\n    'Short.'\n\n\
                      def c():\n    x = 'none'\n\ndef d(): 'One line.'\n\ndef e(): pass\n";
        let module = Module::parse(source);
        let docstring_of = |name: &str| {
            let definition = module.find(name).remove(0);
            let docstring = module.docstring(&definition)?;
            Some((
                docstring.first,
                docstring.last,
                docstring.summary().to_owned(),
            ))
        };
        assert_eq!(docstring_of("a"), Some((3, 7, "Does it.".to_owned())));
        assert_eq!(docstring_of("B"), Some((11, 11, "Short.".to_owned())));
        assert_eq!(docstring_of("c"), None);
        assert_eq!(docstring_of("d"), Some((16, 16, "One line.".to_owned())));
        assert_eq!(docstring_of("e"), None);
    }
}
