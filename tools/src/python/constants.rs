//! Expressions that say their value themselves.

use tree_sitter::Node;

/// A constant as Python's own syntax tree has it, brackets around it and a number's sign included. Strings with values put in
/// are none.
pub fn is_constant(node: Node<'_>) -> bool {
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
