//! One parsed file.

use tree_sitter::{Node, Parser, Tree};

use super::nodes::{code_children, is_compound};

/// Maximum levels of nesting. Functions that walk a tree recurse, and endlessly nested code must not exhaust the stack.
/// CPython accepts 100 levels of indentation and 200 of parentheses, and some thousand operators in a row.
const MAX_DEPTH: usize = 2000;

/// Clauses that have the indentation of their statement.
const CLAUSES: [&str; 4] = [
    "elif_clause",
    "else_clause",
    "except_clause",
    "finally_clause",
];

/// Bytes of stack for a thread that analyses modules: enough for the deepest tree, also in a build without
/// optimization.
pub const STACK: usize = 32 << 20;

/// Source and syntax tree of one file.
pub struct Module {
    text: String,
    tree: Tree,
    /// The line on which the nesting exceeds [`MAX_DEPTH`]; then the tree is empty.
    too_deep: Option<usize>,
}

/// A syntax error in a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct SyntaxError {
    /// Line number from 1.
    pub line: usize,
    /// Description of the error, as precise as the parser allows.
    pub what: String,
}

impl Module {
    /// Parses a text. Never fails: [`Module::errors`] returns syntax errors.
    pub fn parse(text: impl Into<String>) -> Module {
        let text = text.into();
        let mut parser = Parser::new();
        // Infallible: the grammar is compiled in with this version of the library, and no time limit is set.
        #[allow(clippy::expect_used)]
        let mut parse = |text: &str| {
            parser
                .set_language(&tree_sitter_python::LANGUAGE.into())
                .expect("the grammar fits the library");
            parser
                .parse(text, None)
                .expect("a parse without limits ends in a tree")
        };
        let mut tree = parse(&text);
        let too_deep = passes(&tree, MAX_DEPTH);
        if too_deep.is_some() {
            tree = parse("");
        }
        Module {
            text,
            tree,
            too_deep,
        }
    }

    /// Returns the text that was parsed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the root of the syntax tree.
    pub fn root(&self) -> Node<'_> {
        self.tree.root_node()
    }

    /// Returns the source of a node.
    pub fn source(&self, node: Node<'_>) -> &str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// Returns the dotted name of the function that a call is for; `None` for other nodes.
    pub(crate) fn called_function(&self, node: Node<'_>) -> Option<&str> {
        let function = node.child_by_field_name("function")?;
        (node.kind() == "call").then(|| self.source(function))
    }

    /// Returns the syntax errors in order, at most one for each line.
    pub fn errors(&self) -> Vec<SyntaxError> {
        let mut errors = Vec::new();
        if let Some(line) = self.too_deep {
            let what = format!("it nests more than {MAX_DEPTH} levels deep");
            errors.push(SyntaxError { line, what });
        }
        match self.root().has_error() {
            true => self.collect_errors(self.root(), &mut errors),
            false => self.collect_indentation_errors(self.root(), &mut errors),
        }
        errors.dedup_by_key(|e| e.line);
        errors
    }

    fn collect_errors(&self, node: Node<'_>, errors: &mut Vec<SyntaxError>) {
        if node.is_missing() {
            errors.push(error_at(node, &format!("expected `{}`", node.kind())));
        } else if node.is_error() {
            let line = self.source(node).lines().next().unwrap_or_default();
            let text: String = line.chars().take(60).collect();
            let what = format!("invalid syntax at `{}`", text.trim());
            errors.push(error_at(node, &what));
        } else if node.has_error() {
            let mut cursor = node.walk();
            for child in node.children(&mut cursor) {
                self.collect_errors(child, errors);
            }
        }
    }

    /// Collects blocks without statements, and statements that are not indented like the first one of their block: the
    /// grammar accepts both.
    fn collect_indentation_errors(&self, node: Node<'_>, errors: &mut Vec<SyntaxError>) {
        let is_block = node.kind() == "block";
        if is_block && code_children(node).next().is_none() {
            errors.push(error_at(node, "expected an indented block"));
        }
        let mut expected = match node.kind() {
            "module" => Some(""),
            "block" => None,
            _ => self.own_indentation(node),
        };
        let has_statements = is_block || matches!(node.kind(), "module" | "decorated_definition");
        for child in code_children(node) {
            let kind = child.kind();
            if (has_statements || CLAUSES.contains(&kind))
                && let Some(indentation) = self.own_indentation(child)
                && *expected.get_or_insert(indentation) != indentation
            {
                let what = "its indentation does not match the lines above";
                errors.push(error_at(child, what));
            }
            if is_compound(kind) {
                self.collect_indentation_errors(child, errors);
            }
        }
    }

    /// Returns the indentation of a node that begins a logical line. Python starts counting after a form feed.
    fn own_indentation(&self, node: Node<'_>) -> Option<&str> {
        let above = self.text.get(..node.start_byte())?;
        let (rest, indentation) = above.rsplit_once('\n').unwrap_or(("", above));
        let is_first = indentation.trim_matches([' ', '\t', '\x0c']).is_empty();
        let is_continued = rest.trim_end().ends_with('\\');
        (is_first && !is_continued).then(|| indentation.rsplit('\x0c').next().unwrap_or_default())
    }

    /// Returns errors that `before` did not have. They are compared by text, not by line, so moved errors do not count.
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

fn error_at(node: Node<'_>, what: &str) -> SyntaxError {
    SyntaxError {
        line: node.start_position().row + 1,
        what: what.to_owned(),
    }
}

/// Returns the first line on which a tree is deeper than `max_depth` levels.
fn passes(tree: &Tree, max_depth: usize) -> Option<usize> {
    let mut cursor = tree.walk();
    let mut depth = 0;
    loop {
        if cursor.goto_first_child() {
            depth += 1;
            if depth > max_depth {
                return Some(cursor.node().start_position().row + 1);
            }
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return None;
            }
            depth -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
