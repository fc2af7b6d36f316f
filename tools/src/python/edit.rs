//! Inserts functions and imports into source text.
//!
//! Texts here use `\n` as line end; [`LineEnding`] restores the file's own line ends.

use std::collections::HashSet;

use tree_sitter::Node;

use super::definitions::last_line;
use super::indentation::{Steps, indentation, step};
use super::nodes::{code_children, descendants};
use super::tokens::is_docstring;
use super::{Binding, Definition, Module, SyntaxError};
pub use crate::workspace::LineEnding;

/// The reason why code cannot be inserted into a file.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// The code does not parse.
    #[error("the code does not parse: {0}")]
    Syntax(#[source] SyntaxError),
    /// The code contains no complete function or class.
    #[error(
        "the code holds no complete function or class; begin with `def`, `class` or a decorator"
    )]
    NoDefinition,
}

/// Code from a model: definitions, with the imports above them split off.
#[derive(Debug)]
pub struct Code {
    text: String,
    /// Names that its imports bind.
    pub imports: Vec<Binding>,
    /// Qualified names of the definitions at its top level.
    pub names: Vec<String>,
    /// Indentation of its lines.
    indent: String,
}

impl Code {
    /// Reads code that must contain definitions.
    ///
    /// # Errors
    ///
    /// Fails if the code does not parse, or contains no complete function or class.
    pub fn read(source: &str) -> Result<Code, CodeError> {
        let (text, _) = LineEnding::split(source);
        let text = text.trim_matches('\n');
        let indent = text
            .lines()
            .find(|l| !l.trim().is_empty() && !l.trim_start().starts_with('#'))
            .map_or("", indentation);
        let whole = reindent(text, indent, "");
        let module = Module::parse(whole.clone());
        if let Some(error) = module.errors().first() {
            return Err(CodeError::Syntax(error.clone()));
        }
        let names: Vec<String> = module.outline().into_iter().map(|d| d.qualified).collect();
        if names.is_empty() {
            return Err(CodeError::NoDefinition);
        }
        let first = module.outline().first().map_or(1, |d| d.first);
        let others = code_children(module.root()).filter(|node| !node.kind().contains("import_"));
        let other_lines: HashSet<usize> = others
            .flat_map(|node| node.start_position().row + 1..=last_line(node))
            .collect();
        let mut imports = Vec::new();
        let mut import_lines = HashSet::new();
        for import in module.imports() {
            let mut lines = import.first..=import.last;
            let is_top = import.top_level && import.last < first;
            if is_top && !lines.any(|line| other_lines.contains(&line)) {
                imports.extend(import.bindings);
                import_lines.extend(import.first..=import.last);
            }
        }
        // Take the original lines, so that multi-line strings stay unchanged.
        let others = (1..).zip(text.lines());
        let others = others.filter(|(number, _)| !import_lines.contains(number));
        let text: Vec<&str> = others.map(|(_, line)| line).collect();
        Ok(Code {
            text: text.join("\n").trim_matches('\n').trim_end().to_owned(),
            imports,
            names,
            indent: indent.to_owned(),
        })
    }

    /// Returns whether the code has decorators of its own.
    pub fn is_decorated(&self) -> bool {
        let mut lines = self.text.lines().map(str::trim_start);
        let code = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
        code.is_some_and(|line| line.starts_with('@'))
    }

    /// Returns how many lines inside strings keep their position if the code is indented by `prefix`.
    fn count_unindented_lines(&self, prefix: &str) -> usize {
        if prefix == self.indent {
            return 0;
        }
        let inside = lines_in_strings(&Module::parse(wrapped(&self.text, &self.indent)));
        let lines = self.text.lines().enumerate();
        // A line that only closes a string is not expected to move.
        let telling = |line: &str| !line.trim().trim_matches(['"', '\'', ')', ',']).is_empty();
        lines
            .filter(|(at, line)| inside.contains(&(at + 2)) && telling(line))
            .count()
    }

    /// Returns the code indented by `prefix`, ending with a line end.
    pub fn indented(&self, prefix: &str) -> String {
        let mut text = reindent(&self.text, &self.indent, prefix);
        text.push('\n');
        text
    }
}

/// Reindents a text so that its first non-empty line begins with `to`. Other lines keep their relative indentation;
/// lines inside strings stay unchanged.
pub fn reindented(text: &str, to: &str) -> String {
    let first = text.lines().find(|line| !line.trim().is_empty());
    reindent(text, first.map_or("", indentation), to)
}

/// Replaces the indentation `from` of the lines with `to`; lines inside strings stay unchanged. If one uses spaces and
/// the other tabs, deeper indentation is converted too.
fn reindent(text: &str, from: &str, to: &str) -> String {
    if from == to {
        return text.to_owned();
    }
    let inside = lines_in_strings(&Module::parse(wrapped(text, from)));
    let own = step(text).unwrap_or_default();
    let there = match to {
        "" => "",
        _ if to.contains('\t') => "\t",
        _ => "    ",
    };
    let steps = Steps::between(&own, there);
    let mut out = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if inside.contains(&(at + 2)) {
            out.push(line.to_owned());
            continue;
        }
        if line.trim().is_empty() {
            out.push(String::new());
            continue;
        }
        let (white, code) = line.split_at(indentation(line).len());
        let further = white.strip_prefix(from);
        let further = further.unwrap_or(&white[white.len().min(from.len())..]);
        let further = match &steps {
            Some(steps) => steps.translated(further),
            None => further.to_owned(),
        };
        out.push(format!("{to}{further}{code}"));
    }
    out.join("\n")
}

/// Puts one line before the text, so that it parses even if it is indented.
fn wrapped(text: &str, indent: &str) -> String {
    match indent {
        "" => format!("\n{text}\n"),
        _ => format!("if 1:\n{text}\n"),
    }
}

/// Returns the lines that begin inside a string other than a docstring.
fn lines_in_strings(module: &Module) -> HashSet<usize> {
    let enters = |node: Node<'_>| node.kind() != "string" && !is_docstring(node);
    descendants(module.root(), enters)
        .filter(|node| node.kind() == "string")
        .flat_map(|node| node.start_position().row + 2..=node.end_position().row + 1)
        .collect()
}

/// The place where code is inserted.
#[derive(Debug, Clone, Copy)]
pub enum InsertionPoint<'a> {
    /// The line above the definition's decorators and comments, but below comments at the top of the file.
    Before(&'a Definition),
    /// The line below the definition.
    After(&'a Definition),
    /// The end of a class, as its last member.
    In(&'a Definition),
    /// The end of the module, but before `if __name__ == "__main__"`.
    End,
}

/// A text with inserted code, and the lines of that code.
#[derive(Debug)]
pub struct EditedText {
    /// The whole file after the edit.
    pub text: String,
    /// First line of the inserted code, from 1.
    pub first: usize,
    /// Last line of the inserted code, inclusive.
    pub last: usize,
    /// Number of lines inside strings that were not indented with the others.
    pub kept: usize,
}

/// Inserts code into a module, with blank lines around it.
pub fn insert(module: &Module, code: &Code, point: InsertionPoint<'_>) -> EditedText {
    let lines: Vec<&str> = module.text().lines().collect();
    let above_comments = |row: usize, indent: &str| {
        let comment = format!("{indent}#");
        let above = lines[..row].iter().rev();
        let first = row - above.take_while(|line| line.starts_with(&comment)).count();
        // Comments at the top, such as a shebang or a licence, are about the file.
        if first == 0 { row } else { first }
    };
    let (at, indent) = match point {
        InsertionPoint::Before(definition) => {
            let indent = prefix(module, definition);
            (above_comments(definition.first - 1, &indent), indent)
        }
        InsertionPoint::After(definition) => (definition.last, prefix(module, definition)),
        InsertionPoint::In(class) => (class.last, member_prefix(module, class)),
        InsertionPoint::End => {
            let end = main_guard(module).map(|row| above_comments(row, ""));
            (end.unwrap_or(lines.len()), String::new())
        }
    };
    let gap = if indent.is_empty() { 2 } else { 1 };
    let is_blank = |line: &&&str| line.trim().is_empty();
    let (before, after) = lines.split_at(at.min(lines.len()));
    let blank_above = before.iter().rev().take_while(is_blank).count();
    let before = &before[..before.len() - blank_above];
    let after = &after[after.iter().take_while(is_blank).count()..];
    let ended =
        |lines: &[&str]| -> String { lines.iter().flat_map(|line| [*line, "\n"]).collect() };
    let mut out = ended(before);
    if !before.is_empty() {
        out.push_str(&"\n".repeat(gap));
    }
    let first = out.matches('\n').count() + 1;
    out.push_str(&code.indented(&indent));
    let last = out.matches('\n').count();
    if let Some(next) = after.first() {
        // Two empty lines separate the code from the module level, one from a class member.
        let columns = next.len() - next.trim_start().len();
        out.push_str(&"\n".repeat(if columns == 0 { 2 } else { 1 }));
        out.push_str(&ended(after));
    }
    EditedText {
        text: out,
        first,
        last,
        kept: code.count_unindented_lines(&indent),
    }
}

/// Replaces a definition, decorators included.
pub fn replace(module: &Module, definition: &Definition, code: &Code) -> EditedText {
    let lines: Vec<&str> = module.text().split_inclusive('\n').collect();
    let first = match code.is_decorated() {
        true => definition.first,
        false => definition.line,
    };
    let mut out: String = lines[..first - 1].concat();
    let indent = prefix(module, definition);
    out.push_str(&code.indented(&indent));
    let last = out.matches('\n').count();
    out.push_str(&lines[definition.last.min(lines.len())..].concat());
    EditedText {
        text: out,
        first,
        last,
        kept: code.count_unindented_lines(&indent),
    }
}

/// Removes a definition with its decorators and the empty lines around it. A block that would become empty gets `pass`.
pub fn remove(module: &Module, definition: &Definition) -> String {
    let lines: Vec<&str> = module.text().split_inclusive('\n').collect();
    let is_blank = |line: &&&str| line.trim().is_empty();
    let above = &lines[..definition.first - 1];
    let below = &lines[definition.last.min(lines.len())..];
    let blank_above = above.iter().rev().take_while(is_blank).count();
    // The first member of a class has no empty lines above it.
    let blank_below = match blank_above {
        0 => below.iter().take_while(is_blank).count(),
        _ => 0,
    };
    let pass = format!("{}pass\n", prefix(module, definition));
    let instead: &[&str] = match is_alone_in_block(module, definition) {
        true => &[pass.as_str()],
        false => &[],
    };
    let above = &above[..above.len() - blank_above];
    [above, instead, &below[blank_below..]].concat().concat()
}

/// Returns whether a definition is the only statement of its class, function or other block.
fn is_alone_in_block(module: &Module, definition: &Definition) -> bool {
    let (start, end) = (definition.bytes.start, definition.bytes.end);
    let node = module.root().descendant_for_byte_range(start, end);
    let block = node.and_then(|node| node.parent());
    block.is_some_and(|block| block.kind() == "block" && code_children(block).count() == 1)
}

/// Returns the indentation of a definition's lines.
fn prefix(module: &Module, definition: &Definition) -> String {
    let line = module.text().lines().nth(definition.first - 1);
    indentation(line.unwrap_or_default()).to_owned()
}

/// Returns the indentation of a class's members.
fn member_prefix(module: &Module, class: &Definition) -> String {
    let above = module.text().get(..class.body.start).unwrap_or_default();
    let line = above.rsplit('\n').next().unwrap_or_default();
    // A body on the line of `class` has no indentation of its own.
    match class.first == class.last || line.len() > class.indent + 8 || !line.trim().is_empty() {
        true => {
            let step = step(module.text()).filter(|step| step.starts_with('\t'));
            prefix(module, class) + step.as_deref().unwrap_or("    ")
        }
        false => line.to_owned(),
    }
}

/// Returns the number of lines before `if __name__ == "__main__"`, if that ends the module.
fn main_guard(module: &Module) -> Option<usize> {
    let last = code_children(module.root()).next_back()?;
    let is_guard = last.kind() == "if_statement"
        && last
            .child_by_field_name("condition")
            .is_some_and(|c| module.source(c).contains("__name__"));
    is_guard.then(|| last.start_position().row)
}

#[cfg(test)]
mod tests;
