//! The fault-tolerant format of SWT-bench (§4.1, ZeroShotPlus): complete functions and classes, to insert or
//! to replace one, at a line that may be off.
//!
//! ```text
//! diff
//! path/to/test_file.py
//! insert
//! EOF
//! def test_it():
//!     assert f(1) == 2
//! end diff
//! ```

use testwright_tools::python::edit::{Code, InsertionPoint, LineEnding, insert, replace};
use testwright_tools::python::import_edit::add_imports;
use testwright_tools::python::{Definition, Kind, Module, flatten};

use super::{FormatError, OldFiles, ProposedFiles, paths, with_line_feeds};

/// Minimum similarity, from 0 to 1, of a name to one that does not exist.
const MIN_SIMILARITY: f64 = 0.75;

/// Applies the blocks to the old files. The error is about the first block that cannot be applied.
///
/// # Errors
///
/// Fails if the reply contains no block, or a block cannot be applied.
pub fn read(reply: &str, old: &dyn OldFiles) -> Result<ProposedFiles, FormatError> {
    let mut proposed = ProposedFiles::default();
    let blocks = blocks(&with_line_feeds(reply), &mut proposed);
    if blocks.is_empty() {
        return Err(FormatError::new("the reply contains no `diff` block"));
    }
    for block in blocks {
        block.apply(old, &mut proposed)?;
    }
    Ok(proposed)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Insert,
    Rewrite,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Begin,
    End,
    /// Line number, counted from 1.
    Line(usize),
}

#[derive(Debug, PartialEq, Eq)]
struct Block {
    path: String,
    mode: Mode,
    at: At,
    code: String,
}

fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```")
}

/// Returns the blocks that can be recognized.
fn blocks(text: &str, proposed: &mut ProposedFiles) -> Vec<Block> {
    let lines: Vec<&str> = text.lines().collect();
    let word = |line: &str| line.trim().trim_matches(['`', '*', ':']).to_lowercase();
    // A fence with the language `diff` also starts a block, unless a line of its own does.
    let begins = |at: usize| {
        let is_begin = |at: usize| lines.get(at).is_some_and(|line| word(line) == "diff");
        is_begin(at) && !(is_fence(lines[at]) && is_begin(at + 1))
    };
    let starts: Vec<usize> = (0..lines.len()).filter(|at| begins(*at)).collect();
    let mut blocks = Vec::new();
    for (n, start) in starts.iter().enumerate() {
        let limit = starts.get(n + 1).copied().unwrap_or(lines.len());
        let inside = &lines[start + 1..limit];
        let end = inside.iter().position(|line| word(line) == "end diff");
        if end.is_none() {
            proposed.repaired("a block is not closed by `end diff`");
        }
        blocks.extend(block(&inside[..end.unwrap_or(inside.len())], proposed));
    }
    blocks
}

fn block(lines: &[&str], proposed: &mut ProposedFiles) -> Option<Block> {
    // Fences above the code belong to the reply.
    let head = |line: &&str| is_fence(line) || line.trim().is_empty();
    let mut lines = lines.iter().copied().peekable();
    while lines.next_if(head).is_some() {}
    let path = lines.next()?.trim().to_owned();
    while lines.next_if(|line| is_fence(line)).is_some() {}
    let mode = match lines.peek()?.trim().to_lowercase().as_str() {
        "insert" => Some(Mode::Insert),
        "rewrite" => Some(Mode::Rewrite),
        _ => None,
    };
    match mode {
        Some(_) => drop(lines.next()),
        None => proposed.repaired("a block does not say `insert` or `rewrite`"),
    }
    while lines.next_if(|line| is_fence(line)).is_some() {}
    let at = lines.peek().map(|line| line.trim().to_lowercase());
    let at = at.and_then(|line| match line.as_str() {
        "bof" => Some(At::Begin),
        "eof" => Some(At::End),
        line => {
            let number = line.trim_start_matches("line").trim();
            number.parse().ok().map(At::Line)
        }
    });
    match at {
        Some(_) => drop(lines.next()),
        None => proposed.repaired("a block does not say where"),
    }
    let code: Vec<&str> = lines.collect();
    Some(Block {
        path,
        mode: mode.unwrap_or(Mode::Insert),
        at: at.unwrap_or(At::End),
        code: without_fences(&code, proposed),
    })
}

/// Removes fences, except those inside of a string such as a docstring, which are code.
fn without_fences(code: &[&str], proposed: &mut ProposedFiles) -> String {
    let is_around = |line: &&&str| is_fence(line) || line.trim().is_empty();
    let first = code.iter().take_while(is_around).count();
    let last = code.iter().rev().take_while(is_around).count();
    let mut quotes = None;
    let mut lines = Vec::new();
    for line in code.get(first..code.len() - last).unwrap_or_default() {
        if quotes.is_none() && is_fence(line) {
            proposed.repaired("fences in the code of a block are omitted");
            continue;
        }
        quotes = open_quotes(line, quotes);
        lines.push(*line);
    }
    lines.join("\n")
}

/// Returns the quotes of the multi-line string that is open after a line, given the one open before it.
fn open_quotes(line: &str, mut open: Option<&'static str>) -> Option<&'static str> {
    let mut rest = line;
    loop {
        let next = match open {
            Some(quotes) => rest.find(quotes).map(|at| (at, quotes)),
            None => ["\"\"\"", "'''"]
                .into_iter()
                .filter_map(|quotes| Some((rest.find(quotes)?, quotes)))
                .min(),
        };
        let Some((at, quotes)) = next else {
            return open;
        };
        open = open.is_none().then_some(quotes);
        rest = &rest[at + quotes.len()..];
    }
}

impl Block {
    fn apply(&self, old: &dyn OldFiles, proposed: &mut ProposedFiles) -> Result<(), FormatError> {
        let (path, before) = proposed.resolve(paths::clean(&self.path, old)?, old);
        let Some(before) = before else {
            if self.mode == Mode::Rewrite {
                proposed.repaired(format!("`{path}` is new: there is nothing to rewrite"));
            }
            let code = format!("{}\n", self.code.trim_matches('\n').trim_end());
            proposed.files.insert(path, Some(code));
            return Ok(());
        };
        let (text, ends) = LineEnding::split(&before);
        let after = match Code::read(&self.code) {
            Ok(code) if !code.names.is_empty() => self.with_code(&text, &code, &path, proposed)?,
            Ok(_) | Err(_) if self.mode == Mode::Insert => {
                let what = format!("the code inserted into `{path}` is not a function or class");
                proposed.repaired(what);
                self.with_text(&text)
            }
            Ok(_) => return Err(FormatError::new("a rewrite contains no function or class")),
            Err(why) => return Err(FormatError::new(format!("a rewrite in `{path}`: {why}"))),
        };
        proposed.files.insert(path, Some(ends.join(&after)));
        Ok(())
    }

    fn with_code(
        &self,
        text: &str,
        code: &Code,
        path: &str,
        proposed: &mut ProposedFiles,
    ) -> Result<String, FormatError> {
        let module = Module::parse(text);
        let outline = module.outline();
        let target = match self.mode {
            Mode::Rewrite => self.rewritten(&outline, code),
            Mode::Insert => None,
        };
        let changed = match target {
            Some((definition, is_exact)) => {
                if !is_exact {
                    proposed.repaired(format!(
                        "`{}` is rewritten as `{}`",
                        definition.qualified,
                        code.names.join(", ")
                    ));
                }
                replace(&module, definition, code).text
            }
            None => {
                if self.mode == Mode::Rewrite {
                    proposed.repaired(format!(
                        "`{path}` has no `{}` to rewrite: it is inserted",
                        code.names.join(", ")
                    ));
                }
                let point = self.point(&outline);
                if self.at == At::Begin {
                    let stands = match point {
                        InsertionPoint::Before(_) => "above its first function or class",
                        InsertionPoint::In(_) => "in its first class",
                        InsertionPoint::After(_) | InsertionPoint::End => "at its end",
                    };
                    proposed.repaired(format!(
                        "code for the beginning of `{path}` is inserted {stands}"
                    ));
                }
                insert(&module, code, point).text
            }
        };
        // The imports were above the code.
        let module = Module::parse(changed);
        let is_own = |_: &str| false;
        let done = add_imports(&module, &code.imports, &is_own);
        done.map(|done| done.text).map_err(FormatError::new)
    }

    /// Returns the definition that the code replaces: the one of that name nearest to the line, or one with a
    /// similar name.
    fn rewritten<'o>(
        &self,
        outline: &'o [Definition],
        code: &Code,
    ) -> Option<(&'o Definition, bool)> {
        let [name] = code.names.as_slice() else {
            return None;
        };
        let distance = |definition: &Definition| match self.at {
            At::Line(line) => definition.line.abs_diff(line),
            At::Begin => definition.line,
            At::End => usize::MAX - definition.line,
        };
        let all = flatten(outline);
        let exact = all.iter().filter(|d| d.name == *name);
        if let Some(definition) = exact.min_by_key(|d| distance(d)) {
            return Some((definition, true));
        }
        // The prefix common to all tests is not significant.
        let stem = |name: &'_ str| name.trim_start_matches("test_").to_owned();
        let likeness = |definition: &Definition| {
            strsim::normalized_levenshtein(&stem(&definition.name), &stem(name))
        };
        let near = all.into_iter().filter(|d| likeness(d) >= MIN_SIMILARITY);
        near.min_by_key(|d| distance(d)).map(|d| (d, false))
    }

    /// Returns the point after the definition that contains or precedes the line, or before the first
    /// definition. Methods go into their class.
    fn point<'o>(&self, outline: &'o [Definition]) -> InsertionPoint<'o> {
        let mut lines = self.code.lines();
        let first = lines.find(|line| line.trim_start().starts_with("def "));
        let is_method = first.is_some_and(|line| line.contains("(self") || line.contains("(cls"));
        let line = match self.at {
            At::Line(line) => line,
            At::Begin => 0,
            At::End => usize::MAX,
        };
        let before = |definitions: &'o [Definition]| {
            let starts = definitions.iter().filter(|d| d.first <= line);
            starts.max_by_key(|d| d.first)
        };
        // The first definition may be under an `if`, and a method belongs in a class.
        let first = outline.iter().find(|d| d.indent == 0);
        let class = outline.iter().find(|d| d.kind == Kind::Class);
        match before(outline) {
            None => match class.filter(|_| is_method) {
                Some(class) => InsertionPoint::In(class),
                None => first.map_or(InsertionPoint::End, InsertionPoint::Before),
            },
            Some(class) if is_method && !class.children.is_empty() => match before(&class.children)
            {
                Some(method) if self.at != At::End => InsertionPoint::After(method),
                _ => InsertionPoint::In(class),
            },
            Some(_) if self.at == At::End => InsertionPoint::End,
            Some(definition) => InsertionPoint::After(definition),
        }
    }

    /// Inserts statements unchanged.
    fn with_text(&self, text: &str) -> String {
        let lines: Vec<&str> = text.lines().collect();
        let at = match self.at {
            At::Begin => 0,
            At::End => lines.len(),
            At::Line(line) => line.saturating_sub(1).min(lines.len()),
        };
        let code: Vec<&str> = self.code.trim_matches('\n').lines().collect();
        let all = [&lines[..at], &code, &lines[at..]].concat();
        format!("{}\n", all.join("\n"))
    }
}

#[cfg(test)]
mod tests;
