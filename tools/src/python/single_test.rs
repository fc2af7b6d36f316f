//! Reduces a test file to a single test: the other tests are removed, everything else stays.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use tree_sitter::Node;

use super::nodes::{code_children, definition_of, descendants, named_children};
use super::offsets::line_start;
use super::{Module, TestFunction};

/// A test file with one test. Its text is `before`, `header`, `body`, `after`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SingleTest {
    /// Imports, fixtures, constants, helpers; ends before the line of the test or of its first decorator.
    pub before: String,
    /// Decorators and `def …:`, including the rest of the line after the colon.
    pub header: String,
    /// Lines of the body; if it is on the header's line, the text after the colon.
    pub body: String,
    /// The text after the test.
    pub after: String,
    /// Indentation of its statements.
    pub indent: String,
}

impl SingleTest {
    /// Returns the text of the file.
    pub fn text(&self) -> String {
        self.with_body(&self.body)
    }

    /// Returns the file with other statements in the test.
    pub fn with_body(&self, body: &str) -> String {
        format!("{}{}{body}{}", self.before, self.header, self.after)
    }
}

/// Tests to remove.
struct RemovedTests<'t> {
    functions: BTreeSet<(usize, usize)>,
    /// Names of the remaining test and of its enclosing classes.
    kept: Vec<&'t str>,
}

/// A range to cut out, and its replacement.
struct Cut {
    bytes: Range<usize>,
    instead: String,
}

/// Returns the file with only the test at `keep`. Classes that become empty and that no other code names are removed
/// too. Returns `None` if the test is not a function on lines of its own.
pub fn single_test(module: &Module, tests: &[TestFunction], keep: usize) -> Option<SingleTest> {
    let kept_test = tests.get(keep)?;
    let mut removed_ranges: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (at, test) in tests.iter().enumerate() {
        removed_ranges.extend(test.replaced.iter().map(|r| (r.start, r.end)));
        if at != keep {
            removed_ranges.insert((test.bytes.start, test.bytes.end));
        }
    }
    let removed_tests = RemovedTests {
        functions: removed_ranges,
        // A class that inherits the test contains nothing else.
        kept: kept_test.id.split("::").collect(),
    };
    let cuts = cuts(module, &removed_tests);
    let text = module.text();
    let start = line_start(text, kept_test.bytes.start);
    if !text.get(start..kept_test.bytes.start)?.trim().is_empty() {
        return None;
    }
    let end = line_end(text, kept_test.bytes.end);
    let header = header_end(module, kept_test)?;
    let body = text.get(header..end)?;
    let first_line = body
        .lines()
        .find(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    let def_indent = text.get(start..kept_test.bytes.start)?;
    let indent = match first_line {
        Some(line) if text[..header].ends_with('\n') => {
            line[..line.len() - line.trim_start().len()].to_owned()
        }
        _ => format!("{def_indent}    "),
    };
    Some(SingleTest {
        before: with_cuts(text, 0..start, &cuts),
        header: text.get(start..header)?.to_owned(),
        body: format!("{}\n", body.strip_suffix('\n').unwrap_or(body)),
        after: with_cuts(text, end..text.len(), &cuts),
        indent,
    })
}

/// Returns the file without all of these tests.
pub fn without_tests(module: &Module, tests: &[TestFunction]) -> String {
    let bytes = tests
        .iter()
        .flat_map(|test| test.replaced.iter().chain([&test.bytes]));
    let removed_tests = RemovedTests {
        functions: bytes.map(|bytes| (bytes.start, bytes.end)).collect(),
        kept: Vec::new(),
    };
    let text = module.text();
    with_cuts(text, 0..text.len(), &cuts(module, &removed_tests))
}

/// Returns the cuts that remove the tests, in the order of the text.
fn cuts(module: &Module, removed_tests: &RemovedTests<'_>) -> Vec<Cut> {
    let mut cuts = Vec::new();
    strip(module, module.root(), removed_tests, &mut cuts);
    cuts.sort_by_key(|cut| cut.bytes.start);
    cuts
}

/// Returns the offset after the colon of `def`, or after its line if the body is on other lines.
fn header_end(module: &Module, test: &TestFunction) -> Option<usize> {
    let node = module
        .root()
        .descendant_for_byte_range(test.bytes.start, test.bytes.end)?;
    let whole = std::iter::successors(Some(node), |node| node.parent())
        .find(|node| node.byte_range() == test.bytes && node.kind().ends_with("_definition"))?;
    let inner = definition_of(whole);
    let mut cursor = inner.walk();
    let colon = inner
        .children(&mut cursor)
        .filter(|child| child.kind() == ":")
        .last()?;
    let body = inner.child_by_field_name("body")?;
    if body.start_position().row == colon.end_position().row {
        return Some(colon.end_byte());
    }
    Some(line_end(module.text(), colon.end_byte()))
}

/// Collects the cuts of a block, and returns whether only its docstring is left.
fn strip(
    module: &Module,
    block: Node<'_>,
    removed_tests: &RemovedTests<'_>,
    cuts: &mut Vec<Cut>,
) -> bool {
    let statements: Vec<Node<'_>> = code_children(block).collect();
    let mut removed_nodes: Vec<Node<'_>> = Vec::new();
    let mut remaining = 0;
    for statement in &statements {
        let range = (statement.start_byte(), statement.end_byte());
        if removed_tests.functions.contains(&range)
            || is_emptied_class(module, *statement, removed_tests)
        {
            removed_nodes.push(*statement);
            continue;
        }
        remaining += usize::from(!super::tokens::is_docstring(*statement));
        let inner = definition_of(*statement);
        if inner.kind() != "function_definition" {
            inner_blocks(inner, &mut |block| {
                strip(module, block, removed_tests, cuts);
            });
        }
    }
    let is_module = block.kind() == "module";
    for (at, node) in removed_nodes.iter().enumerate() {
        let text = module.text();
        let start = line_start(text, node.start_byte());
        let is_pass = at == 0 && remaining == 0 && !is_module;
        let (from, instead) = match is_pass {
            true => (start, format!("{}pass\n", &text[start..node.start_byte()])),
            false => (before_empty_lines(text, start), String::new()),
        };
        let bytes = from..line_end(text, node.end_byte());
        cuts.push(Cut { bytes, instead });
    }
    remaining == 0 && !removed_nodes.is_empty()
}

/// Returns whether a class loses all its members, and no code outside names it.
fn is_emptied_class(
    module: &Module,
    statement: Node<'_>,
    removed_tests: &RemovedTests<'_>,
) -> bool {
    let class = definition_of(statement);
    if class.kind() != "class_definition" {
        return false;
    }
    let (Some(name), Some(body)) = (
        class.child_by_field_name("name"),
        class.child_by_field_name("body"),
    ) else {
        return false;
    };
    !removed_tests.kept.contains(&module.source(name))
        && strip(module, body, removed_tests, &mut Vec::new())
        && !is_named(module, module.source(name), statement)
}

/// Returns whether an identifier of this name occurs outside of the node.
fn is_named(module: &Module, name: &str, outside: Node<'_>) -> bool {
    let mut nodes = descendants(module.root(), |node| node.id() != outside.id());
    nodes.any(|node| node.kind() == "identifier" && module.source(node) == name)
}

/// Visits the blocks of a statement, including those of its clauses.
fn inner_blocks<'m>(statement: Node<'m>, each: &mut dyn FnMut(Node<'m>)) {
    for part in named_children(statement) {
        match part.kind() {
            "block" => each(part),
            kind if kind.ends_with("_clause") => inner_blocks(part, each),
            _ => {}
        }
    }
}

/// Returns the start of the empty lines before a line: they are removed with the code that they separate.
fn before_empty_lines(text: &str, mut start: usize) -> usize {
    while start > 0 {
        let line = line_start(text, start - 1);
        if !text[line..start].trim().is_empty() {
            break;
        }
        start = line;
    }
    start
}

/// Returns the offset after the line end; the same offset if it is already at the start of a line.
fn line_end(text: &str, at: usize) -> usize {
    if text[..at].ends_with('\n') {
        return at;
    }
    text[at..]
        .find('\n')
        .map_or(text.len(), |line| at + line + 1)
}

/// Returns a range of the text without the cuts.
fn with_cuts(text: &str, stretch: Range<usize>, cuts: &[Cut]) -> String {
    let mut out = String::new();
    let mut at = stretch.start;
    for cut in cuts {
        if cut.bytes.start < at || cut.bytes.end > stretch.end {
            continue;
        }
        out.push_str(&text[at..cut.bytes.start]);
        out.push_str(&cut.instead);
        at = cut.bytes.end;
    }
    out.push_str(&text[at..stretch.end]);
    out
}

#[cfg(test)]
mod tests;
