//! Finding the lines that a hunk speaks of.

use testwright_tools::python::edit::Lines;

use super::super::{FormatError, ProposedFiles};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HunkLine {
    Context(String),
    Removed(String),
    Added(String),
    /// A line without a sign: context that lost its blank, or words behind the diff.
    Unsigned(String),
}

impl HunkLine {
    /// As it should stand in the old file.
    fn old(&self) -> Option<&str> {
        match self {
            HunkLine::Context(text) | HunkLine::Removed(text) | HunkLine::Unsigned(text) => {
                Some(text)
            }
            HunkLine::Added(_) => None,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Hunk {
    /// Of its first line in the old file, counted from 1, if it says so.
    pub first: Option<usize>,
    pub lines: Vec<HunkLine>,
}

impl Hunk {
    pub fn begin(header: &str) -> Hunk {
        let numbers = header.split_once('-').map(|(_, rest)| rest);
        let first = numbers.and_then(|rest| {
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
            digits.parse().ok()
        });
        Hunk {
            first,
            lines: Vec::new(),
        }
    }

    /// Leaves out what stands behind it: blank lines, and words that are no code.
    pub fn trim(&mut self) {
        while let Some(HunkLine::Unsigned(_)) = self.lines.last() {
            self.lines.pop();
            self.trim_blank();
        }
        self.trim_blank();
    }

    fn trim_blank(&mut self) {
        let is_blank = |line: &HunkLine| matches!(line, HunkLine::Context(text) if text.is_empty());
        while self.lines.last().is_some_and(is_blank) {
            self.lines.pop();
        }
    }

    pub fn only_adds(&self) -> bool {
        let mut lines = self.lines.iter();
        lines.all(|line| matches!(line, HunkLine::Added(_)))
    }
}

/// A file that is new.
pub fn content(hunks: &[Hunk]) -> String {
    let mut text = String::new();
    for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
        if let HunkLine::Added(line) | HunkLine::Context(line) | HunkLine::Unsigned(line) = line {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// What counts of a line.
type Likeness = fn(&str) -> &str;

/// How far a line may differ from the file's, from nothing on.
const LIKENESS: [(&str, Likeness); 3] = [
    ("", |line| line),
    ("white space at line ends differs", str::trim_end),
    ("indentation differs", str::trim),
];
/// Lines of context at either end that may be wrong.
const FUZZ: usize = 3;

pub fn apply(
    before: &str,
    hunks: &[Hunk],
    path: &str,
    proposed: &mut ProposedFiles,
) -> Result<String, FormatError> {
    let (text, ends) = Lines::split(before);
    let old: Vec<&str> = text.lines().collect();
    let mut new: Vec<String> = Vec::new();
    // Lines of the old file that are taken over.
    let mut at = 0;
    for hunk in hunks {
        let Some(found) = find(hunk, &old, at, proposed) else {
            let wanted = hunk.lines.iter().find_map(|line| match line {
                HunkLine::Removed(text) | HunkLine::Context(text) if !text.trim().is_empty() => {
                    Some(text.trim())
                }
                _ => None,
            });
            return Err(FormatError::new(format!(
                "a hunk does not fit `{path}`: its lines around `{}` are not there",
                wanted.unwrap_or_default()
            )));
        };
        new.extend(old[at..found.at].iter().map(|line| (*line).to_owned()));
        at = found.at;
        for line in &hunk.lines[found.from..found.to] {
            match line {
                HunkLine::Added(text) => new.push(found.indented(text)),
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

/// Where a hunk fits, and which of its lines count.
struct Fit {
    /// Lines of the old file before it.
    at: usize,
    from: usize,
    to: usize,
    /// What the file's lines have in front that the hunk's do not, or the other way round.
    shift: isize,
}

impl Fit {
    fn indented(&self, line: &str) -> String {
        if line.trim().is_empty() {
            return String::new();
        }
        match usize::try_from(self.shift) {
            Ok(more) => format!("{}{line}", " ".repeat(more)),
            Err(_) => {
                let blanks = line.len() - line.trim_start_matches(' ').len();
                line[blanks.min(self.shift.unsigned_abs())..].to_owned()
            }
        }
    }
}

fn find(hunk: &Hunk, old: &[&str], from: usize, proposed: &mut ProposedFiles) -> Option<Fit> {
    if hunk.only_adds() {
        // Nothing says where but the number.
        let line = hunk
            .first
            .map_or(old.len(), |first| first.saturating_sub(1));
        proposed.repaired("a hunk without context stands where its number says");
        return Some(Fit {
            at: line.clamp(from, old.len()),
            from: 0,
            to: hunk.lines.len(),
            shift: 0,
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

/// Which lines are left when so many lines of context are cut at the ends; none of them where there are not so many.
fn cuts(hunk: &Hunk, fuzz: usize) -> Vec<(usize, usize)> {
    let is_context =
        |line: &&HunkLine| matches!(line, HunkLine::Context(_) | HunkLine::Unsigned(_));
    let lead = hunk.lines.iter().take_while(is_context).count();
    let tail = hunk.lines.iter().rev().take_while(is_context).count();
    let all = hunk.lines.len();
    let mut found = Vec::new();
    for front in 0..=fuzz {
        let back = fuzz - front;
        // Something has to be left that says where.
        let left = hunk
            .lines
            .get(front..all.saturating_sub(back))
            .unwrap_or_default();
        let says = |line: &HunkLine| {
            let old = line.old();
            old.is_some_and(|text| fuzz == 0 || !text.trim().is_empty())
        };
        if front <= lead && back <= tail && left.iter().any(says) {
            found.push((front, all - back));
        }
    }
    found
}

fn place(
    hunk: &Hunk,
    lines: &[HunkLine],
    lead: usize,
    old: &[&str],
    from: usize,
    likeness: Likeness,
) -> Option<Fit> {
    let wanted: Vec<&str> = lines
        .iter()
        .filter_map(HunkLine::old)
        .map(likeness)
        .collect();
    let last = old.len().checked_sub(wanted.len())?;
    let fits = |at: &usize| {
        old[*at..]
            .iter()
            .zip(&wanted)
            .all(|(old, wanted)| likeness(old) == *wanted)
    };
    let hint = hunk.first.map(|first| first.saturating_sub(1) + lead);
    let distance = |at: &usize| hint.map_or(0, |hint| hint.abs_diff(*at));
    let at = (from..=last).filter(fits).min_by_key(distance)?;
    let columns = |line: &str| (line.len() - line.trim_start().len()) as isize;
    let is_said = |line: &&str| !line.trim().is_empty();
    let first = lines.iter().filter_map(HunkLine::old).find(is_said);
    let there = old[at..].iter().find(|line| !line.trim().is_empty());
    let shift = match (first, there) {
        (Some(first), Some(there)) => columns(there) - columns(first),
        _ => 0,
    };
    Some(Fit {
        at,
        from: lead,
        to: lead + lines.len(),
        shift,
    })
}
