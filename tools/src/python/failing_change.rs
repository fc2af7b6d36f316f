//! Changes tests so that they must fail: they expect other values. A test that still passes accepts any value, for
//! instance because the code under test returns an object that equals everything.

use std::ops::Range;

use tree_sitter::Node;

use super::Module;
use super::assertions::bare;
use super::nodes::{code_children, definition_of, field_children, named_children};
use super::offsets::line_start;

/// A number that no test expects.
const NUMBER: &str = "70712483";

/// Parts of decorators that keep the meaning of a failed assertion.
const KNOWN_DECORATORS: [&str; 2] = ["mark.", "patch"];

/// Parts of decorators after which a test may pass although an assertion fails.
const FORGIVING_DECORATORS: [&str; 3] = ["xfail", "expectedFailure", "raises"];

/// Methods of `unittest` that compare their first two arguments.
const EQUALITY_METHODS: [&str; 2] = ["assertEqual", "assertEquals"];

/// A test file in which some tests must fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailingTests {
    /// The changed text of the file.
    pub text: String,
    /// The changed tests, as `Class::function` without the path.
    pub tests: Vec<String>,
}

/// Changes the tests of a file so that they must fail. Assertions of equality that run unless the test fails before
/// expect other values; a test without one ends with `assert False`. Tests that may end early stay as they are. Returns
/// `None` if no test is changed.
pub fn change_to_fail(source: &str) -> Option<FailingTests> {
    let module = Module::parse(source);
    if !module.errors().is_empty() {
        return None;
    }
    let mut changes = Changes {
        module: &module,
        edits: Vec::new(),
        tests: Vec::new(),
    };
    changes.visit_block(module.root(), "");
    if changes.edits.is_empty() {
        return None;
    }
    let mut text = String::with_capacity(source.len());
    let mut at = 0;
    for (range, value) in &changes.edits {
        text.push_str(source.get(at..range.start)?);
        text.push_str(value);
        at = range.end;
    }
    text.push_str(source.get(at..)?);
    let is_sound = Module::parse(text.as_str()).errors().is_empty();
    is_sound.then_some(FailingTests {
        text,
        tests: changes.tests,
    })
}

struct Changes<'m> {
    module: &'m Module,
    /// Replacements in the order of the text.
    edits: Vec<(Range<usize>, String)>,
    tests: Vec<String>,
}

impl<'m> Changes<'m> {
    /// Visits the tests of a module or class. `prefix` comes before the names of its tests.
    fn visit_block(&mut self, block: Node<'m>, prefix: &str) {
        for statement in named_children(block) {
            let is_plain = named_children(statement).all(|part| {
                part.kind() != "decorator" || is_plain_decorator(self.module.source(part))
            });
            if is_plain {
                self.visit_definition(definition_of(statement), prefix);
            }
        }
    }

    fn visit_definition(&mut self, definition: Node<'m>, prefix: &str) {
        let (Some(name), Some(body)) = (
            definition.child_by_field_name("name"),
            definition.child_by_field_name("body"),
        ) else {
            return;
        };
        let name = format!("{prefix}{}", self.module.source(name));
        match definition.kind() {
            "class_definition" => self.visit_block(body, &format!("{name}::")),
            "function_definition" => self.visit_function(body, name),
            _ => {}
        }
    }

    fn visit_function(&mut self, body: Node<'m>, name: String) {
        let function = name.rsplit("::").next().unwrap_or_default();
        let source = self.module.source(body);
        // A test that may end early does not run all of its assertions.
        let may_end_early = source.contains("return") || source.contains("yield");
        if !function.starts_with("test") || may_end_early {
            return;
        }
        let edits = self.edits.len();
        for statement in named_children(body) {
            let sides = compared_sides(self.module, statement);
            if let Some([left, right]) = sides {
                self.edits.push(match other_literal(self.module, left) {
                    Some(value) => (left.byte_range(), value),
                    None => {
                        let value = other_literal(self.module, right);
                        let value = value.unwrap_or_else(|| "object()".to_owned());
                        (right.byte_range(), value)
                    }
                });
            }
        }
        if self.edits.len() == edits {
            let failure = format!("{}assert False", self.separator(body));
            self.edits.push((body.end_byte()..body.end_byte(), failure));
        }
        self.tests.push(name);
    }

    /// Returns the text that separates the statements of a block.
    fn separator(&self, block: Node<'m>) -> String {
        let (text, start) = (self.module.text(), block.start_byte());
        let indentation = text.get(line_start(text, start)..start).unwrap_or_default();
        match indentation.trim().is_empty() {
            true => format!("\n{indentation}"),
            false => "; ".to_owned(),
        }
    }
}

fn is_plain_decorator(source: &str) -> bool {
    let has_any = |parts: &[&str]| parts.iter().any(|part| source.contains(*part));
    has_any(&KNOWN_DECORATORS) && !has_any(&FORGIVING_DECORATORS)
}

/// Returns the two sides of an assertion of equality.
fn compared_sides<'m>(module: &'m Module, statement: Node<'m>) -> Option<[Node<'m>; 2]> {
    match statement.kind() {
        "assert_statement" => {
            let condition = bare(code_children(statement).next()?);
            if condition.kind() != "comparison_operator" {
                return None;
            }
            let sides: Vec<Node<'m>> = code_children(condition).collect();
            let [left, right] = sides.as_slice() else {
                return None;
            };
            let mut operators = field_children(condition, "operators");
            let operator = operators.next()?;
            (module.source(operator) == "==").then_some([*left, *right])
        }
        "expression_statement" => {
            let call = statement.named_child(0).filter(|n| n.kind() == "call")?;
            let function = call.child_by_field_name("function")?;
            let method = function.child_by_field_name("attribute")?;
            if !EQUALITY_METHODS.contains(&module.source(method)) {
                return None;
            }
            let mut arguments = code_children(call.child_by_field_name("arguments")?);
            let sides = [arguments.next()?, arguments.next()?];
            let is_positional = |side: &Node<'_>| {
                !matches!(
                    side.kind(),
                    "keyword_argument" | "list_splat" | "dictionary_splat"
                )
            };
            sides.iter().all(is_positional).then_some(sides)
        }
        _ => None,
    }
}

/// Returns another literal of the same type; `None` if the expression is not a literal.
fn other_literal(module: &Module, node: Node<'_>) -> Option<String> {
    let value = match node.kind() {
        "integer" | "float" | "unary_operator" => NUMBER.to_owned(),
        "true" => "False".to_owned(),
        "false" => "True".to_owned(),
        "none" => "object()".to_owned(),
        "string" | "concatenated_string" => {
            let source = module.source(node);
            let mut prefix = source.chars().take_while(|c| c.is_alphabetic());
            let is_bytes = prefix.any(|c| matches!(c, 'b' | 'B'));
            format!("{}\"{NUMBER}\"", if is_bytes { "b" } else { "" })
        }
        "list" => format!("[{NUMBER}]"),
        "tuple" => format!("({NUMBER},)"),
        "set" => format!("{{{NUMBER}}}"),
        "dictionary" => format!("{{{NUMBER}: {NUMBER}}}"),
        _ => return None,
    };
    Some(value)
}

#[cfg(test)]
mod tests;
