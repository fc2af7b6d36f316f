//! Unified diffs as models write them: surrounded by prose and fences, with wrong or missing line numbers,
//! missing headers, context without its leading space, or with changed white space.
//!
//! The lines of a hunk determine where it applies; its numbers only help if it fits in several places.

mod hunk;

use super::code_block::{FencedBlock, fenced};
use super::{FormatError, OldFiles, ProposedFiles, paths, with_line_feeds};
use hunk::{Hunk, HunkLine};

/// Applies the diff to the old files. The error says what could not be read or located.
///
/// # Errors
///
/// Fails if the reply contains no diff, or a part of it cannot be applied.
pub fn read(reply: &str, old: &dyn OldFiles) -> Result<ProposedFiles, FormatError> {
    let mut proposed = ProposedFiles::default();
    let text = with_line_feeds(reply);
    if text.len() != reply.len() {
        proposed.repaired("line endings are CRLF");
    }
    let text = diff_of(&text);
    let changes = DiffReader::read(&text, &mut proposed);
    if changes.is_empty() {
        return Err(FormatError::new("the reply contains no diff"));
    }
    for change in changes {
        change.apply(old, &mut proposed)?;
    }
    Ok(proposed)
}

/// Returns the fenced blocks with a diff, or everything if the diff starts outside of them.
fn diff_of(text: &str) -> String {
    let begins = |line: &str| line.starts_with("@@") || line.starts_with("+++ ");
    let Some(first) = text.lines().position(begins) else {
        return String::new();
    };
    let blocks = fenced(text);
    // Anything that looks like a fence after the start is then context.
    let is_inside = |block: &FencedBlock| {
        (block.above + 1..=block.above + block.text.lines().count()).contains(&first)
    };
    if !blocks.iter().any(is_inside) {
        return text.to_owned();
    }
    let blocks = blocks.into_iter().map(|block| block.text);
    let diffs: Vec<String> = blocks.filter(|text| text.lines().any(begins)).collect();
    diffs.concat()
}

/// The part of the diff for one file.
#[derive(Debug, Default)]
struct FileChange {
    old: Option<String>,
    new: Option<String>,
    hunks: Vec<Hunk>,
    is_new: bool,
    is_deleted: bool,
}

const NULL: &str = "/dev/null";

/// Returns whether this is a plausible path. A removed line of code that begins with `--` is not one.
fn is_one_path(name: &str) -> bool {
    let path = name.trim_end().split('\t').next().unwrap_or_default();
    let has_blank = path.contains(char::is_whitespace);
    path != NULL && !has_blank && (path.contains('/') || path.ends_with(".py"))
}

#[derive(Default)]
struct DiffReader {
    changes: Vec<FileChange>,
    /// Whether the reader is inside a hunk.
    in_hunk: bool,
}

impl DiffReader {
    fn read(text: &str, proposed: &mut ProposedFiles) -> Vec<FileChange> {
        let lines: Vec<&str> = text.lines().collect();
        let mut reader = DiffReader::default();
        for (at, line) in lines.iter().enumerate() {
            let next = lines.get(at + 1).copied().unwrap_or_default();
            reader.line(line, next, proposed);
        }
        reader.changes.retain(|change| {
            let has_name = change.old.is_some() || change.new.is_some();
            has_name && (!change.hunks.is_empty() || change.is_deleted)
        });
        let changes = reader.changes.iter_mut();
        (changes.flat_map(|change| &mut change.hunks)).for_each(Hunk::trim);
        reader.changes
    }

    fn line(&mut self, line: &str, next: &str, proposed: &mut ProposedFiles) {
        if let Some(names) = line.strip_prefix("diff --git ") {
            self.in_hunk = false;
            self.changes.push(FileChange {
                new: names.split_once(" b/").map(|(_, new)| new.to_owned()),
                ..FileChange::default()
            });
        } else if let (Some(name), true) = (line.strip_prefix("--- "), next.starts_with("+++ "))
            && self.may_be_header(name)
        {
            self.in_hunk = false;
            self.header(name, true);
        } else if let (Some(name), true) = (line.strip_prefix("--- "), next.starts_with("@@"))
            && is_one_path(name)
        {
            self.in_hunk = false;
            proposed.repaired("a header lacks its second line");
            self.header(name, true);
        } else if let Some(name) = line.strip_prefix("+++ ")
            && self.may_be_header(name)
        {
            self.in_hunk = false;
            let lacks_old = |change: &FileChange| change.old.is_none() || !change.hunks.is_empty();
            if self.changes.last().is_none_or(lacks_old) {
                proposed.repaired("a header lacks its first line");
            }
            self.header(name, false);
        } else if line.starts_with("@@") {
            self.in_hunk = true;
            let Some(change) = self.changes.last_mut() else {
                proposed.repaired("a hunk has no header");
                return;
            };
            let hunk = Hunk::begin(line);
            if hunk.first.is_none() {
                proposed.repaired("a hunk has no line numbers");
            }
            change.hunks.push(hunk);
        } else if self.in_hunk {
            self.hunk_line(line, proposed);
        } else if let Some(change) = self.changes.last_mut() {
            change.is_new |= line.starts_with("new file mode");
            change.is_deleted |= line.starts_with("deleted file mode");
        }
    }

    /// Returns whether this is a header. In a hunk, an added or removed line may also start with `++` or
    /// `--`.
    fn may_be_header(&self, name: &str) -> bool {
        !self.in_hunk || name.contains(['/', '.'])
    }

    fn header(&mut self, name: &str, is_old: bool) {
        let is_fresh =
            |change: &mut FileChange| change.hunks.is_empty() && (!is_old || change.old.is_none());
        let mut change = self.changes.pop_if(is_fresh).unwrap_or_default();
        match is_old {
            true => change.old = Some(name.trim().to_owned()),
            false => change.new = Some(name.trim().to_owned()),
        }
        self.changes.push(change);
    }

    fn hunk_line(&mut self, line: &str, proposed: &mut ProposedFiles) {
        let change = self.changes.last_mut();
        let Some(hunk) = change.and_then(|change| change.hunks.last_mut()) else {
            return;
        };
        let mut chars = line.chars();
        let rest = || line.get(1..).unwrap_or_default().to_owned();
        match chars.next() {
            Some(' ') => hunk.lines.push(HunkLine::Context(rest())),
            Some('-') => hunk.lines.push(HunkLine::Removed(rest())),
            Some('+') => hunk.lines.push(HunkLine::Added(rest())),
            // This is the line "No newline at end of file".
            Some('\\') => {}
            None => hunk.lines.push(HunkLine::Context(String::new())),
            Some(_) => {
                proposed.repaired("a line of a hunk has no sign");
                hunk.lines.push(HunkLine::Unsigned(line.to_owned()));
            }
        }
    }
}

impl FileChange {
    fn apply(
        mut self,
        old: &dyn OldFiles,
        proposed: &mut ProposedFiles,
    ) -> Result<(), FormatError> {
        let is_null = |name: &Option<String>| name.as_deref() == Some(NULL);
        let name = match is_null(&self.new) {
            true => {
                self.is_deleted = true;
                self.old.as_deref()
            }
            false => self.new.as_deref().or(self.old.as_deref()),
        };
        let path = paths::clean(name.unwrap_or_default(), old)?;
        if self.is_deleted {
            proposed.files.insert(path, None);
            return Ok(());
        }
        let is_new = is_null(&self.old) || self.is_new;
        let (path, before) = match is_new {
            true => (path.clone(), proposed.text(&path, old)),
            false => proposed.resolve(path, old),
        };
        match (&before, is_new) {
            (Some(_), true) => {
                proposed.repaired(format!("`{path}` exists already, which its header denies"));
            }
            (None, false) if self.hunks.iter().all(Hunk::only_adds) => {
                proposed.repaired(format!("`{path}` is new, which its header does not say"));
            }
            (None, false) => {
                let why = format!("the file `{path}` does not exist");
                return Err(FormatError(why));
            }
            _ => {}
        }
        let after = match before {
            Some(before) => hunk::apply(&before, &self.hunks, &path, proposed)?,
            None => hunk::content(&self.hunks),
        };
        proposed.files.insert(path, Some(after));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
