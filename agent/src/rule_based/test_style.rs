//! Style of a test file: quotes, indentation, line length, and assertions of `unittest`.

use std::ops::Range;

use testwright_tools::python::indentation::step;
use testwright_tools::python::{Binding, Comparison, Module, assertions};

use super::extract::{balanced, has_long_string, punctuation};

/// Columns of a line in a file without longer ones, and maximum without a formatter.
const MIN_COLUMNS: usize = 79;
const MAX_COLUMNS: usize = 120;

/// The style of the tests around a new one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TestStyle {
    pub in_class: bool,
    /// Whether the tests use the assertions of `unittest.TestCase`.
    pub is_unittest: bool,
    pub indent: String,
    /// Helpers that the file imports from pytest, each with its local name; none if it imports pytest itself.
    helpers: Vec<(String, String)>,
    quote: Option<char>,
    columns: usize,
}

impl TestStyle {
    /// Reads the style of a file's text; `columns` is the line length of the repository's formatter.
    pub(super) fn read(text: &str, class: Option<&str>, columns: Option<usize>) -> TestStyle {
        let module = Module::parse(text);
        let is_unittest = class.is_some_and(|name| match module.find(name).last() {
            Some(class) => {
                class.signature.contains("TestCase")
                    || text[class.bytes.clone()].contains("self.assert")
            }
            None => text.contains("self.assert"),
        });
        let quotes: Vec<&str> = strings(&module).into_iter().map(|s| &text[s]).collect();
        let count = |quote: char| quotes.iter().filter(|s| s.ends_with(quote)).count();
        let (single, double) = (count('\''), count('"'));
        let longest = text.lines().map(|line| line.chars().count()).max();
        TestStyle {
            in_class: class.is_some(),
            is_unittest,
            indent: step(text).unwrap_or_else(|| "    ".to_owned()),
            helpers: helpers(&module),
            quote: match single.cmp(&double) {
                std::cmp::Ordering::Greater => Some('\''),
                std::cmp::Ordering::Less => Some('"'),
                std::cmp::Ordering::Equal => columns.map(|_| '"'),
            },
            columns: columns
                .unwrap_or_else(|| longest.unwrap_or_default().clamp(MIN_COLUMNS, MAX_COLUMNS)),
        }
    }

    /// Formats a function in this style.
    pub(super) fn format(&self, code: &str) -> String {
        let mut code = code.to_owned();
        if self.is_unittest {
            code = with_unittest_assertions(&code);
        }
        code = self.with_imported_helpers(&code);
        if let Some(quote) = self.quote {
            code = requoted(&code, quote);
        }
        // A line in a long string must stay as it is.
        if has_long_string(&code) {
            return code;
        }
        let columns = match self.in_class {
            true => self.columns.saturating_sub(self.indent.chars().count()),
            false => self.columns,
        };
        let lines = code
            .lines()
            .flat_map(|line| wrapped(line, columns, &self.indent));
        lines.map(|line| line + "\n").collect()
    }

    /// Calls helpers of pytest by the names that the file imports.
    fn with_imported_helpers(&self, code: &str) -> String {
        // A line in a long string must stay as it is.
        if self.helpers.is_empty() || has_long_string(code) {
            return code.to_owned();
        }
        let line_with_helper = |line: &str| {
            let text = line.trim_start();
            let start = line.len() - text.strip_prefix("with ").unwrap_or(text).len();
            let helper = self.helpers.iter().find_map(|(name, local)| {
                let rest = line[start..].strip_prefix(&format!("pytest.{name}("))?;
                Some(format!("{}{local}({rest}\n", &line[..start]))
            });
            helper.unwrap_or_else(|| format!("{line}\n"))
        };
        code.lines().map(line_with_helper).collect()
    }
}

/// Returns the names that a file imports from pytest, each with its local name; none if it imports pytest itself.
fn helpers(module: &Module) -> Vec<(String, String)> {
    let imports = module.imports().into_iter().filter(|i| i.top_level);
    let bindings: Vec<Binding> = imports.flat_map(|import| import.bindings).collect();
    if bindings
        .iter()
        .any(|b| b.module.is_empty() && b.local == "pytest")
    {
        return Vec::new();
    }
    let helpers = bindings.into_iter().filter(|b| b.module == "pytest");
    helpers.map(|b| (b.name, b.local)).collect()
}

/// Returns the ranges of all string literals, in order.
fn strings(module: &Module) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut open = vec![module.root()];
    while let Some(node) = open.pop() {
        if node.kind() == "string" {
            ranges.push(node.byte_range());
            continue;
        }
        let mut cursor = node.walk();
        open.extend(node.children(&mut cursor));
    }
    ranges.sort_by_key(|range| range.start);
    ranges
}

/// Replaces the quotes of strings, unless a string contains the new quotes.
fn requoted(code: &str, quote: char) -> String {
    let mut out = code.to_owned();
    for range in strings(&Module::parse(code)).into_iter().rev() {
        if let Some(literal) = with_quote(&code[range.clone()], quote) {
            out.replace_range(range, &literal);
        }
    }
    out
}

fn with_quote(literal: &str, quote: char) -> Option<String> {
    let other = if quote == '"' { '\'' } else { '"' };
    let (prefix, rest) = literal.split_at(literal.find(['"', '\''])?);
    let inner = rest.strip_prefix(other)?.strip_suffix(other)?;
    // Triple quotes begin like an empty string. A format string contains code.
    let is_special = inner.starts_with(other) || prefix.contains(['f', 'F', 'r', 'R']);
    if is_special || inner.contains(quote) {
        return None;
    }
    // Only the old quotes need not be escaped any more.
    let mut plain = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match (c, chars.clone().next()) {
            ('\\', Some(next)) => {
                if next != other {
                    plain.push(c);
                }
                plain.push(next);
                chars.next();
            }
            _ => plain.push(c),
        }
    }
    Some(format!("{prefix}{quote}{plain}{quote}"))
}

/// Replaces assertions and pytest's helpers by the methods of `unittest.TestCase`.
fn with_unittest_assertions(code: &str) -> String {
    let code = match code.contains("match=") {
        true => code.to_owned(),
        false => code
            .replace("with pytest.raises(", "with self.assertRaises(")
            .replace("str(raised.value)", "str(raised.exception)")
            .replace("pytest.fail(", "self.fail("),
    };
    let module = Module::parse(code.as_str());
    let mut out = code.clone();
    for assertion in assertions(&module, &(0..code.len())).iter().rev() {
        let call = match &assertion.comparison {
            _ if assertion.is_nested || !assertion.message.is_empty() => None,
            Comparison::Unary { negated, operand } => {
                let method = if *negated {
                    "assertFalse"
                } else {
                    "assertTrue"
                };
                Some(format!("self.{method}({})", &code[operand.bytes.clone()]))
            }
            Comparison::Binary {
                left,
                operator,
                right,
            } => {
                let (left, right) = (&code[left.bytes.clone()], &code[right.bytes.clone()]);
                match (operator.as_str(), right) {
                    ("is", "None") => Some(format!("self.assertIsNone({left})")),
                    ("is not", "None") => Some(format!("self.assertIsNotNone({left})")),
                    (operator, _) => {
                        method(operator).map(|method| format!("self.{method}({left}, {right})"))
                    }
                }
            }
            Comparison::Chain => None,
        };
        if let Some(call) = call {
            out.replace_range(assertion.bytes.clone(), &call);
        }
    }
    out
}

fn method(operator: &str) -> Option<&'static str> {
    Some(match operator {
        "==" => "assertEqual",
        "!=" => "assertNotEqual",
        "is" => "assertIs",
        "is not" => "assertIsNot",
        "in" => "assertIn",
        "not in" => "assertNotIn",
        _ => return None,
    })
}

/// Wraps a statement that is too long as black does: at its last brackets, or in new parentheses.
fn wrapped(line: &str, columns: usize, step: &str) -> Vec<String> {
    let fits = |text: &str| text.chars().count() <= columns;
    let indent = &line[..line.len() - line.trim_start().len()];
    let inner = format!("{indent}{step}");
    let unchanged = || vec![line.to_owned()];
    if fits(line) || line.ends_with('\\') {
        return unchanged();
    }
    let (brackets, commas) = structure(line);
    if let Some((open, close)) =
        brackets.filter(|(_, close)| matches!(&line[close + 1..], "" | ":"))
    {
        let (head, body, tail) = (&line[..=open], &line[open + 1..close], &line[close..]);
        if body.trim().is_empty() || !fits(head) {
            return unchanged();
        }
        let mut lines = vec![head.to_owned()];
        let whole = format!("{inner}{}", body.trim());
        let is_lazy = body.contains(" for ") || body.contains("lambda");
        if fits(&whole) || commas.is_empty() || is_lazy {
            lines.push(whole);
        } else {
            let ends = commas.iter().copied().chain([close]);
            let mut start = open + 1;
            for end in ends {
                let part = line[start..end].trim();
                if !part.is_empty() {
                    lines.push(format!("{inner}{part},"));
                }
                start = end + 1;
            }
        }
        lines.push(format!("{indent}{tail}"));
        return lines;
    }
    let code = line.trim_start();
    let (head, parts) = match (code.strip_prefix("assert "), code.split_once(" = ")) {
        (Some(condition), _) => {
            let sides = ["==", "!="].iter().find_map(|operator| {
                let (left, right) = condition.split_once(&format!(" {operator} "))?;
                let sides = vec![left.to_owned(), format!("{operator} {right}")];
                (balanced(left) && balanced(right)).then_some(sides)
            });
            let sides = sides.filter(|_| !fits(&format!("{inner}{condition}")));
            (
                "assert",
                sides.unwrap_or_else(|| vec![condition.to_owned()]),
            )
        }
        (None, Some((name, value))) if !name.contains(['(', '[', ' ', '"', '\'']) => {
            (&code[..name.len() + " =".len()], vec![value.to_owned()])
        }
        _ => return unchanged(),
    };
    let mut lines = vec![format!("{indent}{head} (")];
    lines.extend(parts.iter().map(|part| format!("{inner}{part}")));
    lines.push(format!("{indent})"));
    lines
}

/// Returns the last pair of outermost brackets of a line, and the commas directly inside it.
fn structure(line: &str) -> (Option<(usize, usize)>, Vec<usize>) {
    let (mut last, mut commas) = (None, Vec::new());
    let mut open: Vec<usize> = Vec::new();
    for (at, mark) in punctuation(line) {
        match mark {
            b',' if open.len() == 1 => commas.push(at),
            b',' => {}
            b'(' | b'[' | b'{' => {
                if open.is_empty() {
                    commas.clear();
                }
                open.push(at);
            }
            _ => {
                let start = open.pop();
                if open.is_empty() {
                    last = start.map(|start| (start, at));
                }
            }
        }
    }
    (last.filter(|_| open.is_empty()), commas)
}

#[cfg(test)]
mod tests;
