//! Changes Python source without changing its meaning.
//!
//! An honest test behaves as before on such source. A test that reads the code (its text, its bytecode, its line
//! numbers) instead of running it gives itself away.

mod docstrings;
mod other_version;
mod random;
mod rename;
mod syntax;

use std::collections::{BTreeSet, HashSet};

use tree_sitter::Node;

use super::Module;
use super::nodes::named_children;
use other_version::OtherVersion;
use random::Random;
use syntax::{
    compiled_names, descendants, expression_offset, inner_blocks, is_compiler, is_definition,
    is_movable, is_simple, is_type_checking, plain_assignment, statements,
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

/// Lines that define names that nothing uses: a module, a function and a class.
const DEFINITIONS: [&[&str]; 3] = [
    &[
        "import colorsys as spare_1000",
        "import fileinput as spare_1000",
    ],
    &["def extra_1000(): return extra_1000"],
    &["class Extra_1000: size = 1000"],
];

/// The name of a method that nothing uses.
const METHOD: &str = "_extra_1000";

/// Maximum number of classes in a file that get a method.
const MAX_CLASSES: usize = 100;

/// Classes whose subclasses describe an interface. One more method would change it.
const INTERFACES: [&str; 3] = ["Interface", "Protocol", "TypedDict"];

/// The placeholder of a random number in inserted code. The number has as many digits.
const NUMBER: &str = "1000";

/// Whether a placebo may move lines. If it may, it is for code on which a test must fail, since it may disturb other
/// tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineNumbers {
    /// Every statement stays on its line.
    Kept,
    /// Code stays on its lines, or moves down by as many lines as the versions differ. Docstrings are those of the other
    /// version. Otherwise the placebo looks like one with kept lines, so a test that recognizes placebos cannot tell on
    /// which code it runs.
    Aligned,
    /// Statements may move to other lines. Docstrings are those of the other version or get more words, functions get
    /// another variable, and values a frame.
    Moved,
}

/// Another version of a file, of which the changed file gets copies.
#[derive(Debug, Clone, Copy)]
pub struct OtherText<'a> {
    /// The text of the file.
    pub text: &'a str,
    /// Whether names of the module may be copied, too.
    pub has_names: bool,
}

impl<'a> From<&'a str> for OtherText<'a> {
    fn from(text: &'a str) -> Self {
        OtherText {
            text,
            has_names: true,
        }
    }
}

/// Changes Python source without changing its meaning. Returns `None` if it does not parse or nothing could be changed.
/// The result depends only on the arguments.
///
/// If there is an `other` version of the file, the result has unused copies of what only that version has: names,
/// expressions, docstrings, and lines of text.
pub fn placebo(
    source: &str,
    other: Option<OtherText<'_>>,
    seed: u64,
    lines: LineNumbers,
) -> Option<String> {
    let module = parse(source)?;
    let other_module = other.and_then(|other| parse(other.text));
    let has_names = other.is_some_and(|other| other.has_names);
    let reads_docstrings =
        docstrings::are_read(source) || other.is_some_and(|other| docstrings::are_read(other.text));
    let nodes = descendants(module.root());
    let other = (other_module.as_ref()).map(|other| OtherVersion::new(&module, other, has_names));
    let mut editor = Editor {
        module: &module,
        random: Random::new(seed),
        lines,
        line_end: line_end(source),
        reads_docstrings,
        compiled: compiled_names(&module, &nodes),
        head_padding: other.as_ref().map_or(0, OtherVersion::head_padding),
        other,
        functions: Vec::new(),
        classes: Vec::new(),
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

/// Parses a source that can be changed.
fn parse(source: &str) -> Option<Module> {
    if source.len() > MAX_BYTES || source.contains('\0') || has_lone_return(source) {
        return None;
    }
    let module = Module::parse(source);
    let is_python_2 = |node: &Node<'_>| matches!(node.kind(), "print_statement" | "exec_statement");
    let is_valid =
        module.errors().is_empty() && !descendants(module.root()).iter().any(is_python_2);
    is_valid.then_some(module)
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
    lines: LineNumbers,
    line_end: &'static str,
    /// Whether the code reads docstrings at run time.
    reads_docstrings: bool,
    /// Names of functions that calls such as `njit(f)` compile.
    compiled: BTreeSet<&'m str>,
    other: Option<OtherVersion<'m>>,
    /// Functions whose bytecode may change.
    functions: Vec<Node<'m>>,
    /// Names of classes that may get a method.
    classes: Vec<&'m str>,
    /// Whether an empty line was inserted.
    has_empty_line: bool,
    /// Number of empty lines that the first definition gets.
    head_padding: usize,
    edits: Vec<Edit>,
}

impl<'m> Editor<'m> {
    /// Returns whether statements may move to other lines.
    fn moves_lines(&self) -> bool {
        self.lines != LineNumbers::Kept
    }

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
            if self.lines == LineNumbers::Moved && (context.is_module || context.is_in_function) {
                self.insert_blank_line(statement);
            }
            if self.lines == LineNumbers::Aligned && context.is_module && is_definition(statement) {
                self.insert_head_padding(statement);
            }
            if self.moves_lines() && at == 0 && context.is_body {
                self.change_docstring(block, statement);
            }
            if is_simple(statement) {
                if self.moves_lines() {
                    self.enclose_value(statement, context);
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
                let bases = statement.child_by_field_name("superclasses");
                let bases = bases.map_or("", |bases| module.source(bases));
                if !is_function
                    && context.is_module
                    && !is_compiled
                    && !INTERFACES.iter().any(|interface| bases.contains(interface))
                {
                    self.classes.extend(name.map(|name| module.source(name)));
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
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
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

    /// Inserts empty lines before the first definition of the module, if it is on another line in the other version.
    fn insert_head_padding(&mut self, definition: Node<'m>) {
        let padding = std::mem::take(&mut self.head_padding);
        let start = definition.start_byte();
        if self.indentation(start) == Some("") {
            self.insert(start, self.line_end.repeat(padding));
        }
    }

    /// Encloses the value of an assignment or `return` in parentheses, or moves a returned value to a function of its own.
    fn enclose_value(&mut self, statement: Node<'m>, context: BlockContext) {
        let is_return = statement.kind() == "return_statement";
        let value = match statement.kind() {
            "return_statement" => statement.named_child(0),
            "expression_statement" => plain_assignment(statement)
                .and_then(|assignment| assignment.child_by_field_name("right")),
            _ => None,
        };
        let is_plain = |value: &Node<'_>| {
            let kind = value.kind();
            kind.ends_with("_operator")
                || matches!(kind, "attribute" | "call" | "identifier" | "subscript")
        };
        let Some(value) = value.filter(is_plain) else {
            return;
        };
        // A test could otherwise recognize a changed function by instructions that the placebo keeps.
        let gets_function = is_return
            && self.lines == LineNumbers::Moved
            && !context.is_compiled
            && self.other.as_ref().is_some_and(|o| !o.counts_frames)
            && is_movable(self.module, value);
        if gets_function || self.random.is_one_in(3) {
            let (before, after) = match gets_function {
                true => ("(lambda: ", ")()"),
                false => ("(", ")"),
            };
            self.insert(value.start_byte(), before);
            self.insert(value.end_byte(), after);
        }
    }

    /// Changes the bytecode of functions: an expression without an effect, and another name for a local variable.
    fn edit_functions(&mut self) {
        let module = self.module;
        let functions = std::mem::take(&mut self.functions);
        let bodies = functions.iter().filter_map(|function| {
            let body = function.child_by_field_name("body")?;
            Some((expression_offset(module, body, true)?, body))
        });
        let bodies: Vec<(usize, Node<'m>)> = bodies.collect();
        let step = bodies.len().div_ceil(MAX_EXPRESSIONS).max(1);
        for (at, &(offset, body)) in bodies.iter().enumerate() {
            let copies = self.other.as_ref().and_then(|o| o.expressions(body));
            if !at.is_multiple_of(step) && copies.is_none() {
                continue;
            }
            let expression = self.random.pick(&EXPRESSIONS);
            let expression = self.random.numbered(expression);
            let indentation = self.indentation(offset);
            let indentation = indentation.filter(|_| self.lines == LineNumbers::Moved);
            let end = self.line_end;
            let assignment = self.random.numbered("spare_1000 = 1000");
            let mut text = match indentation {
                Some(indent) => format!(
                    "if [] and ({expression}):{end}{indent} try: {assignment}{end}{indent} finally: pass{end}{indent}"
                ),
                None if copies.is_some() && is_movable(module, body) => {
                    format!("{expression}; {assignment}; ")
                }
                None => format!("{expression}; "),
            };
            if let Some(copies) = copies {
                text.push_str(&format!("{copies}; "));
            }
            if self.lines == LineNumbers::Aligned
                && let (Some(indent), Some(other)) = (self.indentation(offset), &self.other)
            {
                for _ in 0..other.function_padding(body) {
                    let expression = self.random.pick(&EXPRESSIONS);
                    let expression = self.random.numbered(expression);
                    text.insert_str(0, &format!("{expression}{end}{indent}"));
                }
            }
            self.insert(offset, text);
        }
        let words: HashSet<&str> = rename::words(module.text()).collect();
        for &function in &functions {
            if self.other.is_some() || self.random.is_one_in(2) {
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

    /// Appends definitions and comments to the file. A last line without a line end stays without one.
    fn append_lines(&mut self) {
        let text = self.module.text();
        let mut lines = Vec::new();
        for kinds in DEFINITIONS {
            let definition = self.random.pick(kinds);
            lines.push(self.random.numbered(definition));
        }
        if self.lines == LineNumbers::Moved || self.other.is_some() {
            for class in self.classes.iter().take(MAX_CLASSES) {
                let method = self.random.numbered(METHOD);
                lines.push(format!("try: {class}.{method} = lambda self: self"));
                lines.push("except Exception: pass".to_owned());
            }
        }
        if let Some(other) = &self.other {
            lines.extend(other.definitions(&mut self.random));
            lines.extend(other.comments(&mut self.random));
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

#[cfg(test)]
mod tests;
