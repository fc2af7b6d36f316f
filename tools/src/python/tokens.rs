//! Reduces code to the tokens that determine its meaning, without comments, layout, docstrings, the choice of quotes,
//! and trailing commas.

use tree_sitter::Node;

use super::Module;
use super::nodes::{code_children, named_children};

/// Returns the tokens of a node, in order. `skip` leaves out whole nodes.
pub(super) fn tokens(
    module: &Module,
    node: Node<'_>,
    skip: &dyn Fn(Node<'_>) -> bool,
) -> Vec<String> {
    let mut out = Vec::new();
    if !is_docstring(node) {
        collect(module, node, is_body(node), skip, &mut out);
    }
    out
}

fn collect(
    module: &Module,
    node: Node<'_>,
    is_body: bool,
    skip: &dyn Fn(Node<'_>) -> bool,
    out: &mut Vec<String>,
) {
    if node.kind() == "comment" || node.kind() == "line_continuation" || skip(node) {
        return;
    }
    let source = module.source(node);
    let token = match node.kind() {
        // Mark where a string begins; the prefix `u` has no meaning.
        "string_start" => {
            let prefix = source.trim_end_matches(['"', '\'']).to_ascii_lowercase();
            Some(format!("str:{}", prefix.replace('u', "")))
        }
        "string_end" => Some("str-end".to_owned()),
        kind if kind == "string_content" || node.child_count() == 0 => Some(source.to_owned()),
        _ => None,
    };
    if let Some(token) = token {
        out.extend(Some(token).filter(|token| !token.is_empty()));
        return;
    }
    // Python has no token of its own for the end of a block.
    let is_block = node.kind() == "block";
    if is_block {
        out.push("{".to_owned());
    }
    let mut cursor = node.walk();
    let children: Vec<Node<'_>> = node
        .children(&mut cursor)
        .filter(|c| c.kind() != "comment")
        .collect();
    // Determine this here, because looking up a node's parent starts at the root of the tree.
    let docstring = children
        .iter()
        .find(|child| child.is_named())
        .filter(|child| is_body && is_string(**child))
        .map(Node::id);
    let named_count = children.iter().filter(|c| c.is_named()).count();
    for (at, child) in children.iter().enumerate() {
        let before_closer = children
            .get(at + 1)
            .is_some_and(|n| matches!(n.kind(), ")" | "]" | "}"));
        let makes_tuple =
            matches!(node.kind(), "tuple" | "subscript" | "tuple_pattern") && named_count <= 2;
        if child.kind() == "," && before_closer && !makes_tuple {
            continue;
        }
        if child.kind() == ";" || Some(child.id()) == docstring {
            continue;
        }
        let is_body = child.kind() == "block" && is_definition(node);
        collect(module, *child, is_body, skip, out);
    }
    if is_block {
        out.push("}".to_owned());
    }
}

/// Returns whether a node is a string statement that is the first one of a module, a class or a function.
pub(super) fn is_docstring(node: Node<'_>) -> bool {
    if !is_string(node) {
        return false;
    }
    let Some(parent) = node.parent() else {
        return false;
    };
    is_body(parent)
        && code_children(parent)
            .next()
            .is_some_and(|c| c.id() == node.id())
}

fn is_string(node: Node<'_>) -> bool {
    node.kind() == "expression_statement"
        && node.named_child_count() == 1
        && node.named_child(0).is_some_and(|c| c.kind() == "string")
}

/// Returns whether a node holds the statements of a module, a class or a function.
fn is_body(node: Node<'_>) -> bool {
    match node.kind() {
        "module" => true,
        "block" => node.parent().is_some_and(is_definition),
        _ => false,
    }
}

fn is_definition(node: Node<'_>) -> bool {
    matches!(node.kind(), "function_definition" | "class_definition")
}

/// Returns the tokens of a whole text; two texts with equal tokens have the same meaning.
pub fn code_tokens(text: &str) -> Vec<String> {
    let module = Module::parse(text);
    let mut out = Vec::new();
    for statement in named_children(module.root()) {
        collect(&module, statement, false, &|_| false, &mut out);
    }
    out
}
