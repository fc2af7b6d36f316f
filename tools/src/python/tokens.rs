//! Code without what does not matter to its meaning: comments, layout, docstrings, the choice of quotes,
//! trailing commas.

use tree_sitter::Node;

use super::Module;

/// The tokens of a node, in order. `skip` leaves out whole nodes.
pub fn tokens(module: &Module, node: Node<'_>, skip: &dyn Fn(Node<'_>) -> bool) -> Vec<String> {
    let mut out = Vec::new();
    collect(module, node, skip, &mut out);
    out
}

fn collect(
    module: &Module,
    node: Node<'_>,
    skip: &dyn Fn(Node<'_>) -> bool,
    out: &mut Vec<String>,
) {
    if node.kind() == "comment"
        || node.kind() == "line_continuation"
        || is_docstring(node)
        || skip(node)
    {
        return;
    }
    match node.kind() {
        "string_start" => {
            let prefix = module
                .source(node)
                .trim_end_matches(['"', '\''])
                .to_ascii_lowercase();
            // Mark where a string begins; `u` says nothing.
            out.push(format!("str:{}", prefix.replace('u', "")));
            return;
        }
        "string_end" => {
            out.push("str-end".to_owned());
            return;
        }
        "string_content" => {
            out.push(module.source(node).to_owned());
            return;
        }
        _ => {}
    }
    if node.child_count() == 0 {
        let text = module.source(node);
        if !text.is_empty() {
            out.push(text.to_owned());
        }
        return;
    }
    // Where a block ends is no token of its own in Python.
    let is_block = node.kind() == "block";
    if is_block {
        out.push("{".to_owned());
    }
    let mut cursor = node.walk();
    let children: Vec<Node<'_>> = node
        .children(&mut cursor)
        .filter(|c| c.kind() != "comment")
        .collect();
    let named = children.iter().filter(|c| c.is_named()).count();
    for (at, child) in children.iter().enumerate() {
        let before_closer = children
            .get(at + 1)
            .is_some_and(|n| matches!(n.kind(), ")" | "]" | "}"));
        let makes_tuple =
            matches!(node.kind(), "tuple" | "subscript" | "tuple_pattern") && named <= 2;
        if child.kind() == "," && before_closer && !makes_tuple {
            continue;
        }
        if child.kind() == ";" {
            continue;
        }
        collect(module, *child, skip, out);
    }
    if is_block {
        out.push("}".to_owned());
    }
}

/// A string that stands first in the body of a function, class or module.
pub fn is_docstring(node: Node<'_>) -> bool {
    if node.kind() != "expression_statement" || node.named_child_count() != 1 {
        return false;
    }
    if node.named_child(0).is_none_or(|c| c.kind() != "string") {
        return false;
    }
    let Some(parent) = node.parent() else {
        return false;
    };
    let is_body = match parent.kind() {
        "module" => true,
        "block" => parent
            .parent()
            .is_some_and(|p| matches!(p.kind(), "function_definition" | "class_definition")),
        _ => false,
    };
    let mut cursor = parent.walk();
    is_body
        && parent
            .named_children(&mut cursor)
            .find(|c| c.kind() != "comment")
            .is_some_and(|c| c.id() == node.id())
}
