//! Assignments at the top level of a module: its constants.

use tree_sitter::Node;

use super::Module;
use super::nodes::{is_compound, named_children};

/// An assignment. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The names that it binds; targets such as `a.b` or `a[0]` do not count.
    pub names: Vec<String>,
    /// First line.
    pub first: usize,
    /// Last line, inclusive.
    pub last: usize,
}

impl Module {
    /// Returns the assignments at the module's top level, including those under `if`, `try` and `with`.
    pub fn assignments(&self) -> Vec<Assignment> {
        let mut assignments = Vec::new();
        self.collect_assignments(self.root(), &mut assignments);
        assignments
    }

    fn collect_assignments(&self, node: Node<'_>, assignments: &mut Vec<Assignment>) {
        for child in named_children(node) {
            match child.kind() {
                "expression_statement" => {
                    let mut names = Vec::new();
                    let mut next = child.named_child(0).filter(|n| n.kind() == "assignment");
                    while let Some(assignment) = next {
                        if let Some(target) = assignment.child_by_field_name("left") {
                            self.targets(target, &mut names);
                        }
                        // `a = b = 1`
                        let right = assignment.child_by_field_name("right");
                        next = right.filter(|n| n.kind() == "assignment");
                    }
                    if !names.is_empty() {
                        assignments.push(Assignment {
                            names,
                            first: child.start_position().row + 1,
                            last: super::definitions::last_line(child),
                        });
                    }
                }
                kind if is_compound(kind) && !kind.ends_with("definition") => {
                    self.collect_assignments(child, assignments);
                }
                _ => {}
            }
        }
    }

    fn targets(&self, node: Node<'_>, names: &mut Vec<String>) {
        match node.kind() {
            "identifier" => names.push(self.source(node).to_owned()),
            "pattern_list" | "tuple_pattern" | "list_pattern" | "list_splat_pattern" => {
                for child in named_children(node) {
                    self.targets(child, names);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    #[test]
    fn top_level_constants_are_found() {
        let module = Module::parse(
            "A = 1\nB: int = [\n  2,\n]\nC, (D, *E) = F = x\na.b = 1\nif A:\n    G = 1\nelse:\n    G = 2\ndef f():\n    H = 1\nclass K:\n    I = 1\n",
        );
        let assignments: Vec<(String, usize, usize)> = module
            .assignments()
            .into_iter()
            .map(|a| (a.names.join(" "), a.first, a.last))
            .collect();
        let expected = [
            ("A", 1, 1),
            ("B", 2, 4),
            ("C D E F", 5, 5),
            ("G", 8, 8),
            ("G", 10, 10),
        ];
        assert_eq!(assignments, expected.map(|(n, f, l)| (n.to_owned(), f, l)));
    }
}
