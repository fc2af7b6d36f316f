//! Explains why a line did not run: finds the deciding line from the lines that ran.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::Module;
use super::nodes::named_children;

/// A line that prevented others from running.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DecidingLine {
    /// Line number from 1.
    pub line: usize,
    /// Source of the line, on one line.
    pub code: String,
    /// Description that follows the code: `was never true`.
    pub what: String,
}

impl Module {
    /// Finds the innermost line that decided that a statement did not run. `executed` holds the first lines of the
    /// statements that ran. Returns `None` if nothing around the line ran, or the file does not parse there.
    pub fn deciding_line(&self, line: usize, executed: &BTreeSet<usize>) -> Option<DecidingLine> {
        let row = line.checked_sub(1)?;
        let text = self.text().lines().nth(row)?;
        let column = text.len() - text.trim_start().len();
        let at = tree_sitter::Point { row, column };
        let mut node = self.root().descendant_for_point_range(at, at)?;
        while let Some(parent) = node.parent() {
            let is_body = parent.kind() == "block" || parent.kind() == "module";
            if is_body {
                // The statement before it in its block ran, but execution did not continue.
                if let Some(before) = last_executed_before(node, executed) {
                    return Some(self.decision(first_line(before), "went no further"));
                }
            }
            if parent.kind() == "block"
                && let Some(clause) = parent.parent()
                && let Some(decision) = self.of_clause(clause, executed)
            {
                return Some(decision);
            }
            node = parent;
        }
        None
    }

    /// Finds the line that ran but did not enter the body of a clause.
    fn of_clause(&self, clause: Node<'_>, executed: &BTreeSet<usize>) -> Option<DecidingLine> {
        let (line, what) = match clause.kind() {
            "if_statement" | "elif_clause" | "while_statement" => {
                (first_line(clause), "was never true")
            }
            "for_statement" => (first_line(clause), "had nothing to go through"),
            "case_clause" => (first_line(clause), "did not match"),
            "function_definition" => (first_line(clause), "was never called"),
            "else_clause" => self.before_else(clause, executed)?,
            "except_clause" | "except_group_clause" => {
                if executed.contains(&first_line(clause)) {
                    (first_line(clause), "did not catch what was raised")
                } else {
                    (first_line(clause.parent()?), "raised nothing")
                }
            }
            _ => return None,
        };
        let is_run = executed.contains(&line) || clause.kind() == "case_clause";
        is_run.then(|| self.decision(line, what))
    }

    fn before_else(
        &self,
        clause: Node<'_>,
        executed: &BTreeSet<usize>,
    ) -> Option<(usize, &'static str)> {
        let owner = clause.parent()?;
        let first = first_line(owner);
        match owner.kind() {
            "if_statement" => {
                let mut conditions = named_children(owner)
                    .filter(|child| child.kind() == "elif_clause")
                    .map(first_line);
                let last = conditions.rfind(|line| executed.contains(line));
                Some((last.unwrap_or(first), "was always true"))
            }
            "for_statement" | "while_statement" => Some((first, "never came to its end")),
            "try_statement" => Some((first, "always raised, or was left")),
            _ => None,
        }
    }

    fn decision(&self, line: usize, what: &str) -> DecidingLine {
        let code = self.text().lines().nth(line - 1).unwrap_or_default();
        DecidingLine {
            line,
            code: code.trim().trim_end_matches(':').to_owned(),
            what: what.to_owned(),
        }
    }
}

/// Returns the last statement before this one in the same block that ran, if the block was entered.
fn last_executed_before<'n>(node: Node<'n>, executed: &BTreeSet<usize>) -> Option<Node<'n>> {
    let mut before = node.prev_named_sibling();
    while let Some(sibling) = before {
        let is_definition = matches!(
            sibling.kind(),
            "function_definition" | "class_definition" | "decorated_definition"
        );
        if !is_definition && executed.contains(&first_line(sibling)) {
            return Some(sibling);
        }
        before = sibling.prev_named_sibling();
    }
    None
}

fn first_line(node: Node<'_>) -> usize {
    node.start_position().row + 1
}

#[cfg(test)]
mod tests;
