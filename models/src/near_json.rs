//! A tolerant reader of JSON as models write it.
//!
//! Strict JSON is parsed as such. Near-JSON is accepted if it can be read in only one way: Python's quotes and
//! constants, typographic quotes, trailing commas, raw newlines in strings, keys without quotes, or a missing
//! last bracket. Everything else is a [`Problem`] with its position, which can be shown to a model. The reader
//! does not guess where a string with unescaped quotes ends.

use serde_json::{Map, Value};

#[cfg(test)]
mod tests;

/// Maximum nesting depth, more than any argument needs; it bounds the recursion.
const MAX_DEPTH: usize = 64;

/// Quotes that word processors and some models write instead of `"`.
const TYPOGRAPHIC_QUOTES: [char; 3] = ['“', '”', '„'];

/// A problem with a text that should be JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct Problem {
    /// Line of the text, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Description of the problem, for the model.
    pub message: String,
    /// Whether the text ended before the value did.
    pub cut: bool,
}

/// A value at the start of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Prefix {
    /// The value, read from JSON or near-JSON.
    pub value: Value,
    /// Byte offset after the value.
    pub end: usize,
    /// Whether closing brackets were missing at the end of the text.
    pub unclosed: bool,
}

/// Parses a whole text as one value. Set `whole` to false if the text may have been cut short because the
/// reply hit its limit. Missing brackets at the end are then a problem.
///
/// # Errors
///
/// Fails if the text is not one value, or could be read in several ways.
pub fn read(text: &str, whole: bool) -> Result<Value, Problem> {
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    let prefix = prefix(text, whole)?;
    let rest = &text[prefix.end..];
    if let Some(i) = rest.find(|c: char| !c.is_whitespace() && c != '}' && c != ']') {
        let unexpected = rest[i..].chars().next().unwrap_or(' ');
        return Err(problem(
            text,
            prefix.end + i,
            format!("the value has ended, but `{unexpected}` follows"),
        ));
    }
    Ok(prefix.value)
}

/// Parses the value at the start of a text, after white space.
///
/// # Errors
///
/// Fails if the text does not start with a value, or could be read in several ways.
pub fn prefix(text: &str, whole: bool) -> Result<Prefix, Problem> {
    let mut reader = NearJsonReader {
        text,
        at: 0,
        whole,
        unclosed: false,
    };
    reader.skip_blank();
    let value = reader.value(0)?;
    Ok(Prefix {
        value,
        end: reader.at,
        unclosed: reader.unclosed,
    })
}

fn problem(text: &str, at: usize, message: impl Into<String>) -> Problem {
    let at = at.min(text.len());
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    Problem {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        message: message.into(),
        cut: false,
    }
}

/// Returns the start of a word, as messages quote it.
pub(crate) fn excerpt(word: &str) -> String {
    const MAX_EXCERPT_LEN: usize = 80;
    let mut short: String = word.chars().take(MAX_EXCERPT_LEN).collect();
    if short.len() < word.len() {
        short.push('…');
    }
    short
}

struct NearJsonReader<'a> {
    text: &'a str,
    at: usize,
    whole: bool,
    unclosed: bool,
}

impl NearJsonReader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T, Problem> {
        self.fail_at(self.at, message)
    }

    fn fail_at<T>(&self, at: usize, message: impl Into<String>) -> Result<T, Problem> {
        Err(problem(self.text, at, message))
    }

    fn cut<T>(&self, message: impl Into<String>) -> Result<T, Problem> {
        let mut problem = problem(self.text, self.text.len(), message);
        problem.cut = true;
        Err(problem)
    }

    fn skip_blank(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn value(&mut self, depth: usize) -> Result<Value, Problem> {
        if depth > MAX_DEPTH {
            return self.fail("nested too deeply");
        }
        match self.peek() {
            None => self.cut("the text ends where a value was expected"),
            // Templates of prompts show doubled braces, which models copy.
            Some('{') if self.rest().starts_with("{{") => {
                self.at += 1;
                let value = self.value(depth + 1)?;
                if self.peek() == Some('}') {
                    self.at += 1;
                }
                Ok(value)
            }
            Some('{') => self.object(depth),
            Some('[') => self.array(depth),
            Some('"' | '\'' | '“' | '”' | '„') => Ok(Value::String(self.string()?)),
            Some('r' | 'R') if matches!(self.rest().as_bytes().get(1), Some(b'"' | b'\'')) => {
                self.at += 1;
                let start = self.at;
                Ok(Value::String(self.quoted(start, Escapes::None)?))
            }
            Some(c) if c == '-' || c == '.' || c.is_ascii_digit() => self.number(),
            Some(c) if c.is_alphabetic() || c == '_' => self.constant(),
            Some(c) => self.fail(format!("a value was expected, not `{c}`")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, Problem> {
        self.at += 1;
        let mut map = Map::new();
        while !self.take_end('}')? {
            let key_at = self.at;
            let key = self.key()?;
            self.skip_blank();
            match self.peek() {
                Some(colon @ (':' | '：')) => self.at += colon.len_utf8(),
                None => {
                    return self.cut(format!("the text ends after the key \"{}\"", excerpt(&key)));
                }
                Some(c) => {
                    return self.fail(format!("`:` was expected after the key, not `{c}`"));
                }
            }
            self.skip_blank();
            let value = self.value(depth + 1)?;
            if map.contains_key(&key) {
                return self.fail_at(
                    key_at,
                    format!("the key \"{}\" is given twice", excerpt(&key)),
                );
            }
            map.insert(key, value);
            self.take_comma('}')?;
        }
        Ok(Value::Object(map))
    }

    fn array(&mut self, depth: usize) -> Result<Value, Problem> {
        self.at += 1;
        let mut items = Vec::new();
        while !self.take_end(']')? {
            items.push(self.value(depth + 1)?);
            self.take_comma(']')?;
        }
        Ok(Value::Array(items))
    }

    /// Skips the bracket that closes a container, which may be missing at the end of a text. Returns whether the
    /// container ends here.
    fn take_end(&mut self, bracket: char) -> Result<bool, Problem> {
        self.skip_blank();
        match self.peek() {
            None if !self.whole => {
                self.cut(format!("the text ends before the closing `{bracket}`"))
            }
            None => {
                self.unclosed = true;
                Ok(true)
            }
            Some(c) => {
                let is_end = c == bracket;
                self.at += usize::from(is_end);
                Ok(is_end)
            }
        }
    }

    /// Skips the comma after an item, which may be missing before the closing bracket.
    fn take_comma(&mut self, bracket: char) -> Result<(), Problem> {
        self.skip_blank();
        match self.peek() {
            Some(comma @ (',' | '，')) => self.at += comma.len_utf8(),
            Some(c) if c != bracket => return self.not_the_end(c, bracket),
            _ => {}
        }
        Ok(())
    }

    fn not_the_end<T>(&self, unexpected: char, bracket: char) -> Result<T, Problem> {
        let behind_string = self.text[..self.at].trim_end().ends_with(['"', '\'']);
        let hint = if behind_string && unexpected != '"' {
            " (a quote inside a string is written `\\\"`)"
        } else {
            ""
        };
        self.fail(format!(
            "`,` or `{bracket}` was expected, not `{unexpected}`{hint}"
        ))
    }

    fn key(&mut self) -> Result<String, Problem> {
        match self.peek() {
            Some('"' | '\'' | '“' | '”' | '„') => self.string(),
            Some(c) if c.is_alphabetic() || c == '_' => Ok(self.word()),
            Some(c) => self.fail(format!("a key in quotes was expected, not `{c}`")),
            None => self.cut("the text ends where a key was expected"),
        }
    }

    fn word(&mut self) -> String {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')
            .unwrap_or(rest.len());
        let word = rest[..end].to_owned();
        self.at += end;
        word
    }

    fn constant(&mut self) -> Result<Value, Problem> {
        let start = self.at;
        let word = self.word();
        match word.as_str() {
            "true" | "True" => Ok(Value::Bool(true)),
            "false" | "False" => Ok(Value::Bool(false)),
            "null" | "None" => Ok(Value::Null),
            _ => self.fail_at(
                start,
                format!(
                    "`{}` is not a JSON value; a text needs quotes",
                    excerpt(&word)
                ),
            ),
        }
    }

    fn number(&mut self) -> Result<Value, Problem> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.' | '_'))
            .unwrap_or(rest.len());
        let word = &rest[..end];
        match serde_json::from_str::<serde_json::Number>(word) {
            Ok(number) => {
                self.at += end;
                Ok(Value::Number(number))
            }
            Err(_) => self.fail(format!("`{}` is not a number", excerpt(word))),
        }
    }

    fn string(&mut self) -> Result<String, Problem> {
        let json = self.peek() != Some('\'') && !self.rest().starts_with("\"\"\"");
        let escapes = if json { Escapes::Json } else { Escapes::Python };
        self.quoted(self.at, escapes)
    }

    fn quoted(&mut self, start: usize, escapes: Escapes) -> Result<String, Problem> {
        let quote = self.peek().unwrap_or('"');
        let is_typographic = TYPOGRAPHIC_QUOTES.contains(&quote);
        let triple: String = std::iter::repeat_n(quote, 3).collect();
        let fence = if !is_typographic && self.rest().starts_with(&triple) {
            triple
        } else {
            quote.to_string()
        };
        self.at += fence.len();
        let mut out = String::new();
        let mut unknown_escape = false;
        let mut control_escape = None;
        loop {
            let is_end = match is_typographic {
                true => self.rest().starts_with(TYPOGRAPHIC_QUOTES),
                false => self.rest().starts_with(&fence),
            };
            if is_end {
                self.at += fence.len();
                break;
            }
            let Some(c) = self.peek() else {
                let from = problem(self.text, start, "");
                return self.cut(format!(
                    "the string that begins at line {}, column {} has no end",
                    from.line, from.column
                ));
            };
            let at = self.at;
            self.at += c.len_utf8();
            if c != '\\' {
                out.push(c);
                continue;
            }
            match escapes {
                Escapes::None => {
                    out.push('\\');
                    if let Some(next) = self.peek() {
                        out.push(next);
                        self.at += next.len_utf8();
                    }
                }
                Escapes::Json | Escapes::Python => {
                    if matches!(self.peek(), Some('b' | 'f')) {
                        control_escape = Some(at);
                    }
                    unknown_escape |= self.escape(at, escapes, &mut out)?;
                }
            }
        }
        match control_escape {
            Some(at) if unknown_escape => self.fail_at(
                at,
                "this backslash can be read in two ways; inside a JSON string a backslash is written `\\\\`",
            ),
            _ => Ok(out),
        }
    }

    /// Reads the character after a backslash. Returns true if it was not an escape, so that the backslash
    /// stays.
    fn escape(&mut self, at: usize, escapes: Escapes, out: &mut String) -> Result<bool, Problem> {
        let Some(c) = self.peek() else {
            return self.cut("the text ends after a backslash");
        };
        self.at += c.len_utf8();
        match c {
            '"' | '\\' | '/' | '\'' => out.push(c),
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'u' => {
                let code = self.hex(at)?;
                let code = if (0xd800..0xdc00).contains(&code) && self.rest().starts_with("\\u") {
                    self.at += 2;
                    let low = self.hex(at)?;
                    0x10000 + ((code - 0xd800) << 10) + (low.wrapping_sub(0xdc00) & 0x3ff)
                } else {
                    code
                };
                match char::from_u32(code) {
                    Some(c) => out.push(c),
                    None => return self.fail_at(at, "this \\u escape is half a character"),
                }
            }
            // In Python, a backslash at the end of a line joins it with the next.
            '\n' if matches!(escapes, Escapes::Python) => {}
            _ => {
                out.push('\\');
                out.push(c);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn hex(&mut self, at: usize) -> Result<u32, Problem> {
        let code = self
            .rest()
            .get(..4)
            .filter(|h| h.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|h| u32::from_str_radix(h, 16).ok());
        match code {
            Some(code) => {
                self.at += 4;
                Ok(code)
            }
            None => self.fail_at(at, "`\\u` needs four hexadecimal digits"),
        }
    }
}

#[derive(Clone, Copy)]
enum Escapes {
    Json,
    Python,
    /// Python's raw strings, which have no escapes.
    None,
}
