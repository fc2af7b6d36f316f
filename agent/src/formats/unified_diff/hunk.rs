//! Locates the lines that a hunk refers to.

use std::borrow::Cow;

use testwright_tools::python::edit::LineEnding;

use super::super::reindent::Reindent;
use super::super::{FormatError, ProposedFiles};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HunkLine {
    Context(String),
    Removed(String),
    Added(String),
    /// A line without a sign: context that lost its space, or text after the diff.
    Unsigned(String),
}

impl HunkLine {
    fn text(&self) -> &str {
        match self {
            HunkLine::Context(text)
            | HunkLine::Removed(text)
            | HunkLine::Added(text)
            | HunkLine::Unsigned(text) => text,
        }
    }

    fn is_blank(&self) -> bool {
        matches!(self, HunkLine::Context(text) if text.is_empty())
    }

    /// Returns the line as it should be in the old file.
    fn old(&self) -> Option<&str> {
        (!matches!(self, HunkLine::Added(_))).then(|| self.text())
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Hunk {
    /// Number of the first line in the old file, counted from 1, if given.
    pub first: Option<usize>,
    pub lines: Vec<HunkLine>,
}

impl Hunk {
    pub(super) fn begin(header: &str) -> Hunk {
        let numbers = header.split_once('-').map(|(_, rest)| rest);
        let first = numbers.and_then(|rest| {
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
            digits.parse().ok()
        });
        let lines = Vec::new();
        Hunk { first, lines }
    }

    /// Removes trailing blank lines and text that is not code.
    pub(super) fn trim(&mut self) {
        while let Some(HunkLine::Unsigned(_)) = self.lines.last() {
            self.lines.pop();
            self.trim_blank();
        }
        self.trim_blank();
    }

    fn trim_blank(&mut self) {
        while self.lines.pop_if(|line| line.is_blank()).is_some() {}
    }

    pub(super) fn only_adds(&self) -> bool {
        let mut lines = self.lines.iter();
        lines.all(|line| matches!(line, HunkLine::Added(_)))
    }

    /// Returns the hunk without the list after its last blank line, whose items look like added or removed
    /// lines. Returns `None` if that is not a list, or if nothing of the diff would be left.
    fn before_list(&self) -> Option<Hunk> {
        let last = self.lines.iter().rposition(HunkLine::is_blank)?;
        let (leading_lines, list) = self.lines.split_at(last);
        let point = |line: &HunkLine| match line {
            HunkLine::Removed(text) | HunkLine::Added(text) => {
                let words = text.strip_prefix(' ');
                Some(words.is_some_and(|words| !words.starts_with([' ', '\t'])))
            }
            HunkLine::Context(_) | HunkLine::Unsigned(_) => None,
        };
        let points: Vec<bool> = list.iter().filter_map(point).collect();
        if points.is_empty() || points.contains(&false) {
            return None;
        }
        let mut shorter = Hunk {
            first: self.first,
            lines: leading_lines.to_vec(),
        };
        shorter.trim();
        let is_change = |line: &HunkLine| matches!(line, HunkLine::Added(_) | HunkLine::Removed(_));
        shorter.lines.iter().any(is_change).then_some(shorter)
    }
}

/// Returns the contents of a new file.
pub(super) fn content(hunks: &[Hunk]) -> String {
    let mut text = String::new();
    for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
        if let HunkLine::Added(line) | HunkLine::Context(line) | HunkLine::Unsigned(line) = line {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// Returns the significant part of a line.
type Likeness = fn(&str) -> &str;

const INDENTATION: &str = "indentation differs";
/// Accepted differences between a line and the file's, in increasing order.
const LIKENESS: [(&str, Likeness); 3] = [
    ("", |line| line),
    ("trailing white space differs", str::trim_end),
    (INDENTATION, str::trim),
];
/// Maximum lines of context at either end that may be wrong.
const FUZZ: usize = 3;

pub(super) fn apply(
    before: &str,
    hunks: &[Hunk],
    path: &str,
    proposed: &mut ProposedFiles,
) -> Result<String, FormatError> {
    let (text, ends) = LineEnding::split(before);
    let old: Vec<&str> = text.lines().collect();
    let mut new: Vec<String> = Vec::new();
    // Lines of the old file that were copied.
    let mut at = 0;
    for hunk in hunks {
        let Some((hunk, fit)) = find_or_shorten(hunk, &old, at, proposed) else {
            let anchor = hunk.lines.iter().find_map(|line| match line {
                HunkLine::Removed(text) | HunkLine::Context(text) if !text.trim().is_empty() => {
                    Some(text.trim())
                }
                _ => None,
            });
            return Err(FormatError::new(format!(
                "a hunk does not fit `{path}`: its lines around `{}` were not found",
                anchor.unwrap_or_default()
            )));
        };
        new.extend(old[at..fit.at].iter().map(|line| (*line).to_owned()));
        let reindent = fit.reindent(&hunk, &old, &text);
        let is_other = reindent.translates() && !reindent.is_needed();
        at = fit.at;
        for (number, line) in hunk.lines.iter().enumerate().take(fit.to).skip(fit.from) {
            match line {
                HunkLine::Added(text) => {
                    let added = reindent.indented(number, text);
                    if is_other && added.trim_end() != text.trim_end() {
                        proposed.repaired(INDENTATION);
                    }
                    new.push(added);
                }
                HunkLine::Removed(_) => at += 1,
                HunkLine::Context(_) | HunkLine::Unsigned(_) => {
                    new.push(old[at].to_owned());
                    at += 1;
                }
            }
        }
    }
    new.extend(old[at..].iter().map(|line| (*line).to_owned()));
    let is_ended = before.is_empty() || before.ends_with('\n') || at == old.len();
    let mut joined = new.join("\n");
    if is_ended && !new.is_empty() {
        joined.push('\n');
    }
    Ok(ends.join(&joined))
}

/// The place where a hunk fits, and the lines of it that count.
struct Fit {
    /// Number of the old file's lines before it.
    at: usize,
    from: usize,
    to: usize,
}

impl Fit {
    /// Returns how to indent the added lines.
    fn reindent(&self, hunk: &Hunk, old: &[&str], file: &str) -> Reindent {
        let mut reindent = Reindent::from_reply(hunk.lines.iter().map(HunkLine::text), file);
        let lines = hunk.lines.iter().enumerate();
        let shared = lines.take(self.to).skip(self.from);
        let shared = shared.filter_map(|(number, line)| Some((number, line.old()?)));
        for ((number, line), there) in shared.zip(&old[self.at..]) {
            reindent.share(number, line, there);
        }
        reindent
    }
}

/// Finds where a hunk fits; if it does not fit, tries without the text after it.
fn find_or_shorten<'h>(
    hunk: &'h Hunk,
    old: &[&str],
    from: usize,
    proposed: &mut ProposedFiles,
) -> Option<(Cow<'h, Hunk>, Fit)> {
    if let Some(fit) = find(hunk, old, from, proposed) {
        return Some((Cow::Borrowed(hunk), fit));
    }
    let mut shorter = hunk.before_list();
    while let Some(hunk) = shorter {
        if let Some(fit) = find(&hunk, old, from, proposed) {
            proposed.repaired("text after a hunk is omitted");
            return Some((Cow::Owned(hunk), fit));
        }
        shorter = hunk.before_list();
    }
    None
}

fn find(hunk: &Hunk, old: &[&str], from: usize, proposed: &mut ProposedFiles) -> Option<Fit> {
    if hunk.only_adds() {
        // Only the number gives the place.
        let line = (hunk.first).map_or(old.len(), |first| first.saturating_sub(1));
        proposed.repaired("a hunk without context is placed by its line number");
        return Some(Fit {
            at: line.clamp(from, old.len()),
            from: 0,
            to: hunk.lines.len(),
        });
    }
    for fuzz in 0..=FUZZ {
        for (how, likeness) in LIKENESS {
            for (lead, tail) in cuts(hunk, fuzz) {
                let lines = &hunk.lines[lead..tail];
                if let Some(fit) = place(hunk, lines, lead, old, from, likeness) {
                    if !how.is_empty() {
                        proposed.repaired(how);
                    }
                    if fuzz > 0 {
                        proposed.repaired("context at a hunk's edge is wrong");
                    }
                    if let Some(first) = hunk.first
                        && first.saturating_sub(1) + lead != fit.at
                    {
                        proposed.repaired("line numbers of a hunk are wrong");
                    }
                    return Some(fit);
                }
            }
        }
    }
    None
}

/// Returns the ranges left if `fuzz` lines of context are cut at the ends; none if there are too few.
fn cuts(hunk: &Hunk, fuzz: usize) -> Vec<(usize, usize)> {
    let is_context =
        |line: &&HunkLine| matches!(line, HunkLine::Context(_) | HunkLine::Unsigned(_));
    let lead = hunk.lines.iter().take_while(is_context).count();
    let tail = hunk.lines.iter().rev().take_while(is_context).count();
    let all = hunk.lines.len();
    let mut ranges = Vec::new();
    for front in 0..=fuzz {
        let back = fuzz - front;
        // At least one line that gives the place must be left.
        let range = front..all.saturating_sub(back);
        let remaining_lines = hunk.lines.get(range).unwrap_or_default();
        let says = |line: &HunkLine| {
            let old = line.old();
            old.is_some_and(|text| fuzz == 0 || !text.trim().is_empty())
        };
        if front <= lead && back <= tail && remaining_lines.iter().any(says) {
            ranges.push((front, all - back));
        }
    }
    ranges
}

fn place(
    hunk: &Hunk,
    lines: &[HunkLine],
    lead: usize,
    old: &[&str],
    from: usize,
    likeness: Likeness,
) -> Option<Fit> {
    let expected_lines: Vec<&str> = lines
        .iter()
        .filter_map(HunkLine::old)
        .map(likeness)
        .collect();
    let last = old.len().checked_sub(expected_lines.len())?;
    let fits = |at: &usize| {
        let mut pairs = old[*at..].iter().zip(&expected_lines);
        pairs.all(|(old, expected_line)| likeness(old) == *expected_line)
    };
    let hint = hunk.first.map(|first| first.saturating_sub(1) + lead);
    let distance = |at: &usize| hint.map_or(0, |hint| hint.abs_diff(*at));
    let at = (from..=last).filter(fits).min_by_key(distance)?;
    Some(Fit {
        at,
        from: lead,
        to: lead + lines.len(),
    })
}
