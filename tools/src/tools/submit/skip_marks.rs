//! Finds marks that prevent a contributed test from failing: skip and xfail.
//!
//! The search uses the syntax tree, so strings that contain tests (pytest's own tests are full of them) do not count.
//! `skipif`, `importorskip` and a skip after an `if` are left out: they depend on the machine. A skipped test does not
//! fail, which shows when it runs.

use tree_sitter::Node;

use crate::python::Module;
use crate::tools::contribution::present;
use crate::tools::submission::ContributedTest;

/// Returns a message for each mark that a change introduces into a test file.
pub(super) fn in_file(
    path: &str,
    base: Option<&Module>,
    now: &Module,
    contributed: &[ContributedTest],
) -> Vec<String> {
    let introduced = |marks: &dyn Fn(&Module) -> Vec<String>| -> Vec<String> {
        let had = base.map(marks).unwrap_or_default();
        let mut marks = marks(now);
        marks.retain(|mark| !had.contains(mark));
        marks
    };
    let mut problems = Vec::new();
    for ContributedTest { id, .. } in present(contributed) {
        let rest = id.strip_prefix(path);
        if let Some(name) = rest.and_then(|rest| rest.strip_prefix("::")) {
            let marks = introduced(&|module: &Module| marks_of(module, name)).into_iter();
            problems.extend(
                marks.map(|mark| format!("{id} has `{mark}`: then it cannot fail. Take it out.")),
            );
        }
    }
    problems.extend(introduced(&module_marks).into_iter().map(|mark| {
        format!("{path} has `pytestmark` with `{mark}`: then no test in it can fail.")
    }));
    problems
}

/// Returns marks on a test, in its body and on its enclosing classes.
fn marks_of(module: &Module, name: &str) -> Vec<String> {
    let mut mark_names = Vec::new();
    for definition in module.find(name) {
        collect(module, module.root(), &mut mark_names, &|node| {
            let range = node.byte_range();
            definition.bytes.start <= range.start && range.end <= definition.bytes.end
        });
    }
    // Decorators of the enclosing classes.
    let parts: Vec<&str> = name.split("::").collect();
    for depth in 1..parts.len() {
        for class in module.find(&parts[..depth].join("::")) {
            let names = class.decorators.iter().map(|d| decorator_name(d));
            mark_names.extend(names.filter(|name| is_mark(name)).map(str::to_owned));
        }
    }
    mark_names
}

fn module_marks(module: &Module) -> Vec<String> {
    let mut mark_names = Vec::new();
    let root = module.root();
    let mut cursor = root.walk();
    for statement in root.children(&mut cursor) {
        let source = module.source(statement);
        if source.trim_start().starts_with("pytestmark") {
            let range = statement.byte_range();
            collect(module, root, &mut mark_names, &|node| {
                range.start <= node.start_byte() && node.end_byte() <= range.end
            });
        }
    }
    mark_names
}

/// Collects dotted names of marks and calls inside nodes that `within` accepts.
fn collect(
    module: &Module,
    node: Node<'_>,
    mark_names: &mut Vec<String>,
    within: &dyn Fn(Node<'_>) -> bool,
) {
    if matches!(node.kind(), "attribute" | "identifier") && within(node) {
        let name = module.source(node);
        let is_mark = is_mark(name)
            && is_used(node)
            && !is_unapplied_mark(module, node)
            && !(name.ends_with("skip") && is_of_parameter_set(module, node));
        if is_mark && !is_conditional_skip(name, node) {
            mark_names.push(name.to_owned());
        }
        return;
    }
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        collect(module, child, mark_names, within);
    }
}

/// Returns whether a node is a mark in the body of a function, where it is data: only calls skip the test there, and marks
/// that `add_marker` applies to it.
fn is_unapplied_mark(module: &Module, node: Node<'_>) -> bool {
    let name = module.source(node);
    if matches!(name, "pytest.skip" | "pytest.xfail" | "self.skipTest") {
        return false;
    }
    let mut around = std::iter::successors(node.parent(), Node::parent);
    let is_applied = std::iter::successors(node.parent(), Node::parent).any(|node| {
        let name = module.called_function(node);
        name.is_some_and(|name| name.ends_with("add_marker") || name.ends_with("applymarker"))
    });
    let is_body = |node: Node<'_>| {
        let parent = node.parent();
        node.kind() == "block" && parent.is_some_and(|p| p.kind() == "function_definition")
    };
    !is_applied && around.any(is_body)
}

/// Returns whether a mark is for one parameter set only: `pytest.param(3, marks=pytest.mark.skip)`.
fn is_of_parameter_set(module: &Module, node: Node<'_>) -> bool {
    let mut around = std::iter::successors(node.parent(), |node| node.parent());
    around.any(|node| {
        let name = module.called_function(node);
        name.is_some_and(|name| name.rsplit('.').next() == Some("param"))
    })
}

/// Returns whether a node is a decorator, a call, or a value (in a list of marks), as opposed to a parameter or
/// variable name.
fn is_used(node: Node<'_>) -> bool {
    node.kind() == "attribute"
        || node
            .parent()
            .is_some_and(|parent| matches!(parent.kind(), "decorator" | "call"))
}

/// Returns whether a skip is conditional, as in `if not has_dask: pytest.skip("needs dask")`.
fn is_conditional_skip(name: &str, node: Node<'_>) -> bool {
    let around = std::iter::successors(node.parent(), Node::parent);
    matches!(name, "pytest.skip" | "self.skipTest")
        && around
            .take_while(|node| node.kind() != "function_definition")
            .any(|node| node.kind() == "if_statement")
}

fn decorator_name(source: &str) -> &str {
    let name = source.trim_start_matches('@').trim();
    name.split('(').next().unwrap_or(name).trim()
}

fn is_mark(name: &str) -> bool {
    matches!(
        name,
        "pytest.skip"
            | "pytest.xfail"
            | "pytest.mark.skip"
            | "pytest.mark.xfail"
            | "mark.skip"
            | "mark.xfail"
            | "unittest.skip"
            | "unittest.expectedFailure"
            | "expectedFailure"
            | "self.skipTest"
            | "XFAIL"
    )
}

#[cfg(test)]
mod tests;
