//! Counts how many changes reached each stage, and why the others were rejected.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::document::{Section, Table as Cells, markdown};
use crate::untrusted_text::excerpt;

/// Stages of mining, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The change is in the time range.
    InTime,
    /// The change affects code and tests.
    CodeAndTests,
    /// The change names an issue that it fixes.
    NamesIssue,
    /// The change is small enough.
    Fits,
    /// The text of its issue is available.
    HasText,
    /// The golden tests could be graded.
    Graded,
    /// The golden tests go from fail to pass.
    Verified,
}

/// All stages in order, each with the condition that its changes meet.
const STAGES: [(Stage, &str); 7] = [
    (Stage::InTime, "changes in the time range"),
    (Stage::CodeAndTests, "change code and tests"),
    (Stage::NamesIssue, "name an issue that they fix"),
    (Stage::Fits, "are within the size limits"),
    (Stage::HasText, "have the issue's text"),
    (Stage::Graded, "could be graded"),
    (
        Stage::Verified,
        "verified: golden tests go from fail to pass",
    ),
];

/// Number of changes that reached each stage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<Stage, usize>);

impl Counts {
    /// Counts `more` changes at this stage only.
    pub fn reach(&mut self, stage: Stage, more: usize) {
        *self.0.entry(stage).or_default() += more;
    }

    /// Counts a change at this stage and the stages before it, except the first, which is counted for all changes
    /// together.
    pub fn reach_all(&mut self, stage: Stage) {
        for (on_the_way, _) in STAGES {
            if on_the_way > Stage::InTime && on_the_way <= stage {
                self.reach(on_the_way, 1);
            }
        }
    }
}

/// A rejected change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RejectedChange {
    /// Id that its instance would have.
    pub name: String,
    /// Full hash of the commit.
    pub commit: String,
    /// Last stage that the change reached.
    pub stage: Stage,
    /// General reason, identical for all changes rejected for it.
    pub reason: String,
    /// Details of this change.
    pub detail: String,
}

/// Number of changes that reached a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Condition that the changes meet, in words.
    pub condition: &'static str,
    /// Number of changes.
    pub changes: usize,
}

/// Number of changes that were rejected for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReasonRow {
    /// General reason.
    pub reason: String,
    /// Number of changes.
    pub changes: usize,
    /// Name of the first such change.
    pub example: String,
}

/// The table that is printed and written to a file beside the instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Number of changes at each stage, in order.
    pub stages: Vec<Row>,
    /// Number of rejected changes by reason.
    pub reasons: Vec<ReasonRow>,
    /// All rejected changes.
    pub dropped: Vec<RejectedChange>,
}

/// Maximum characters of a change's details.
const DETAIL: usize = 300;

impl Table {
    /// Builds the table, with reasons sorted by stage, then by descending frequency.
    pub fn new(counts: Counts, dropped: Vec<RejectedChange>) -> Table {
        let stages = STAGES.map(|(stage, condition)| Row {
            condition,
            changes: counts.0.get(&stage).copied().unwrap_or_default(),
        });
        let mut reasons: BTreeMap<(Stage, String), (usize, String)> = BTreeMap::new();
        for one in &dropped {
            let key = (one.stage, one.reason.clone());
            let tally = reasons.entry(key).or_insert((0, one.name.clone()));
            tally.0 += 1;
        }
        let mut reasons: Vec<_> = reasons.into_iter().collect();
        reasons.sort_by_key(|((stage, _), (changes, _))| (*stage, std::cmp::Reverse(*changes)));
        let row = |((_, reason), (changes, example))| ReasonRow {
            reason,
            changes,
            example,
        };
        Table {
            stages: stages.into(),
            reasons: reasons.into_iter().map(row).collect(),
            dropped,
        }
    }

    /// Returns the number of instances whose golden tests go from fail to pass.
    pub fn verified(&self) -> usize {
        self.stages.last().map_or(0, |row| row.changes)
    }

    /// Renders a Markdown page that also lists every rejected change that was small enough to become an instance.
    pub fn markdown(
        &self,
        title: &str,
        facts: &[(&'static str, String)],
        full_file: &str,
    ) -> String {
        let mut stages = Cells::new("Changes by stage")
            .words("changes that")
            .figures(&["number"]);
        for row in &self.stages {
            stages.labelled([row.condition], [row.changes.to_string()]);
        }
        let mut reasons = Cells::new("Reasons for rejection")
            .words("reason")
            .figures(&["number"])
            .words("example");
        for row in &self.reasons {
            let figures = [row.changes.to_string(), row.example.clone()];
            reasons.labelled([row.reason.as_str()], figures);
        }
        let mut late = Cells::new("Rejected candidates")
            .words("candidate")
            .words("reason")
            .words("details");
        for one in self.dropped.iter().filter(|one| one.stage >= Stage::Fits) {
            let detail = excerpt(&one.detail, DETAIL);
            late.labelled([one.name.as_str()], [one.reason.clone(), detail]);
        }
        let tables = [stages, reasons, late];
        let section = Section::new("mined", "Mined changes", tables);
        markdown(title, facts, &[section], full_file)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.stages {
            writeln!(f, "{:>7}  {}", row.changes, row.condition)?;
        }
        if !self.reasons.is_empty() {
            writeln!(f, "rejected:")?;
        }
        for row in &self.reasons {
            let (reason, example) = (excerpt(&row.reason, DETAIL), &row.example);
            writeln!(f, "{:>7}  {reason} ({example})", row.changes)?;
        }
        Ok(())
    }
}

/// Replaces a verdict's reason, which may name tests, with a general one that can be counted.
pub(super) fn general_reason(reason: &str) -> String {
    let ends = [
        (
            "already pass on the old code",
            "the golden tests already pass on the old code",
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
            "runs before its tests",
            "the test patch adds a file that runs before any test",
        ),
        (
            "not a test patch",
            "the test patch changes more than tests and their data",
        ),
        ("are contradictory", "the outcomes are contradictory"),
        ("is flaky", "a golden test is flaky"),
        (
            "reads the code instead",
            "a golden test reads the code instead of running it",
        ),
    ];
    let category = ends.iter().find(|(words, _)| reason.contains(words));
    category.map_or_else(|| reason.to_owned(), |(_, kind)| (*kind).to_owned())
}

#[cfg(test)]
mod tests;
