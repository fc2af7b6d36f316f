//! One parsed file.

use tree_sitter::{Node, Parser, Tree};

/// Source and syntax tree of one file.
pub struct Module {
    text: String,
    tree: Tree,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong there, as far as the parser can tell.
    pub what: String,
}

impl Module {
    pub fn parse(text: impl Into<String>) -> Module {
        let text = text.into();
        let mut parser = Parser::new();
        // The grammar is compiled in together with this version of the library, and no time limit is set.
        #[allow(clippy::expect_used)]
        let tree = {
            parser
                .set_language(&tree_sitter_python::LANGUAGE.into())
                .expect("the grammar fits the library");
            parser
                .parse(&text, None)
                .expect("a parse without limits ends in a tree")
        };
        Module { text, tree }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn root(&self) -> Node<'_> {
        self.tree.root_node()
    }

    /// The source of a node.
    pub fn source(&self, node: Node<'_>) -> &str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// Places that do not parse, in order, one for a line.
    pub fn errors(&self) -> Vec<SyntaxError> {
        let mut found = Vec::new();
        if self.root().has_error() {
            self.collect_errors(self.root(), &mut found);
        }
        found.dedup_by_key(|e| e.line);
        found
    }

    fn collect_errors(&self, node: Node<'_>, found: &mut Vec<SyntaxError>) {
        let line = node.start_position().row + 1;
        if node.is_missing() {
            found.push(SyntaxError {
                line,
                what: format!("expected `{}`", node.kind()),
            });
        } else if node.is_error() {
            let text: String = self
                .source(node)
                .lines()
                .next()
                .unwrap_or_default()
                .chars()
                .take(60)
                .collect();
            found.push(SyntaxError {
                line,
                what: format!("invalid syntax at `{}`", text.trim()),
            });
        } else if node.has_error() {
            let mut cursor = node.walk();
            for child in node.children(&mut cursor) {
                self.collect_errors(child, found);
            }
        }
    }

    /// Errors that `before` did not have: by what they say, not by line, so that moved ones do not count.
    pub fn new_errors(&self, before: Option<&Module>) -> Vec<SyntaxError> {
        let mut old: Vec<String> = before
            .map(|m| m.errors().into_iter().map(|e| e.what).collect())
            .unwrap_or_default();
        self.errors()
            .into_iter()
            .filter(|e| match old.iter().position(|what| *what == e.what) {
                Some(at) => {
                    old.swap_remove(at);
                    false
                }
                None => true,
            })
            .collect()
    }
}
