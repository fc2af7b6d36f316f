//! The patches of AutoCodeRover (arXiv 2404.05427, §3.3): pieces of files before and after.
//!
//! ```text
//! # modification 1
//! <file>path/to/test_file.py</file>
//! <original>
//! def test_last():
//!     assert f(1) == 1
//! </original>
//! <patched>
//! def test_last():
//!     assert f(1) == 1
//!
//! def test_it():
//!     assert f(1) == 2
//! </patched>
//! ```

use testwright_tools::python::edit::LineEnding;
use testwright_tools::python::indentation::indentation;

use super::reindent::Reindent;
use super::{FormatError, OldFiles, ProposedFiles, paths, with_line_feeds};

/// Applies the pieces to the old files. The error is about the first one that cannot be applied.
///
/// # Errors
///
/// Fails if the reply contains no piece, or a piece cannot be applied.
pub fn read(reply: &str, old: &dyn OldFiles) -> Result<ProposedFiles, FormatError> {
    let mut proposed = ProposedFiles::default();
    let text = with_line_feeds(reply);
    let mut rest = text.as_str();
    let mut has_file = false;
    while let Some((path, after)) = element(rest, "file") {
        let next = after.find("<file>").unwrap_or(after.len());
        let inside = &after[..next];
        let original = element(inside, "original").map(|(text, _)| text);
        let Some((patched, _)) = element(inside, "patched") else {
            return Err(FormatError::new(format!(
                "the modification of `{}` has no <patched>",
                path.trim()
            )));
        };
        let original = original.unwrap_or_default();
        apply(path, original, patched, old, &mut proposed)?;
        has_file = true;
        rest = &after[next..];
    }
    match has_file {
        true => Ok(proposed),
        false => Err(FormatError::new("the reply contains no <file>")),
    }
}

/// Returns the contents of the first element with this name, and the text after it.
fn element<'t>(text: &'t str, name: &str) -> Option<(&'t str, &'t str)> {
    let (_, inside) = text.split_once(&format!("<{name}>"))?;
    let end = format!("</{name}>");
    Some(inside.split_once(&end).unwrap_or((inside, "")))
}

/// Removes fences, and the newlines next to the tags.
fn lines(text: &str) -> Vec<&str> {
    let is_fence = |line: &&str| line.trim_start().starts_with("```");
    let mut lines: Vec<&str> = text.lines().collect();
    let is_odd = |line: Option<&&str>| line.is_some_and(|l| l.trim().is_empty() || is_fence(l));
    while is_odd(lines.first()) {
        lines.remove(0);
    }
    while is_odd(lines.last()) {
        lines.pop();
    }
    lines
}

fn apply(
    path: &str,
    original: &str,
    patched: &str,
    old: &dyn OldFiles,
    proposed: &mut ProposedFiles,
) -> Result<(), FormatError> {
    let path = paths::clean(path, old)?;
    let (original, patched) = (lines(original), lines(patched));
    if patched.is_empty() {
        return Err(FormatError::new(format!(
            "the <patched> of `{path}` is empty"
        )));
    }
    let (path, text) = match original.is_empty() {
        true => (path.clone(), proposed.text(&path, old)),
        false => proposed.resolve(path, old),
    };
    let (file, ends) = LineEnding::split(&text.unwrap_or_default());
    let before: Vec<&str> = file.lines().collect();
    let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
    let after: Vec<String> = if original.is_empty() {
        // Without an original, the text is a new file, or goes at the end of one.
        let gap = if before.is_empty() { 0 } else { 2 };
        owned(&[&before[..], &["", ""][..gap], &patched].concat())
    } else {
        let Some(at) = position(&before, &original) else {
            return Err(FormatError::new(format!(
                "the <original> is not in `{path}`: {}",
                original.first().copied().unwrap_or_default().trim()
            )));
        };
        let all = original.iter().chain(&patched).copied();
        let mut reindent = Reindent::from_reply(all, &file);
        for (number, line) in original.iter().enumerate() {
            reindent.share(number, line, before[at + number]);
        }
        if reindent.is_needed() {
            proposed.repaired("an <original> is indented differently from the file");
        }
        let lines = patched.iter().enumerate();
        let moved = lines.map(|(number, line)| reindent.indented(number, line));
        let head = owned(&before[..at]);
        let tail = owned(&before[at + original.len()..]);
        [head, moved.collect(), tail].concat()
    };
    let text = format!("{}\n", after.join("\n"));
    proposed.files.insert(path, Some(ends.join(&text)));
    Ok(())
}

/// Returns the position of these lines, either exact or all shifted by the same number of columns, in tabs or
/// spaces.
fn position(before: &[&str], original: &[&str]) -> Option<usize> {
    let columns = |line: &str| indentation(line).len() as isize;
    let starts = 0..(before.len() + 1).saturating_sub(original.len());
    let exact = |at: &usize| {
        (0..original.len()).all(|n| before[at + n].trim_end() == original[n].trim_end())
    };
    if let Some(at) = starts.clone().find(exact) {
        return Some(at);
    }
    let is_other =
        |a: &str, b: &str| indentation(a).contains('\t') != indentation(b).contains('\t');
    let shifted = |at: &usize| {
        let shift = columns(before[*at]) - columns(original[0]);
        (0..original.len()).all(|n| {
            let (here, there) = (before[at + n], original[n]);
            let is_moved = columns(here) - columns(there) == shift || is_other(here, there);
            here.trim() == there.trim() && (here.trim().is_empty() || is_moved)
        })
    };
    starts.into_iter().find(shifted)
}

#[cfg(test)]
mod tests;
