//! Recognizes constant expressions.

use tree_sitter::Node;

use super::nodes::{code_children, named_children};

/// Returns whether a node is a constant as in Python's own syntax tree, including parentheses around it and a number's
/// sign. Strings with interpolated values are not constants.
pub(super) fn is_constant(node: Node<'_>) -> bool {
    match node.kind() {
        "integer" | "float" | "true" | "false" | "none" | "ellipsis" => true,
        "string" => !named_children(node).any(|part| part.kind() == "interpolation"),
        "concatenated_string" => named_children(node).all(is_constant),
        "parenthesized_expression" => code_children(node).next().is_some_and(is_constant),
        "unary_operator" => node
            .child_by_field_name("argument")
            .is_some_and(|number| matches!(number.kind(), "integer" | "float")),
        _ => false,
    }
}
