//! Parts of nodes of a syntax tree.

use tree_sitter::Node;

/// Returns the children of a node, without keywords and punctuation.
pub(super) fn named_children(node: Node<'_>) -> impl DoubleEndedIterator<Item = Node<'_>> {
    let children: Vec<Node<'_>> = node.named_children(&mut node.walk()).collect();
    children.into_iter()
}

/// Returns the named children that are neither comments nor backslashes at the ends of lines.
pub(super) fn code_children(node: Node<'_>) -> impl DoubleEndedIterator<Item = Node<'_>> {
    named_children(node).filter(|child| !matches!(child.kind(), "comment" | "line_continuation"))
}

/// Returns the children with this role, e.g. `name` in a list of imports.
pub(super) fn field_children<'t>(
    node: Node<'t>,
    field: &str,
) -> impl DoubleEndedIterator<Item = Node<'t>> {
    let children: Vec<Node<'t>> = node
        .children_by_field_name(field, &mut node.walk())
        .collect();
    children.into_iter()
}
