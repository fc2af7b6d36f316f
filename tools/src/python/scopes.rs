//! Finds the function that a line belongs to, without parsing.
//!
//! `search` needs this for many files at once, where parsing would take longer than searching. One pass over the
//! bytes handles strings, brackets and indentation. For files that parse, it gives the same result as
//! [`super::Module::outline`].

/// A class or function. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// Names of the enclosing classes and functions and its own, joined by dots.
    pub qualified: String,
    /// First line, decorators included.
    pub first: usize,
    /// Last line, inclusive.
    pub last: usize,
}

impl Scope {
    /// Returns the name without the enclosing scopes.
    pub fn name(&self) -> &str {
        let inner = self.qualified.rsplit_once('.');
        inner.map_or(&self.qualified, |(_, name)| name)
    }

    /// Returns the qualified name of the enclosing scope; empty at the top of the module.
    pub fn parent(&self) -> &str {
        self.qualified
            .rsplit_once('.')
            .map_or("", |(parent, _)| parent)
    }

    /// Returns the innermost scope around a line.
    pub fn innermost(scopes: &[Scope], line: usize) -> Option<&Scope> {
        scopes.iter().rfind(|s| s.first <= line && line <= s.last)
    }
}

struct Open {
    indent: usize,
    at: usize,
}

/// Returns all scopes of a file, in the order in which they begin.
pub fn scopes(text: &str) -> Vec<Scope> {
    let bytes = text.as_bytes();
    let mut scopes: Vec<Scope> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut decorated: Option<usize> = None;
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let mut start = at;
        while at < bytes.len() && matches!(bytes[at], b' ' | b'\t' | b'\x0c') {
            at += 1;
            // Like Python, start counting again.
            if bytes[at - 1] == b'\x0c' {
                start = at;
            }
        }
        let first = line;
        if at >= bytes.len() || matches!(bytes[at], b'\n' | b'\r' | b'#') {
            if bytes.get(at) == Some(&b'#') {
                // The indentation of a comment below the last statement decides where it belongs.
                for scope in open.iter().filter(|o| o.indent < at - start) {
                    scopes[scope.at].last = line;
                }
            }
            at = skip_line(bytes, at);
            line += 1;
            continue;
        }
        let indent = at - start;
        while open.last().is_some_and(|o| o.indent >= indent) {
            open.pop();
        }
        let head = &text[at..];
        let end = logical_line(bytes, at);
        let lines = bytes[at..end].iter().filter(|&&b| b == b'\n').count();
        let ends_at = line + lines - usize::from(bytes[..end].ends_with(b"\n"));
        for scope in &open {
            scopes[scope.at].last = ends_at;
        }
        if let Some(name) = defined(head) {
            let qualified = match open.last() {
                Some(outer) => format!("{}.{name}", scopes[outer.at].qualified),
                None => name.to_owned(),
            };
            open.push(Open {
                indent,
                at: scopes.len(),
            });
            scopes.push(Scope {
                qualified,
                first: decorated.take().unwrap_or(first),
                last: ends_at,
            });
        } else if head.starts_with('@') {
            decorated.get_or_insert(first);
        } else {
            decorated = None;
        }
        at = end;
        line += lines;
    }
    scopes
}

/// Returns the name that `def`, `async def` or `class` at the start of the text defines.
fn defined(head: &str) -> Option<&str> {
    let rest = match head.strip_prefix("async") {
        Some(rest) if rest.starts_with([' ', '\t']) => rest.trim_start(),
        _ => head,
    };
    let rest = rest
        .strip_prefix("def")
        .or_else(|| head.strip_prefix("class"))?;
    if !rest.starts_with([' ', '\t']) {
        return None;
    }
    let rest = rest.trim_start_matches([' ', '\t']);
    let name = rest
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next();
    name.filter(|name| !name.is_empty())
}

fn skip_line(bytes: &[u8], at: usize) -> usize {
    bytes[at..]
        .iter()
        .position(|&b| b == b'\n')
        .map_or(bytes.len(), |n| at + n + 1)
}

/// Returns the end of the logical line, across brackets, strings and backslashes.
fn logical_line(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at < bytes.len() {
        match bytes[at] {
            b'\n' if depth == 0 => return at + 1,
            b'#' => {
                at += bytes[at..]
                    .iter()
                    .position(|&b| b == b'\n')
                    .unwrap_or(bytes.len() - at);
                continue;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'\\' => {
                // A backslash joins lines, also with a carriage return between.
                at += 1 + usize::from(bytes.get(at + 1) == Some(&b'\r'));
            }
            quote @ (b'"' | b'\'') => {
                at = string_end(bytes, at, quote);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Returns the offset after a string that begins at `at`. An unclosed single-line string ends with the line.
fn string_end(bytes: &[u8], at: usize, quote: u8) -> usize {
    let triple = bytes[at..].starts_with(&[quote; 3]);
    let mut here = at + if triple { 3 } else { 1 };
    while here < bytes.len() {
        match bytes[here] {
            b'\\' => {
                here += 1 + usize::from(
                    bytes.get(here + 1) == Some(&b'\r') && bytes.get(here + 2) == Some(&b'\n'),
                )
            }
            b'\n' if !triple => return here,
            b if b == quote && (!triple || bytes[here..].starts_with(&[quote; 3])) => {
                return here + if triple { 3 } else { 1 };
            }
            _ => {}
        }
        here += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests;
