//! Parses the assert statements of a function into their compared operands.

use std::ops::Range;

use tree_sitter::Node;

use super::Module;
use super::constants::is_constant;
use super::nodes::{code_children, is_scope, named_children};
use super::tokens::{code_tokens, tokens};

/// An assert statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assertion {
    /// Byte range of the statement in the module.
    pub bytes: Range<usize>,
    /// First line, from 1.
    pub first: usize,
    /// Last line, from 1.
    pub last: usize,
    /// Condition, parsed into its operands.
    pub comparison: Comparison,
    /// Tokens of the failure message.
    pub message: Vec<String>,
    /// Whether it is inside a nested function or class.
    pub is_nested: bool,
}

/// The condition of an assertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    /// `assert x`, or with `negated` `assert not x`.
    Unary {
        /// Whether `not` precedes the operand.
        negated: bool,
        /// Expression after `assert` or `assert not`.
        operand: Operand,
    },
    /// `assert x == y`.
    Binary {
        /// Operand on the left.
        left: Operand,
        /// Operator with single spaces, e.g. `==` or `not in`.
        operator: String,
        /// Operand on the right.
        right: Operand,
    },
    /// `assert x < y < z`.
    Chain,
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    /// Byte range in the module, surrounding parentheses included.
    pub bytes: Range<usize>,
    /// Tokens, without surrounding parentheses.
    pub tokens: Vec<String>,
    /// Whether it is a literal, such as a number, a string or `None`.
    pub is_constant: bool,
}

impl Comparison {
    /// Returns the operands, the left one first.
    pub fn operands(&self) -> Vec<&Operand> {
        match self {
            Comparison::Unary { operand, .. } => vec![operand],
            Comparison::Binary { left, right, .. } => vec![left, right],
            Comparison::Chain => Vec::new(),
        }
    }
}

/// Returns the assertions in a range of a module, in order.
pub fn assertions(module: &Module, stretch: &Range<usize>) -> Vec<Assertion> {
    let mut assertions = Vec::new();
    collect(module, module.root(), stretch, 0, &mut assertions);
    assertions
}

/// Returns the tokens of every assertion in a text, without messages and surrounding parentheses. Code around them
/// need not parse.
pub fn all_assertions(text: &str) -> Vec<Vec<String>> {
    let module = Module::parse(text);
    let parsed_assertions = assertions(&module, &(0..text.len()));
    let without_message = |assertion: &Assertion| match &assertion.comparison {
        Comparison::Unary { negated, operand } => {
            let mut all = operand.tokens.clone();
            if *negated {
                all.insert(0, "not".to_owned());
            }
            all
        }
        Comparison::Binary {
            left,
            operator,
            right,
        } => [
            left.tokens.as_slice(),
            std::slice::from_ref(operator),
            right.tokens.as_slice(),
        ]
        .concat(),
        Comparison::Chain => {
            let source = text.get(assertion.bytes.clone()).unwrap_or_default();
            code_tokens(source)
        }
    };
    parsed_assertions.iter().map(without_message).collect()
}

fn collect(
    module: &Module,
    node: Node<'_>,
    stretch: &Range<usize>,
    depth: usize,
    assertions: &mut Vec<Assertion>,
) {
    if node.end_byte() <= stretch.start || stretch.end <= node.start_byte() {
        return;
    }
    let is_inside = stretch.start <= node.start_byte() && node.end_byte() <= stretch.end;
    if node.kind() == "assert_statement" {
        if is_inside {
            assertions.extend(assertion(module, node, depth > 1));
        }
        return;
    }
    let depth = depth + usize::from(is_inside && is_scope(node));
    for child in named_children(node) {
        collect(module, child, stretch, depth, assertions);
    }
}

fn assertion(module: &Module, node: Node<'_>, is_nested: bool) -> Option<Assertion> {
    let mut parts = code_children(node);
    let condition = parts.next()?;
    let message = parts.next();
    Some(Assertion {
        bytes: node.byte_range(),
        first: node.start_position().row + 1,
        last: node.end_position().row + 1,
        comparison: comparison(module, condition)?,
        message: message.map_or_else(Vec::new, |node| tokens(module, node, &|_| false)),
        is_nested,
    })
}

fn comparison(module: &Module, condition: Node<'_>) -> Option<Comparison> {
    let operand = |node: Node<'_>| Operand {
        bytes: node.byte_range(),
        tokens: tokens(module, bare(node), &|_| false),
        is_constant: is_constant(node),
    };
    let inner = bare(condition);
    match inner.kind() {
        "comparison_operator" => {
            let sides: Vec<Node<'_>> = code_children(inner).collect();
            let [left, right] = sides.as_slice() else {
                return Some(Comparison::Chain);
            };
            let between = module.text().get(left.end_byte()..right.start_byte())?;
            let words = between
                .lines()
                .map(|line| line.split('#').next().unwrap_or_default());
            let operator = words
                .flat_map(str::split_whitespace)
                .filter(|word| *word != "\\");
            Some(Comparison::Binary {
                left: operand(*left),
                operator: operator.collect::<Vec<_>>().join(" "),
                right: operand(*right),
            })
        }
        "not_operator" => Some(Comparison::Unary {
            negated: true,
            operand: operand(inner.child_by_field_name("argument")?),
        }),
        _ => Some(Comparison::Unary {
            negated: false,
            operand: operand(condition),
        }),
    }
}

/// Returns the expression inside its parentheses.
pub(super) fn bare(node: Node<'_>) -> Node<'_> {
    let mut inner = node;
    while inner.kind() == "parenthesized_expression"
        && let Some(next) = code_children(inner).next()
    {
        inner = next;
    }
    inner
}

#[cfg(test)]
mod tests;
