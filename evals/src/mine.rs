//! Mines fresh instances from a repository's history: fixes that name their issue and include tests.
//!
//! [`candidates`] converts a history to candidates, and [`select_verified`] converts the grading results of their golden tests
//! to rows and a table. Issue texts are passed in, because this module contacts no servers. It runs no tests either;
//! the harness does.

mod candidate;
mod difficulty;
mod history;
mod licence;
mod lists;
mod references;
mod split;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use serde::Serialize;
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::Repository;

use crate::dataset::Instance;
use crate::folder;
use crate::result::InstanceResult;

pub use candidate::{Candidate, IssueText};
pub use table::{Counts, RejectedChange, Stage, Table};

/// Criteria for fixes.
#[derive(Debug, Clone)]
pub struct Selection {
    /// Repository as `owner/name`.
    pub repo: String,
    /// Commit whose history is read.
    pub head: String,
    /// Earliest commit time in seconds since 1970.
    pub since: i64,
    /// Commit time in seconds since 1970 from which on commits are excluded; `None` means no limit.
    pub until: Option<i64>,
    /// Maximum lines of Python code that a fix adds and removes, without tests.
    pub max_changed_lines: Option<usize>,
}

/// Fixes found in a history.
#[derive(Debug, Clone, Default)]
pub struct Mined {
    /// Candidates, oldest first.
    pub candidates: Vec<Candidate>,
    /// Number of changes that reached each stage.
    pub counts: Counts,
    /// Rejected changes, with their reasons.
    pub dropped: Vec<RejectedChange>,
}

/// Reads the history. Blocks for seconds.
///
/// # Errors
///
/// Fails if the history cannot be read.
pub fn candidates(repository: &Repository, selection: &Selection) -> Result<Mined, SandboxError> {
    let changes = history::changes(repository, selection)?;
    let mut mined = Mined::default();
    mined.counts.reach(Stage::InTime, changes.len());
    let mut ids = BTreeSet::new();
    for change in &changes {
        match candidate::read(repository, selection, change)? {
            Ok(mut candidate) => {
                // A pull request may have been merged twice.
                if !ids.insert(candidate.id.clone()) {
                    candidate.id = change.id_by_hash(&selection.repo);
                    ids.insert(candidate.id.clone());
                }
                mined.counts.reach_all(Stage::Fits);
                mined.candidates.push(candidate);
            }
            Err((reached, reason)) => {
                mined.counts.reach_all(reached);
                mined.dropped.push(RejectedChange {
                    name: change.id(&selection.repo),
                    commit: change.commit.hash.clone(),
                    stage: reached,
                    reason,
                    detail: change.commit.title().to_owned(),
                });
            }
        }
    }
    Ok(mined)
}

/// Texts of a candidate's issues, and the issues whose text is not available.
#[derive(Debug, Clone, Default)]
pub struct IssueTexts {
    /// Texts of the issues, as they were before the fix.
    pub found: Vec<IssueText>,
    /// Issues whose text is not available.
    pub missing: Vec<MissingText>,
}

/// An issue without a text, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingText {
    /// Number of the issue.
    pub number: u64,
    /// Reason why there is no text.
    pub cause: String,
}

impl Mined {
    /// Turns candidates with a text into instances, and rejects the others.
    pub fn with_texts(&mut self, texts: &BTreeMap<String, IssueTexts>) -> Vec<Instance> {
        let mut instances = Vec::new();
        let none = IssueTexts::default();
        for candidate in &self.candidates {
            let issue_texts = texts.get(&candidate.id).unwrap_or(&none);
            if issue_texts.found.is_empty() {
                self.dropped.push(RejectedChange {
                    name: candidate.id.clone(),
                    commit: candidate.fix_commit.clone(),
                    stage: Stage::Fits,
                    reason: match issue_texts.missing.first() {
                        Some(first) => format!("the issue text is not available: {}", first.cause),
                        None => "the issue text is not available".to_owned(),
                    },
                    detail: issue_texts
                        .missing
                        .iter()
                        .map(|issue| format!("#{}: {}", issue.number, issue.cause))
                        .collect::<Vec<_>>()
                        .join("; "),
                });
                continue;
            }
            self.counts.reach(Stage::HasText, 1);
            instances.push(candidate.instance(issue_texts));
        }
        instances
    }
}

/// Returns the rows whose golden tests go from fail to pass, with their lists of tests, and the table of rejected
/// changes. `results` are the results of the golden tests, in the folder `out`.
pub fn select_verified(
    mut mined: Mined,
    instances: Vec<Instance>,
    results: &[InstanceResult],
    out: &Path,
) -> (Vec<Instance>, Table) {
    let by_id: BTreeMap<&str, &InstanceResult> = results
        .iter()
        .map(|result| (result.instance_id.as_str(), result))
        .collect();
    let commits: BTreeMap<&str, &str> = mined
        .candidates
        .iter()
        .map(|c| (c.id.as_str(), c.fix_commit.as_str()))
        .collect();
    let mut rows = Vec::new();
    for instance in instances {
        let Some(result) = by_id.get(instance.instance_id.as_str()) else {
            continue;
        };
        let (stage, reason, detail) = match &result.infrastructure {
            Some(trouble) => {
                let reason = format!("could not be graded ({})", trouble.stage);
                (Stage::HasText, reason, trouble.cause.clone())
            }
            None => {
                mined.counts.reach(Stage::Graded, 1);
                if result.strict.fail_to_pass {
                    mined.counts.reach(Stage::Verified, 1);
                    rows.push(lists::with_lists(instance, result, out));
                    continue;
                }
                let reason = table::general_reason(&result.strict.reason);
                (Stage::Graded, reason, result.strict.reason.clone())
            }
        };
        mined.dropped.push(RejectedChange {
            commit: commits
                .get(instance.instance_id.as_str())
                .map_or_else(String::new, |commit| (*commit).to_owned()),
            name: instance.instance_id,
            stage,
            reason,
            detail,
        });
    }
    let table = Table::new(mined.counts, mined.dropped);
    (rows, table)
}

/// Writes instances as JSON lines, atomically.
///
/// # Errors
///
/// Fails if an instance cannot be serialized, or the file cannot be written.
pub fn write(path: &Path, instances: &[Instance]) -> io::Result<()> {
    folder::write_file(path, &folder::json_lines(instances)?)
}
