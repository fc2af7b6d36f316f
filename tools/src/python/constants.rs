//! Recognizes constant expressions.

use tree_sitter::Node;

/// Returns whether a node is a constant as in Python's own syntax tree, including parentheses around it and a number's
/// sign. Strings with interpolated values are not constants.
pub(super) fn is_constant(node: Node<'_>) -> bool {
    let mut cursor = node.walk();
    match node.kind() {
        "integer" | "float" | "true" | "false" | "none" | "ellipsis" => true,
        "string" => !node
            .named_children(&mut cursor)
            .any(|part| part.kind() == "interpolation"),
        "concatenated_string" => node.named_children(&mut cursor).all(is_constant),
        "parenthesized_expression" => {
            let mut parts = node
                .named_children(&mut cursor)
                .filter(|part| part.kind() != "comment");
            parts.next().is_some_and(is_constant)
        }
        "unary_operator" => node
            .child_by_field_name("argument")
            .is_some_and(|number| matches!(number.kind(), "integer" | "float")),
        _ => false,
    }
}
