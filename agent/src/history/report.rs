//! The report on a repository's history: a summary, a table, and data to resume from.

use serde::{Deserialize, Serialize};
use testwright_evals::document::{self, Cell, Section, Table};

use super::answer::{Answer, Point, Verdict};

/// Content of `history.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryReport {
    /// Digest of the tests and of the options for environments. Answers count only for the same digest.
    pub digest: String,
    /// Affected versions in one or two sentences.
    pub summary: String,
    /// Commit on which the tests were accepted.
    pub base: String,
    /// Name of the branch that was searched for the fix.
    pub branch: String,
    /// Newest commit of that branch.
    pub head: String,
    /// Node ids of the accepted tests.
    pub tests: Vec<String>,
    /// Introduction of the bug; `None` if it was not searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introduced: Option<Change>,
    /// Fix of the bug; `None` if no newer commit passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<Change>,
    /// Whether the limit on commits ended the search.
    pub incomplete: bool,
    /// Remarks on what was found, such as verdicts that change more than once.
    pub notes: Vec<String>,
    /// The answers, sorted by the time of the commit.
    pub answers: Vec<Entry>,
}

/// The answer of a commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Commit with its version.
    #[serde(flatten)]
    pub point: Point,
    /// Verdict and reason.
    #[serde(flatten)]
    pub answer: Answer,
}

/// A change of the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Whether a release or commit before the change was found.
    pub bounded: bool,
    /// Last release before the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_release_before: Option<String>,
    /// First release after the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_release_after: Option<String>,
    /// Commits of which one made the change, oldest first. Empty if no commits were searched.
    pub commits: Vec<Point>,
}

impl Change {
    /// Returns `abc (2024-03-02)`, or the range of the commits; `None` without commits.
    fn origin(&self) -> Option<String> {
        match self.commits.as_slice() {
            [] => None,
            [commit] => Some(format!("{} ({})", commit.short(), commit.day())),
            [first, .., last] => Some(format!(
                "one of {} commits: {}..{}",
                self.commits.len(),
                first.short(),
                last.short()
            )),
        }
    }
}

impl HistoryReport {
    /// Returns the answer of a commit, if it is known.
    fn verdict(&self, commit: &str) -> Option<&Answer> {
        let mut answers = self.answers.iter();
        let entry = answers.find(|entry| entry.point.commit == commit)?;
        Some(&entry.answer)
    }

    /// Writes the summary from the other fields.
    pub(super) fn summarize(&mut self) {
        let mut parts = vec![self.introduction()];
        parts.extend(self.fix());
        self.summary = format!("{}.", parts.join("; "));
        if self.incomplete {
            self.summary += " The limit on commits (--max-commits) ended the search; run the command again to continue.";
        }
        for note in &self.notes {
            self.summary += &format!(" {note}.");
        }
    }

    fn introduction(&self) -> String {
        let base = self.base.get(..12).unwrap_or(&self.base);
        let Some(change) = &self.introduced else {
            return format!("Fails at {base}");
        };
        if !change.bounded {
            let oldest = change.first_release_after.as_deref().unwrap_or(base);
            return format!("Fails since {oldest} or earlier");
        }
        let since = match (&change.first_release_after, &change.last_release_before) {
            (Some(release), _) => format!("Fails since {release}"),
            (None, Some(release)) => format!("Fails after {release}, in no earlier release"),
            (None, None) => format!("Fails at {base}"),
        };
        match change.origin() {
            Some(origin) => format!("{since}, introduced by {origin}"),
            None => since,
        }
    }

    fn fix(&self) -> Option<String> {
        if let Some(change) = &self.fixed {
            let by = change
                .origin()
                .map_or("fixed".to_owned(), |by| format!("fixed by {by}"));
            return Some(match &change.first_release_after {
                Some(release) => format!("{by}, first released in {release}"),
                None => format!("{by}, not released yet"),
            });
        }
        let head = self.verdict(&self.head)?;
        Some(match head.verdict {
            Verdict::Fails => format!("still fails on {}", self.branch),
            Verdict::Passes => format!("passes on {}", self.branch),
            Verdict::CannotTell => {
                format!("cannot tell on {}: {}", self.branch, head.reason)
            }
        })
    }

    /// Formats the report as Markdown.
    pub fn markdown(&self) -> String {
        let mut table = Table::new("Verdicts, oldest commit first")
            .words("version")
            .words("commit")
            .words("date")
            .words("verdict")
            .sentences("reason");
        for entry in &self.answers {
            table.row(cells(entry).map(Cell::from));
        }
        let facts = [("tests", self.tests.join(", "))];
        let section = Section::new("history", "Affected versions", [table]);
        document::markdown(&self.summary, facts.as_slice(), &[section], "history.json")
    }

    /// Formats the answers as a table for terminals, one line each.
    pub fn table(&self) -> Vec<String> {
        let rows: Vec<[String; 5]> = self.answers.iter().map(cells).collect();
        let heads = ["version", "commit", "date", "verdict", "reason"].map(str::to_owned);
        let all = || std::iter::once(&heads).chain(&rows);
        let width = |column: usize| all().map(|row| row[column].chars().count()).max();
        let widths = [0, 1, 2, 3].map(|column| width(column).unwrap_or_default());
        let line = |row: &[String; 5]| {
            let [version, commit, date, verdict, reason] = row;
            let [a, b, c, d] = widths;
            let line = format!("{version:a$}  {commit:b$}  {date:c$}  {verdict:d$}  {reason}");
            line.trim_end().to_owned()
        };
        all().map(line).collect()
    }
}

fn cells(entry: &Entry) -> [String; 5] {
    let Entry { point, answer } = entry;
    [
        point.name.clone().unwrap_or_default(),
        point.short().to_owned(),
        point.day(),
        answer.verdict.as_str().to_owned(),
        answer.reason.clone(),
    ]
}

#[cfg(test)]
mod tests;
