//! Finds a statement with which a test fails whatever the code under test does, such as `assert False`.

use tree_sitter::Node;

use super::Module;
use super::assertions::bare;
use super::constants::is_constant;
use super::nodes::{code_children, definition_of, descendants, is_scope, named_children};

/// Decorators that neither expect an exception nor skip the body of a test, besides most marks of pytest.
const DECORATORS: [&str; 6] = [
    "classmethod",
    "override_settings",
    "skipIf",
    "skipUnless",
    "staticmethod",
    "patch",
];
/// Methods of `unittest.TestCase` that check their first argument.
const OF_ONE: [&str; 4] = [
    "assertFalse",
    "assertIsNone",
    "assertIsNotNone",
    "assertTrue",
];
/// Methods of `unittest.TestCase` that compare their first two arguments.
const OF_TWO: [&str; 12] = [
    "assertAlmostEqual",
    "assertEqual",
    "assertEquals",
    "assertGreater",
    "assertGreaterEqual",
    "assertIn",
    "assertIs",
    "assertIsNot",
    "assertLess",
    "assertLessEqual",
    "assertNotEqual",
    "assertNotIn",
];

/// Returns the line of a statement that a test always runs, and that fails whatever the code under test does.
///
/// `first` is the line of the file at which the source begins, and `failed` the line of the assertion that failed, if
/// it is known; lines are counted from 1. Only statements of the test's own body count, because an `if`, a loop, a
/// `try` or a `with` depends on the code. For the same reason, nothing counts after a `return` or `yield`, or with a
/// decorator that may expect an exception.
pub fn constant_failure(source: &str, first: usize, failed: Option<usize>) -> Option<usize> {
    let module = Module::parse(source);
    let body = test_function(&module)?.child_by_field_name("body")?;
    for statement in named_children(body) {
        let lines = first + statement.start_position().row..=first + statement.end_position().row;
        let has_failed = failed.is_some_and(|line| lines.contains(&line));
        if always_fails(&module, statement)
            || has_failed && checks_only_literals(&module, statement)
        {
            return Some(*lines.start());
        }
        if may_leave(statement) {
            return None;
        }
    }
    None
}

/// Returns the function of the source, unless it has a decorator that may expect an exception.
fn test_function(module: &Module) -> Option<Node<'_>> {
    let statement = code_children(module.root()).next()?;
    let mut children = named_children(statement);
    let expects_error =
        children.any(|child| child.kind() == "decorator" && !is_harmless(module.source(child)));
    let function = definition_of(statement);
    (!expects_error && function.kind() == "function_definition").then_some(function)
}

fn is_harmless(decorator: &str) -> bool {
    let name = decorator.trim_start_matches('@').trim();
    let name = name.split('(').next().unwrap_or_default().trim();
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_mark = name.starts_with("pytest.mark.") && last != "xfail";
    let is_patch = name.starts_with("patch.") || name.contains(".patch.");
    is_mark || is_patch || DECORATORS.contains(&last)
}

/// Returns whether a statement fails each time that it runs.
fn always_fails(module: &Module, statement: Node<'_>) -> bool {
    match statement.kind() {
        "assert_statement" => code_children(statement)
            .next()
            .is_some_and(|condition| is_false(module, condition)),
        "raise_statement" => code_children(statement).next().is_some_and(|raised| {
            let class = raised.child_by_field_name("function").unwrap_or(raised);
            module.source(class) == "AssertionError"
        }),
        _ => called(module, statement) == Some("pytest.fail"),
    }
}

/// Returns whether a condition is false whatever its names refer to.
fn is_false(module: &Module, condition: Node<'_>) -> bool {
    let (mut node, mut negated) = (bare(condition), false);
    // A loop, because a submitted test may nest deeply.
    loop {
        match node.kind() {
            "not_operator" => negated = !negated,
            "boolean_operator" if !negated && has_operator(node, "and") => {
                let right = node.child_by_field_name("right").map(bare);
                if right.and_then(|right| truth(module, right)) == Some(false) {
                    return true;
                }
            }
            _ => return truth(module, node) == Some(negated),
        }
        let inner = node
            .child_by_field_name("argument")
            .or_else(|| node.child_by_field_name("left"));
        match inner {
            Some(inner) => node = bare(inner),
            None => return false,
        }
    }
}

fn has_operator(node: Node<'_>, operator: &str) -> bool {
    let child = node.child_by_field_name("operator");
    child.is_some_and(|child| child.kind() == operator)
}

/// Returns the truth of a literal, if it is obvious.
fn truth(module: &Module, literal: Node<'_>) -> Option<bool> {
    match literal.kind() {
        "true" => Some(true),
        "false" | "none" => Some(false),
        "integer" => {
            let number: u64 = module.source(literal).parse().ok()?;
            Some(number != 0)
        }
        "list" | "tuple" | "dictionary" => (literal.named_child_count() == 0).then_some(false),
        "string" => matches!(module.source(literal), "''" | "\"\"").then_some(false),
        _ => None,
    }
}

/// Returns whether a statement is `self.fail()`, or an assertion that compares only literals.
fn checks_only_literals(module: &Module, statement: Node<'_>) -> bool {
    if statement.kind() == "assert_statement" {
        return code_children(statement).next().is_some_and(is_literal);
    }
    let Some(method) = called(module, statement).and_then(|name| name.strip_prefix("self.")) else {
        return false;
    };
    let compared = match method {
        "fail" => return true,
        _ if OF_ONE.contains(&method) => 1,
        _ if OF_TWO.contains(&method) => 2,
        _ => return false,
    };
    let call = statement.named_child(0);
    let Some(arguments) = call.and_then(|call| call.child_by_field_name("arguments")) else {
        return false;
    };
    let arguments: Vec<Node<'_>> = code_children(arguments).take(compared).collect();
    arguments.len() == compared && arguments.into_iter().all(is_literal)
}

/// Returns the dotted name of the function that an expression statement calls.
fn called<'m>(module: &'m Module, statement: Node<'_>) -> Option<&'m str> {
    let is_expression = statement.kind() == "expression_statement";
    module.called_function(statement.named_child(0).filter(|_| is_expression)?)
}

/// Returns whether an expression consists of literals and operators.
fn is_literal(expression: Node<'_>) -> bool {
    let is_compound = |node: Node<'_>| {
        matches!(
            node.kind(),
            "parenthesized_expression"
                | "unary_operator"
                | "not_operator"
                | "boolean_operator"
                | "comparison_operator"
                | "binary_operator"
                | "concatenated_string"
                | "list"
                | "tuple"
                | "set"
                | "dictionary"
                | "pair"
        )
    };
    descendants(expression, is_compound)
        .all(|node| is_compound(node) || is_constant(node) || node.kind() == "comment")
}

/// Returns whether a statement may end the test without a failure.
fn may_leave(statement: Node<'_>) -> bool {
    let mut nodes = descendants(statement, |node| !is_scope(node));
    nodes.any(|node| matches!(node.kind(), "return_statement" | "yield"))
}

#[cfg(test)]
mod tests;
