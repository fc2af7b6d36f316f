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

/// Returns the class or function below its decorators; other nodes stay as they are.
pub(super) fn definition_of(node: Node<'_>) -> Node<'_> {
    match node.kind() {
        "decorated_definition" => node.child_by_field_name("definition").unwrap_or(node),
        _ => node,
    }
}

/// Returns a node and all nodes below it, but nothing below a node that `enters` rejects. This does not recurse,
/// because a submitted test may nest deeply. The order is unspecified.
pub(super) fn descendants<'t>(
    node: Node<'t>,
    enters: impl Fn(Node<'t>) -> bool,
) -> impl Iterator<Item = Node<'t>> {
    let mut open = vec![node];
    std::iter::from_fn(move || {
        let node = open.pop()?;
        if enters(node) {
            open.extend(named_children(node));
        }
        Some(node)
    })
}

/// Returns whether a node of this kind may hold other statements.
pub(super) fn is_compound(kind: &str) -> bool {
    let ends = ["_statement", "_clause", "definition"];
    kind == "block" || ends.iter().any(|end| kind.ends_with(end))
}

/// Returns whether a node is a class or a function, whose body does not run where it is defined.
pub(super) fn is_scope(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "function_definition" | "class_definition" | "lambda"
    )
}
