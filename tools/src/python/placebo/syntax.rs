//! Questions about the syntax tree that the changes depend on.

use std::collections::BTreeSet;

use tree_sitter::Node;

use crate::python::Module;
use crate::python::nodes::{code_children, named_children};

/// Words in the names of decorators and functions that compile the source of another function. Their compilers may
/// reject the inserted expressions.
const COMPILERS: [&str; 9] = [
    "jit",
    "vectorize",
    "script",
    "cython",
    "kernel",
    "overload",
    "intrinsic",
    "stencil",
    "ti.func",
];

/// Names through which code can see its local variables. A function that contains one is left alone.
pub(super) const INTROSPECTION: [&str; 16] = [
    "TYPE_CHECKING",
    "_getframe",
    "compile",
    "currentframe",
    "dir",
    "eval",
    "evaluate",
    "exec",
    "execfile",
    "f_back",
    "f_locals",
    "globals",
    "locals",
    "query",
    "settrace",
    "vars",
];

/// Maximum bytes of a callee's source that is searched for [`COMPILERS`].
const MAX_CALLEE_BYTES: usize = 100;

/// Returns where a function takes an expression: before its first simple statement. Only a function without one in
/// its body takes it in an inner block.
pub(super) fn expression_offset(module: &Module, block: Node<'_>, is_body: bool) -> Option<usize> {
    let mut statements = statements(block);
    if is_body && statements.first().is_some_and(|first| is_string(*first)) {
        statements.remove(0);
    }
    let takes_expression = |statement: &Node<'_>| {
        is_simple(*statement)
            && !is_string(*statement)
            && !matches!(
                statement.kind(),
                "global_statement"
                    | "nonlocal_statement"
                    | "future_import_statement"
                    | "type_alias_statement"
            )
    };
    if let Some(statement) = statements.iter().copied().find(takes_expression) {
        return Some(statement.start_byte());
    }
    statements
        .into_iter()
        .filter(|statement| !is_type_checking(module, *statement))
        .flat_map(|statement| inner_blocks(module, statement))
        .find_map(|block| expression_offset(module, block, false))
}

/// Returns the statements of a block. The block of a `match` consists of its cases.
pub(super) fn statements(block: Node<'_>) -> Vec<Node<'_>> {
    code_children(block).collect()
}

/// Returns the blocks of a compound statement and of its clauses. Definitions have none here.
pub(super) fn inner_blocks<'m>(module: &Module, statement: Node<'m>) -> Vec<Node<'m>> {
    if is_definition(statement) {
        return Vec::new();
    }
    let mut blocks = Vec::new();
    for part in named_children(statement) {
        match part.kind() {
            "block" => blocks.push(part),
            kind if kind.ends_with("_clause") && !is_type_checking(module, part) => {
                blocks.extend(inner_blocks(module, part));
            }
            _ => {}
        }
    }
    blocks
}

pub(super) fn is_definition(statement: Node<'_>) -> bool {
    statement.kind().ends_with("_definition")
}

pub(super) fn is_simple(statement: Node<'_>) -> bool {
    matches!(
        statement.kind(),
        "assert_statement"
            | "break_statement"
            | "continue_statement"
            | "delete_statement"
            | "expression_statement"
            | "future_import_statement"
            | "global_statement"
            | "import_from_statement"
            | "import_statement"
            | "nonlocal_statement"
            | "pass_statement"
            | "raise_statement"
            | "return_statement"
            | "type_alias_statement"
    )
}

/// Returns whether a statement is only a string, possibly in parentheses; at the start of a body it is the docstring.
fn is_string(statement: Node<'_>) -> bool {
    let mut node = statement;
    while matches!(
        node.kind(),
        "expression_statement" | "parenthesized_expression"
    ) && node.named_child_count() == 1
    {
        let Some(inner) = node.named_child(0) else {
            return false;
        };
        node = inner;
    }
    matches!(node.kind(), "string" | "concatenated_string")
}

/// Returns whether a statement or clause has a condition that names `TYPE_CHECKING`.
pub(super) fn is_type_checking(module: &Module, node: Node<'_>) -> bool {
    let condition = node.child_by_field_name("condition");
    condition.is_some_and(|condition| module.source(condition).contains("TYPE_CHECKING"))
}

/// Returns the assignment of a statement if it has one target and no annotation.
pub(super) fn plain_assignment(statement: Node<'_>) -> Option<Node<'_>> {
    let assignment = statement.named_child(0)?;
    let right = assignment.child_by_field_name("right")?;
    let is_plain = assignment.kind() == "assignment"
        && assignment.child_by_field_name("type").is_none()
        && !matches!(right.kind(), "assignment" | "augmented_assignment");
    is_plain.then_some(assignment)
}

/// Returns whether an expression has the same value in another function, which has a frame of its own.
pub(super) fn is_movable(module: &Module, expression: Node<'_>) -> bool {
    let is_allowed = |node: &Node<'_>| match node.kind() {
        "await" | "named_expression" | "yield" => false,
        "identifier" => {
            let name = module.source(*node);
            // A metaclass must know of methods that use `super` or `__class__`.
            let needs_class = matches!(name, "super" | "__class__");
            !INTROSPECTION.contains(&name) && !name.contains("inspect") && !needs_class
        }
        _ => true,
    };
    !module.source(expression).contains("async ") && descendants(expression).iter().all(is_allowed)
}

/// Returns the names that occur as arguments of functions that compile source.
pub(super) fn compiled_names<'m>(module: &'m Module, nodes: &[Node<'m>]) -> BTreeSet<&'m str> {
    let mut names = BTreeSet::new();
    for call in nodes.iter().filter(|node| node.kind() == "call") {
        let (Some(function), Some(arguments)) = (
            call.child_by_field_name("function"),
            call.child_by_field_name("arguments"),
        ) else {
            continue;
        };
        let callee = module.source(function);
        if callee.len() <= MAX_CALLEE_BYTES && is_compiler(callee) {
            let identifiers =
                named_children(arguments).filter(|argument| argument.kind() == "identifier");
            names.extend(identifiers.map(|name| module.source(name)));
        }
    }
    names
}

pub(super) fn is_compiler(source: &str) -> bool {
    let source = source.to_lowercase();
    COMPILERS.iter().any(|word| source.contains(word))
}

/// Returns a node and all nodes below it, in the order of the text.
pub(super) fn descendants(root: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = root.walk();
    let mut nodes = vec![root];
    loop {
        if cursor.goto_first_child() {
            nodes.push(cursor.node());
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return nodes;
            }
        }
        nodes.push(cursor.node());
    }
}
