//! Changes Python source without changing its meaning.
//!
//! An honest test behaves as before on such source. A test that reads the code (its text, its bytecode, its line
//! numbers) instead of running it gives itself away.

mod rename;
mod syntax;

use std::collections::{BTreeSet, HashSet};

use tree_sitter::Node;

use super::Module;
use super::nodes::named_children;
use crate::split_mix::SplitMix;
use syntax::{
    compiled_names, descendants, expression_offset, inner_blocks, is_compiler, is_simple,
    is_type_checking, plain_assignment, statements,
};

/// Maximum bytes of a source that is changed.
const MAX_BYTES: usize = 1 << 20;

/// Maximum number of functions in a file that get an expression without an effect.
const MAX_EXPRESSIONS: usize = 300;

/// Texts of the inserted comments. Tools give none of them a meaning.
const COMMENTS: [&str; 8] = [
    "# see above",
    "# as before",
    "# order matters here",
    "# checked by the caller",
    "# usual case",
    "# keep in sync",
    "# nothing else to do",
    "# for clarity",
];

/// Expressions without an effect: the first operand decides, and the others never run. They contain constants, names,
/// attributes, calls, comparisons and operators, so that a test that counts or lists those of a function notices.
const EXPRESSIONS: [&str; 4] = [
    "[] and divmod(1000, 7)[0].real < oct(1000) + 1",
    "{} and (ascii(1000).count if hash(1000)[1] - 3 != 1000 else bin)",
    "not [] or callable(1000).imag == bin(1000)[1:] + -hash(7)",
    "[] and (lambda: 1000) > memoryview(1000)[2].size * 3",
];

/// Lines that define names that nothing uses: a module, and a function or class.
const DEFINITIONS: [[&str; 2]; 2] = [
    [
        "import colorsys as spare_1000",
        "import fileinput as spare_1000",
    ],
    [
        "def extra_1000(): return extra_1000",
        "class Extra_1000: size = 1000",
    ],
];

/// The placeholder of a random number in [`EXPRESSIONS`] and [`DEFINITIONS`]. The number has as many digits.
const NUMBER: &str = "1000";

/// Words that are added to docstrings.
const DOCSTRING_WORDS: &str = " (as before)";

/// Whether a placebo may move lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineNumbers {
    /// Every statement stays on its line.
    Kept,
    /// Statements may move to other lines. Docstrings also get more words, and modules more names. This is for code on
    /// which a test must fail, since it may disturb other tests.
    Moved,
}

/// Changes Python source without changing its meaning. Returns `None` if it does not parse or nothing could be changed.
/// The result depends only on the arguments.
pub fn placebo(source: &str, seed: u64, lines: LineNumbers) -> Option<String> {
    if source.len() > MAX_BYTES || source.contains('\0') || has_lone_return(source) {
        return None;
    }
    let module = Module::parse(source);
    if !module.errors().is_empty() {
        return None;
    }
    let nodes = descendants(module.root());
    let is_python_2 = |node: &Node<'_>| matches!(node.kind(), "print_statement" | "exec_statement");
    if nodes.iter().any(is_python_2) {
        return None;
    }
    let mut editor = Editor {
        module: &module,
        random: Random(SplitMix(seed)),
        is_moved: lines == LineNumbers::Moved,
        line_end: line_end(source),
        reads_docstrings: source.contains("__doc__") || source.contains("getdoc"),
        compiled: compiled_names(&module, &nodes),
        functions: Vec::new(),
        has_empty_line: false,
        edits: Vec::new(),
    };
    let top = BlockContext {
        is_body: true,
        is_module: true,
        ..BlockContext::default()
    };
    editor.edit_block(module.root(), top);
    editor.edit_functions();
    editor.append_lines();
    let changed = editor.apply();
    let is_sound = changed != source && Module::parse(changed.as_str()).errors().is_empty();
    is_sound.then_some(changed)
}

/// A replacement of a byte range; an insertion if the range is empty.
struct Edit {
    start: usize,
    end: usize,
    text: String,
}

/// The surroundings of a block.
#[derive(Clone, Copy, Default)]
struct BlockContext {
    /// Whether it is the body of a module, class or function, which may begin with a docstring.
    is_body: bool,
    is_module: bool,
    is_in_function: bool,
    /// Whether a decorator around it compiles the source.
    is_compiled: bool,
}

struct Editor<'m> {
    module: &'m Module,
    random: Random,
    is_moved: bool,
    line_end: &'static str,
    /// Whether the code reads docstrings at run time.
    reads_docstrings: bool,
    /// Names of functions that calls such as `njit(f)` compile.
    compiled: BTreeSet<&'m str>,
    /// Functions whose bytecode may change.
    functions: Vec<Node<'m>>,
    /// Whether an empty line was inserted.
    has_empty_line: bool,
    edits: Vec<Edit>,
}

impl<'m> Editor<'m> {
    fn insert(&mut self, at: usize, text: impl Into<String>) {
        let text = text.into();
        self.edits.push(Edit {
            start: at,
            end: at,
            text,
        });
    }

    fn edit_block(&mut self, block: Node<'m>, context: BlockContext) {
        for (at, statement) in statements(block).into_iter().enumerate() {
            if is_type_checking(self.module, statement) {
                continue;
            }
            if self.is_moved && at > 0 && (context.is_module || context.is_in_function) {
                self.insert_blank_line(statement);
            }
            if is_simple(statement) {
                if self.is_moved && at == 0 && context.is_body {
                    self.pad_docstring(statement);
                }
                if self.is_moved {
                    self.parenthesize(statement);
                }
                self.insert_comment(statement.end_byte());
            } else {
                self.edit_compound(statement, context);
            }
        }
    }

    fn edit_compound(&mut self, statement: Node<'m>, context: BlockContext) {
        let module = self.module;
        match statement.kind() {
            "decorated_definition" => {
                let is_compiled = named_children(statement)
                    .any(|part| part.kind() == "decorator" && is_compiler(module.source(part)));
                if let Some(definition) = statement.child_by_field_name("definition") {
                    let is_compiled = context.is_compiled || is_compiled;
                    let inner = BlockContext {
                        is_compiled,
                        ..context
                    };
                    self.edit_compound(definition, inner);
                }
            }
            "function_definition" | "class_definition" => {
                let name = statement.child_by_field_name("name");
                let is_compiled = context.is_compiled
                    || name.is_some_and(|name| self.compiled.contains(module.source(name)));
                let is_function = statement.kind() == "function_definition";
                if is_function && !is_compiled {
                    self.functions.push(statement);
                }
                if let Some(body) = statement.child_by_field_name("body") {
                    let inner = BlockContext {
                        is_body: true,
                        is_module: false,
                        is_in_function: is_function,
                        is_compiled,
                    };
                    self.edit_block(body, inner);
                }
            }
            _ => {
                let inner = BlockContext {
                    is_body: false,
                    is_module: false,
                    ..context
                };
                for block in inner_blocks(module, statement) {
                    self.edit_block(block, inner);
                }
            }
        }
    }

    /// Inserts a comment after a statement, unless something else follows on its line.
    fn insert_comment(&mut self, at: usize) {
        let rest = self.module.text().get(at..).unwrap_or_default();
        let line = rest.split('\n').next().unwrap_or_default();
        if line.trim().is_empty() && self.random.is_one_in(3) {
            let comment = self.random.pick(&COMMENTS);
            self.insert(at, format!("  {comment}"));
        }
    }

    /// Inserts an empty line before a statement that begins its line.
    fn insert_blank_line(&mut self, statement: Node<'m>) {
        let text = self.module.text();
        let start = statement.start_byte();
        let before = text.get(..start).unwrap_or_default();
        let Some(line_start) = before.rfind('\n').map(|end| end + 1) else {
            return;
        };
        let is_continued = before[..line_start].trim_end().ends_with('\\');
        if is_continued || !before[line_start..].trim().is_empty() {
            return;
        }
        // The first empty line moves everything below it, so it is never left to chance.
        if !self.has_empty_line || self.random.is_one_in(3) {
            self.has_empty_line = true;
            self.insert(line_start, self.line_end);
        }
    }

    /// Encloses the value of an assignment or `return` in parentheses.
    fn parenthesize(&mut self, statement: Node<'m>) {
        let value = match statement.kind() {
            "return_statement" => statement.named_child(0),
            "expression_statement" => plain_assignment(statement)
                .and_then(|assignment| assignment.child_by_field_name("right")),
            _ => None,
        };
        let is_plain = |value: &Node<'_>| {
            matches!(
                value.kind(),
                "call" | "binary_operator" | "comparison_operator" | "identifier"
            )
        };
        if let Some(value) = value.filter(is_plain)
            && self.random.is_one_in(3)
        {
            self.insert(value.start_byte(), "(");
            self.insert(value.end_byte(), ")");
        }
    }

    /// Adds words at the end of a docstring, unless the code reads docstrings, or this may change what a doctest gives.
    fn pad_docstring(&mut self, statement: Node<'m>) {
        if self.reads_docstrings || statement.named_child_count() != 1 {
            return;
        }
        let Some(string) = statement.named_child(0).filter(|n| n.kind() == "string") else {
            return;
        };
        let last = string.child_count().saturating_sub(1);
        let (Some(open), Some(close)) = (string.child(0), string.child(last)) else {
            return;
        };
        let quotes = self.module.source(open);
        let content = self.module.text().get(open.end_byte()..close.start_byte());
        let content = content.unwrap_or_default();
        let last_line = content.rsplit('\n').next().unwrap_or_default();
        let ends_doctest = content.contains(">>>") && !last_line.trim().is_empty();
        let is_plain = matches!(quotes, "\"\"\"" | "'''" | "\"" | "'");
        let is_closed = close.kind() == "string_end";
        if is_plain && is_closed && !content.trim().is_empty() && !ends_doctest {
            self.insert(close.start_byte(), DOCSTRING_WORDS);
        }
    }

    /// Changes the bytecode of functions: an expression without an effect, and another name for a local variable.
    fn edit_functions(&mut self) {
        let module = self.module;
        let functions = std::mem::take(&mut self.functions);
        let offsets: Vec<usize> = functions
            .iter()
            .filter_map(|function| function.child_by_field_name("body"))
            .filter_map(|body| expression_offset(module, body, true))
            .collect();
        let step = offsets.len().div_ceil(MAX_EXPRESSIONS).max(1);
        for &offset in offsets.iter().step_by(step) {
            let expression = self.random.pick(&EXPRESSIONS);
            let expression = self.random.numbered(expression);
            let indentation = self.indentation(offset).filter(|_| self.is_moved);
            let line_end = self.line_end;
            self.insert(
                offset,
                match indentation {
                    Some(indentation) => format!("if {expression}: pass{line_end}{indentation}"),
                    None => format!("{expression}; "),
                },
            );
        }
        let words: HashSet<&str> = rename::words(module.text()).collect();
        for &function in &functions {
            if self.random.is_one_in(2) {
                let edits = rename::rename_local(module, function, &words, &mut self.random);
                self.edits.extend(edits.unwrap_or_default());
            }
        }
    }

    /// Returns the white space before a statement; `None` if something else is before it on its line.
    fn indentation(&self, statement: usize) -> Option<&'m str> {
        let before = self.module.text().get(..statement)?;
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let indentation = before.get(line_start..)?;
        let is_continued = before.get(..line_start)?.trim_end().ends_with('\\');
        let is_blank = indentation.chars().all(|c| c == ' ' || c == '\t');
        (is_blank && !is_continued).then_some(indentation)
    }

    /// Appends a comment line to the file, and definitions if lines may move. A last line without a line end stays
    /// without one.
    fn append_lines(&mut self) {
        let text = self.module.text();
        let mut lines = Vec::new();
        if self.is_moved {
            for kinds in &DEFINITIONS {
                let definition = self.random.pick(kinds);
                lines.push(self.random.numbered(definition));
            }
        }
        lines.push(self.random.pick(&COMMENTS).to_owned());
        let line_end = self.line_end;
        let lines = lines.join(line_end);
        let addition = match text.is_empty() || text.ends_with('\n') {
            true => format!("{lines}{line_end}"),
            false => format!("{line_end}{lines}"),
        };
        self.insert(text.len(), addition);
    }

    /// Returns the text with all edits. Edits at one offset keep their order, insertions before replacements.
    fn apply(mut self) -> String {
        let text = self.module.text();
        self.edits.sort_by_key(|edit| (edit.start, edit.end));
        let mut changed = String::with_capacity(text.len() + text.len() / 8);
        let mut at = 0;
        for edit in &self.edits {
            changed.push_str(text.get(at..edit.start).unwrap_or_default());
            changed.push_str(&edit.text);
            at = edit.end;
        }
        changed.push_str(text.get(at..).unwrap_or_default());
        changed
    }
}

/// Returns whether a carriage return ends a line alone. Python and tree-sitter count such lines differently.
fn has_lone_return(source: &str) -> bool {
    let mut after_returns = source.split('\r').skip(1);
    after_returns.any(|rest| !rest.starts_with('\n'))
}

/// Returns the line end of the first line.
fn line_end(source: &str) -> &'static str {
    let first = source.split_inclusive('\n').next().unwrap_or_default();
    match first.ends_with("\r\n") {
        true => "\r\n",
        false => "\n",
    }
}

/// Choices that depend on a seed.
struct Random(SplitMix);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0.below(n)
    }

    fn is_one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick(&mut self, texts: &[&'static str]) -> &'static str {
        let at = self.below(texts.len());
        texts.get(at).copied().unwrap_or_default()
    }

    /// Replaces all [`NUMBER`]s in a text with one random number.
    fn numbered(&mut self, text: &str) -> String {
        let number = 1001 + self.below(8999);
        text.replace(NUMBER, &number.to_string())
    }
}

#[cfg(test)]
mod tests;
