//! Finds assertions of a test that did not run because an earlier one failed.

use tree_sitter::Node;

use super::Module;
use super::definitions::last_line;
use super::nodes::{descendants, is_scope, named_children};

/// Returns the first and last lines of the assertions after the failed line, in the branch that failed. `first` is the
/// line of the file at which the source begins; lines are counted from 1. Assertions that a loop or a `try` may have
/// run anyway are left out.
pub fn unreached_assertions(source: &str, first: usize, failed: usize) -> Vec<(usize, usize)> {
    let module = Module::parse(source);
    let Some(row) = failed.checked_sub(first) else {
        return Vec::new();
    };
    let mut skipped = Vec::new();
    statements_after(module.root(), row, true, &mut skipped);
    let mut lines = Vec::new();
    for statement in skipped {
        let enters = |node: Node<'_>| !is_scope(node) && !is_assertion(&module, node);
        let assertions = descendants(statement, enters).filter(|node| is_assertion(&module, *node));
        lines.extend(assertions.map(|node| (node.start_position().row + 1, last_line(node))));
    }
    lines.sort_unstable();
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for (start, end) in lines {
        let (start, end) = (start + first - 1, end + first - 1);
        match ranges.last_mut() {
            Some(last) if start <= last.1 + 1 => last.1 = last.1.max(end),
            _ => ranges.push((start, end)),
        }
    }
    ranges
}

/// Returns ranges of lines in words, such as `line 3, lines 5–8`.
pub fn lines_in_words(ranges: &[(usize, usize)]) -> String {
    let words = ranges.iter().map(|(first, last)| match last - first {
        0 => format!("line {first}"),
        _ => format!("lines {first}–{last}"),
    });
    words.collect::<Vec<String>>().join(", ")
}

/// Collects the statements after the one that contains the row, in each enclosing block except the module.
fn statements_after<'m>(node: Node<'m>, row: usize, is_top: bool, out: &mut Vec<Node<'m>>) {
    let holds =
        |node: &Node<'_>| node.start_position().row <= row && row <= node.end_position().row;
    let children: Vec<Node<'m>> = named_children(node).collect();
    let Some(at) = children.iter().position(holds) else {
        return;
    };
    if node.kind() == "block" && !is_top {
        let is_again = node.parent().is_some_and(|parent| {
            matches!(
                parent.kind(),
                "for_statement" | "while_statement" | "try_statement" | "finally_clause"
            )
        });
        if !is_again {
            out.extend(children[at + 1..].iter().copied());
        }
    }
    statements_after(children[at], row, false, out);
}

fn is_assertion(module: &Module, node: Node<'_>) -> bool {
    let function = module.called_function(node);
    let last = function.and_then(|name| name.rsplit('.').next());
    node.kind() == "assert_statement"
        || last.is_some_and(|last| {
            last.starts_with("assert") || matches!(last, "raises" | "warns" | "fail")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = "\
def test_a(self):
    x = f()
    assert x == 1
    assert x == 2
    y = g()
    self.assertEqual(
        y,
        3,
    )
    for i in y:
        assert i
        assert not i
    with pytest.raises(E):
        h()
";

    #[test]
    fn assertions_after_failed_line_are_named() {
        let of = |line| unreached_assertions(TEST, 11, line);
        assert_eq!(of(13), [(14, 14), (16, 19), (21, 23)]);
        assert_eq!(of(14), [(16, 19), (21, 23)]);
        // Assertions in the loop may have run before.
        assert_eq!(of(21), [(23, 23)]);
        assert_eq!(of(24), []);
        assert_eq!(of(5), []);
    }

    #[test]
    fn other_branches_are_not_named() {
        let test = "def test_a():\n    if x:\n        assert a\n        assert b\n    else:\n        assert c\n    assert d\n";
        assert_eq!(unreached_assertions(test, 1, 3), [(4, 4), (7, 7)]);
        let test = "def test_a():\n    try:\n        assert a\n        assert b\n    finally:\n        assert c\n    assert d\n";
        assert_eq!(unreached_assertions(test, 1, 3), [(7, 7)]);
    }
}
