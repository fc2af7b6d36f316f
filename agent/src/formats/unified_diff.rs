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
            reader.line(
                line,
                lines.get(at + 1).copied().unwrap_or_default(),
                proposed,
            );
        }
        reader.changes.retain(|change| {
            let has_name = change.old.is_some() || change.new.is_some();
            has_name && (!change.hunks.is_empty() || change.is_deleted)
        });
        for hunk in reader
            .changes
            .iter_mut()
            .flat_map(|change| &mut change.hunks)
        {
            hunk.trim();
        }
        reader.changes
    }

    fn line(&mut self, line: &str, next: &str, proposed: &mut ProposedFiles) {
        if let Some(names) = line.strip_prefix("diff --git ") {
            self.in_hunk = false;
            let name = names.split_once(" b/").map(|(_, new)| new.to_owned());
            self.changes.push(FileChange {
                new: name,
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
            if self
                .current()
                .is_none_or(|change| change.old.is_none() || !change.hunks.is_empty())
            {
                proposed.repaired("a header lacks its first line");
            }
            self.header(name, false);
        } else if line.starts_with("@@") {
            self.in_hunk = true;
            if self.changes.is_empty() {
                proposed.repaired("a hunk has no header");
                return;
            }
            let hunk = Hunk::begin(line);
            if hunk.first.is_none() {
                proposed.repaired("a hunk has no line numbers");
            }
            if let Some(change) = self.changes.last_mut() {
                change.hunks.push(hunk);
            }
        } else if self.in_hunk {
            self.hunk_line(line, proposed);
        } else if line.starts_with("new file mode") {
            self.of_current(|change| change.is_new = true);
        } else if line.starts_with("deleted file mode") {
            self.of_current(|change| change.is_deleted = true);
        }
    }

    fn current(&self) -> Option<&FileChange> {
        self.changes.last()
    }

    fn of_current(&mut self, set: impl FnOnce(&mut FileChange)) {
        if let Some(change) = self.changes.last_mut() {
            set(change);
        }
    }

    /// Returns whether this is a header. In a hunk, an added or removed line may also start with `++` or
    /// `--`.
    fn may_be_header(&self, name: &str) -> bool {
        !self.in_hunk || name.contains(['/', '.'])
    }

    fn header(&mut self, name: &str, is_old: bool) {
        let is_fresh = self
            .current()
            .is_some_and(|change| change.hunks.is_empty() && (!is_old || change.old.is_none()));
        if !is_fresh {
            self.changes.push(FileChange::default());
        }
        let name = name.trim().to_owned();
        self.of_current(|change| match is_old {
            true => change.old = Some(name),
            false => change.new = Some(name),
        });
    }

    fn hunk_line(&mut self, line: &str, proposed: &mut ProposedFiles) {
        let hunk = self
            .changes
            .last_mut()
            .and_then(|change| change.hunks.last_mut());
        let Some(hunk) = hunk else {
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
        let mut path = paths::clean(name.unwrap_or_default(), old)?;
        if self.is_deleted {
            proposed.files.insert(path, None);
            return Ok(());
        }
        let mut before = proposed.text(&path, old);
        let only_adds = self.hunks.iter().all(Hunk::only_adds);
        let is_new = is_null(&self.old) || self.is_new;
        if before.is_none() && !is_new {
            match paths::meant(&path, old) {
                Some(meant) => {
                    proposed.repaired(format!("`{path}` is `{meant}`"));
                    before = proposed.text(&meant, old);
                    path = meant;
                }
                None if only_adds => {
                    proposed.repaired(format!("`{path}` is new, which its header does not say"))
                }
                None => {
                    return Err(FormatError::new(format!(
                        "the file `{path}` does not exist"
                    )));
                }
            }
        } else if before.is_some() && is_new {
            proposed.repaired(format!("`{path}` exists already, which its header denies"));
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
