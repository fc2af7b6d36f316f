//! How many changes came how far, and why the others fell out.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::document::{Section, Table as Cells, markdown};
use crate::foreign_text::excerpt;

/// How far a change came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    InTime,
    CodeAndTests,
    NamesIssue,
    Fits,
    HasText,
    Graded,
    Verified,
}

impl Stage {
    const ALL: [Stage; 7] = [
        Stage::InTime,
        Stage::CodeAndTests,
        Stage::NamesIssue,
        Stage::Fits,
        Stage::HasText,
        Stage::Graded,
        Stage::Verified,
    ];

    fn words(self) -> &'static str {
        match self {
            Stage::InTime => "changes in this time",
            Stage::CodeAndTests => "change code and tests",
            Stage::NamesIssue => "name an issue that they fix",
            Stage::Fits => "are small enough",
            Stage::HasText => "have the issue's text",
            Stage::Graded => "could be graded",
            Stage::Verified => "turn: verified instances",
        }
    }
}

/// Changes that came to each stage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<Stage, usize>);

impl Counts {
    pub fn reach(&mut self, stage: Stage, more: usize) {
        *self.0.entry(stage).or_default() += more;
    }

    /// One more at this stage and at all before it but the first, which counts them all.
    pub fn reach_all(&mut self, stage: Stage) {
        for on_the_way in Stage::ALL {
            if on_the_way > Stage::InTime && on_the_way <= stage {
                self.reach(on_the_way, 1);
            }
        }
    }

    fn of(&self, stage: Stage) -> usize {
        self.0.get(&stage).copied().unwrap_or_default()
    }
}

/// A change that fell out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// As its instance would be called.
    pub name: String,
    pub commit: String,
    /// The last one that it came to.
    pub stage: Stage,
    /// The same words for all that fell out for the same reason.
    pub reason: String,
    /// What is particular to this one.
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    pub what: &'static str,
    pub changes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReasonRow {
    pub reason: String,
    pub changes: usize,
    /// The first of them.
    pub example: String,
}

/// What is printed, and written beside the instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Table {
    pub stages: Vec<Row>,
    pub reasons: Vec<ReasonRow>,
    pub dropped: Vec<Dropped>,
}

/// Characters of what is particular to one change.
const DETAIL: usize = 300;

impl Table {
    pub fn new(counts: Counts, dropped: Vec<Dropped>) -> Table {
        let stages = Stage::ALL.map(|stage| Row {
            what: stage.words(),
            changes: counts.of(stage),
        });
        let mut reasons: BTreeMap<(Stage, String), (usize, String)> = BTreeMap::new();
        for one in &dropped {
            let key = (one.stage, one.reason.clone());
            let found = reasons.entry(key).or_insert((0, one.name.clone()));
            found.0 += 1;
        }
        let mut reasons: Vec<(Stage, ReasonRow)> = reasons
            .into_iter()
            .map(|((stage, reason), (changes, example))| {
                let row = ReasonRow {
                    reason,
                    changes,
                    example,
                };
                (stage, row)
            })
            .collect();
        // By stage, the most frequent first.
        reasons.sort_by_key(|(stage, row)| (*stage, std::cmp::Reverse(row.changes)));
        Table {
            stages: stages.into(),
            reasons: reasons.into_iter().map(|(_, row)| row).collect(),
            dropped,
        }
    }

    /// Instances that turn.
    pub fn verified(&self) -> usize {
        self.stages.last().map_or(0, |row| row.changes)
    }

    /// As a page, with every change from those on that could have become an instance.
    pub fn markdown(&self, title: &str, facts: &[(&'static str, String)], whole: &str) -> String {
        let mut stages = Cells::new("How far they came")
            .words("changes that …")
            .figures(&["number"]);
        for row in &self.stages {
            stages.labelled(row.what, [row.changes.to_string()]);
        }
        let mut reasons = Cells::new("Why the others fell out")
            .words("reason")
            .figures(&["number"])
            .words("for example");
        for row in &self.reasons {
            let figures = [row.changes.to_string(), row.example.clone()];
            reasons.labelled(row.reason.as_str(), figures);
        }
        let mut late = Cells::new("Candidates that did not become instances")
            .words("candidate")
            .words("reason")
            .words("in particular");
        for one in self.dropped.iter().filter(|one| one.stage >= Stage::Fits) {
            let detail = excerpt(&one.detail, DETAIL);
            late.labelled(one.name.as_str(), [one.reason.clone(), detail]);
        }
        let tables = [stages, reasons, late];
        let section = Section::new("mined", "What became of the changes", tables);
        markdown(title, facts, &[section], whole)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.stages {
            writeln!(f, "{:>7}  {}", row.changes, row.what)?;
        }
        if !self.reasons.is_empty() {
            writeln!(f, "fell out:")?;
        }
        for row in &self.reasons {
            let (reason, example) = (excerpt(&row.reason, DETAIL), &row.example);
            writeln!(f, "{:>7}  {reason} ({example})", row.changes)?;
        }
        Ok(())
    }
}

/// A verdict's reason without the names of tests in it, so that equal ones can be counted.
pub fn kind_of(reason: &str) -> String {
    let ends = [
        (
            "pass on the old code already",
            "the golden tests pass on the old code already",
        ),
        ("skipped on the old code", "a golden test is skipped"),
        (
            "failed on the new code",
            "a golden test fails on the new code as well",
        ),
        (
            "error on the new code",
            "a golden test ends in an error on the new code",
        ),
        (
            "absent on the new code",
            "a golden test is not found on the new code",
        ),
        (
            "error on the old code",
            "the golden tests cannot run on the old code, for a reason that the issue does not name",
        ),
        (
            "absent on the old code",
            "the golden tests cannot run on the old code, for a reason that the issue does not name",
        ),
        (
            "fails on the new",
            "a test that passed on the old code fails on the new",
        ),
        ("contributes no test", "the test patch contributes no test"),
        (
            "was found",
            "the golden tests are not found when tests are collected",
        ),
        (
            "code patch changes too",
            "code patch and test patch change the same file",
        ),
        (
            "runs before its tests run",
            "the test patch brings a file that runs before any test",
        ),
        ("contradict each other", "outcomes contradict each other"),
    ];
    let known = ends.iter().find(|(words, _)| reason.contains(words));
    known.map_or_else(|| reason.to_owned(), |(_, kind)| (*kind).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_whatever_tests_they_name() {
        let mut counts = Counts::default();
        counts.reach(Stage::InTime, 4);
        counts.reach_all(Stage::HasText);
        counts.reach_all(Stage::InTime);
        let one = |name: &str, detail: &str| Dropped {
            name: name.to_owned(),
            commit: String::new(),
            stage: Stage::Graded,
            reason: kind_of(detail),
            detail: detail.to_owned(),
        };
        let dropped = vec![
            one(
                "b",
                "t.py::x was skipped on the old code and passed on the new",
            ),
            one("c", "t.py::y failed on the new code"),
            one("d", "t.py::z failed on the new code"),
        ];
        let shown = Table::new(counts, dropped).to_string();
        assert!(
            shown.starts_with("      4  changes in this time\n      1  change code and tests\n"),
            "{shown}"
        );
        assert!(
            shown.ends_with(
                "fell out:\n      2  a golden test fails on the new code as well (c)\n      1  a golden test is skipped (b)\n"
            ),
            "{shown}"
        );
    }
}
