//! A reader of `setup.py` that never runs it. It finds the literals passed to `setup()`, or assigned to a variable of
//! that name.

use std::collections::BTreeMap;

/// The content of a literal. Parts that are not literals are omitted.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Text(String),
    List(Vec<Literal>),
    Dict(BTreeMap<String, Literal>),
}

impl Literal {
    /// Returns the strings of a list, or the lines of a text.
    pub(super) fn texts(&self) -> Vec<String> {
        match self {
            Literal::Text(text) => text
                .lines()
                .map(str::trim)
                .filter(|l| !l.is_empty())
                .map(str::to_owned)
                .collect(),
            Literal::List(items) => items
                .iter()
                .flat_map(|i| match i {
                    Literal::Text(text) => vec![text.clone()],
                    other => other.texts(),
                })
                .collect(),
            Literal::Dict(_) => Vec::new(),
        }
    }
}

/// Maximum nesting of lists and dictionaries.
const MAX_DEPTH: usize = 50;
/// Maximum number of right sides to read for one name, because each may be as long as the file.
const MAX_ASSIGNMENTS: usize = 200;

/// Returns the first literal that follows `name=`, as an argument or an assignment. A variable on the right side is
/// looked up.
pub(super) fn literal(code: &str, name: &str) -> Option<Literal> {
    find(code, name, 2, &mut MAX_ASSIGNMENTS.clone())
}

/// Returns the text that follows `name=`, unless it is another literal.
pub(super) fn text(code: &str, name: &str) -> Option<String> {
    match literal(code, name) {
        Some(Literal::Text(text)) => Some(text),
        _ => None,
    }
}

/// Returns the dictionary that follows `name=`. It is empty if that is another literal.
pub(super) fn dict(code: &str, name: &str) -> BTreeMap<String, Literal> {
    match literal(code, name) {
        Some(Literal::Dict(items)) => items,
        _ => BTreeMap::new(),
    }
}

fn find(code: &str, name: &str, depth: usize, remaining_steps: &mut usize) -> Option<Literal> {
    let mut from = 0;
    while let Some(at) = code[from..].find(name) {
        let start = from + at;
        from = start + name.len();
        let before = code[..start].chars().next_back();
        let quoted = matches!(before, Some('"' | '\''));
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.') {
            continue;
        }
        let rest = code[from..]
            .trim_start_matches(|c| quoted && (c == '"' || c == '\''))
            .trim_start();
        // Matches `name = …`, `name=…`, or `"name": …` in a dictionary of arguments.
        let value = if quoted {
            rest.strip_prefix(':')
        } else {
            rest.strip_prefix('=')
        };
        let Some(value) = value.filter(|v| !v.starts_with('=')) else {
            continue;
        };
        *remaining_steps = remaining_steps.checked_sub(1)?;
        let mut reader = SetupReader {
            rest: value,
            depth: 0,
        };
        if let Some(literal) = reader.value() {
            return Some(literal);
        }
        let word: String = value
            .trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        if depth > 0
            && !word.is_empty()
            && word != name
            && let Some(literal) = find(code, &word, depth - 1, remaining_steps)
        {
            return Some(literal);
        }
    }
    None
}

struct SetupReader<'a> {
    rest: &'a str,
    depth: usize,
}

impl SetupReader<'_> {
    fn skip(&mut self) {
        loop {
            self.rest = self
                .rest
                .trim_start_matches(|c: char| c.is_whitespace() || c == '\\');
            if !self.rest.starts_with('#') {
                return;
            }
            self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
        }
    }

    fn eat(&mut self, prefix: &str) -> bool {
        self.skip();
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Reads a literal. Returns `None` and reads nothing for any other expression.
    fn value(&mut self) -> Option<Literal> {
        self.skip();
        let first = self.rest.chars().next()?;
        match first {
            '[' | '(' | '{' if self.depth == MAX_DEPTH => None,
            '[' | '(' | '{' => {
                self.depth += 1;
                let literal = match first {
                    '[' => self.list(']'),
                    '(' => self.list(')'),
                    _ => self.dict(),
                };
                self.depth -= 1;
                literal
            }
            '"' | '\'' => self.text().map(Literal::Text),
            'r' | 'u' | 'b' if self.rest[1..].starts_with(['"', '\'']) => {
                self.rest = &self.rest[1..];
                self.text().map(Literal::Text)
            }
            _ => None,
        }
    }

    fn list(&mut self, end: char) -> Option<Literal> {
        self.rest = &self.rest[1..];
        let mut items = Vec::new();
        let mut buffer = [0; 4];
        let end = end.encode_utf8(&mut buffer);
        while !self.eat(end) {
            let before = self.rest.len();
            if before == 0 {
                return None;
            }
            match self.value() {
                Some(item) => items.push(item),
                None => self.skip_expression(),
            }
            self.operators();
            self.eat(",");
            self.advance(before);
        }
        Some(Literal::List(items))
    }

    fn dict(&mut self) -> Option<Literal> {
        self.rest = &self.rest[1..];
        let mut items = BTreeMap::new();
        while !self.eat("}") {
            let before = self.rest.len();
            if before == 0 {
                return None;
            }
            let key = self.value();
            if key.is_none() {
                self.skip_expression();
            }
            if self.eat(":") {
                match (key, self.value()) {
                    (Some(Literal::Text(key)), Some(value)) => {
                        items.insert(key, value);
                    }
                    (_, Some(_)) => {}
                    (_, None) => self.skip_expression(),
                }
                self.operators();
            }
            self.eat(",");
            self.advance(before);
        }
        Some(Literal::Dict(items))
    }

    /// Skips one character if nothing was read since `before`.
    fn advance(&mut self, before: usize) {
        if self.rest.len() == before {
            let mut characters = self.rest.chars();
            characters.next();
            self.rest = characters.as_str();
        }
    }

    /// Skips the rest of an expression after a literal (`+ other`, `% x`, `.split()`).
    fn operators(&mut self) {
        self.skip();
        if !self.rest.starts_with([',', ']', ')', '}', ':']) && !self.rest.is_empty() {
            self.skip_expression();
        }
    }

    /// Skips to the next `,` or closing bracket of this level.
    fn skip_expression(&mut self) {
        let mut depth = 0;
        loop {
            self.skip();
            let Some(next) = self.rest.chars().next() else {
                return;
            };
            match next {
                '"' | '\'' => {
                    if self.text().is_none() {
                        self.rest = "";
                    }
                    continue;
                }
                '[' | '(' | '{' => depth += 1,
                ']' | ')' | '}' if depth == 0 => return,
                ']' | ')' | '}' => depth -= 1,
                ',' | ':' if depth == 0 => return,
                _ => {}
            }
            self.rest = &self.rest[next.len_utf8()..];
        }
    }

    /// Reads a string, joined with adjacent strings as in Python.
    fn text(&mut self) -> Option<String> {
        let mut all = String::new();
        loop {
            self.one_text(&mut all)?;
            self.skip();
            if !self.rest.starts_with(['"', '\'']) {
                return Some(all);
            }
        }
    }

    fn one_text(&mut self, all: &mut String) -> Option<()> {
        let quote = ["\"\"\"", "'''", "\"", "'"]
            .into_iter()
            .find(|q| self.rest.starts_with(q))?;
        let mut rest = &self.rest[quote.len()..];
        while !rest.starts_with(quote) {
            let next = rest.chars().next()?;
            rest = &rest[next.len_utf8()..];
            if next == '\\' {
                let escaped = rest.chars().next()?;
                rest = &rest[escaped.len_utf8()..];
                match escaped {
                    'n' => all.push('\n'),
                    '\n' => {}
                    other => all.push(other),
                }
            } else {
                all.push(next);
            }
        }
        self.rest = &rest[quote.len()..];
        Some(())
    }
}
