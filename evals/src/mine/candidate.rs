//! A change that may become an instance: a fix that names its issue and includes tests.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::{FileChange, Repository};

use super::difficulty::Difficulty;
use super::history::Change;
use super::licence::{Licence, licence_at};
use super::split::{Paths, is_code, layout_at};
use super::table::Stage;
use super::{IssueTexts, Selection, references};
use crate::dataset::Instance;
use testwright_sandboxes::hex::hex;

/// Maximum bytes of both patches together; a larger fix is not reviewable.
const PATCHES: usize = 2 << 20;

/// A fix that names its issue and includes tests.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Id that its instance will have.
    pub id: String,
    repo: String,
    /// Commit of the old code, the first parent of the fix.
    pub base_commit: String,
    /// Commit of the fix.
    pub fix_commit: String,
    /// Time of the fix. Only text written earlier counts as the issue.
    pub fixed_at: Timestamp,
    pull_request: Option<u64>,
    /// Issues that the change claims to fix, in order.
    pub issues: Vec<u64>,
    patch: String,
    test_patch: String,
    /// Paths of submodules whose pointer the fix moves.
    submodules: Vec<String>,
    licence: Option<Licence>,
    difficulty: Difficulty,
}

/// An issue as it was before the fix, without comments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueText {
    /// Number of the issue.
    pub number: u64,
    /// Title of the issue.
    pub title: String,
    /// Body of the issue.
    pub body: String,
    /// URL or file name.
    pub origin: String,
    /// Time at which the issue was opened; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// Known edits that were made after the fix.
    pub later_edits: String,
}

/// A candidate, or the stage the change reached and the reason it was rejected. The outer error is a failure of the
/// machine.
pub(super) type CandidateResult = Result<Candidate, (Stage, String)>;

pub(super) fn read(
    repository: &Repository,
    selection: &Selection,
    change: &Change,
) -> Result<CandidateResult, SandboxError> {
    let drop = |stage, reason: &str| Ok(Err((stage, reason.to_owned())));
    if change.is_revert() {
        return drop(Stage::InTime, "reverts an earlier change");
    }
    let (base, fix) = (change.base.as_str(), change.commit.hash.as_str());
    let changes = repository.changes(base, fix)?;
    // Check this first, because reading the layout takes longer.
    if !changes.iter().any(|change| is_code(&change.path)) {
        return drop(Stage::InTime, "changes no code");
    }
    let layout = layout_at(repository, base)?;
    let paths = Paths::from_changes(&changes, &layout);
    if let Some(reason) = paths.rejection_reason(&layout, &changes) {
        return drop(Stage::InTime, reason);
    }
    let issues = issues(repository, selection, change, &changes)?;
    if issues.is_empty() {
        return drop(Stage::CodeAndTests, "names no issue that it fixes");
    }
    let patch_of = |paths: &[String]| {
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        repository.patch(base, fix, &paths)
    };
    let (Some(patch), Some(test_patch)) = (patch_of(&paths.code)?, patch_of(&paths.tests)?) else {
        return drop(Stage::NamesIssue, "changes text that is not UTF-8");
    };
    if patch.len() + test_patch.len() > PATCHES {
        return drop(Stage::NamesIssue, "has patches of more than 2 MiB");
    }
    let difficulty = Difficulty::from_patches(&paths, &patch, &test_patch);
    if let Some(most) = selection.max_changed_lines
        && difficulty.code_lines > most
    {
        let reason = format!("changes more than {most} lines of code");
        return drop(Stage::NamesIssue, &reason);
    }
    let fixed_at = Timestamp::from_second(change.commit.committed).unwrap_or_default();
    Ok(Ok(Candidate {
        id: change.id(&selection.repo),
        repo: selection.repo.clone(),
        base_commit: base.to_owned(),
        fix_commit: fix.to_owned(),
        fixed_at,
        pull_request: change.pull_request,
        issues: issues.into_iter().collect(),
        patch,
        test_patch,
        submodules: paths.submodules,
        licence: licence_at(repository, base)?,
        difficulty,
    }))
}

/// Returns the issues named in the messages and the changelog entries, without the change's own number.
fn issues(
    repository: &Repository,
    selection: &Selection,
    change: &Change,
    changes: &[FileChange],
) -> Result<BTreeSet<u64>, SandboxError> {
    let mut issues = BTreeSet::new();
    for message in change.messages(repository)? {
        issues.extend(references::in_message(&message, &selection.repo));
    }
    let added = changes.iter().filter(|change| change.added);
    issues.extend(added.filter_map(|change| references::in_fragment(&change.path)));
    let logs: Vec<&str> = changes
        .iter()
        .map(|change| change.path.as_str())
        .filter(|path| references::is_change_log(path))
        .collect();
    if let Some(entries) = repository.patch(&change.base, &change.commit.hash, &logs)? {
        issues.extend(references::in_entries(&entries));
    }
    if let Some(own) = change.pull_request {
        issues.remove(&own);
    }
    Ok(issues)
}

impl Candidate {
    /// Converts the candidate to an instance in SWE-bench's format, with additional facts.
    pub(super) fn instance(&self, texts: &IssueTexts) -> Instance {
        let issue = |text: &IssueText| {
            let statement = format!("{}\n\n{}", text.title.trim(), text.body.trim());
            statement.trim().to_owned()
        };
        let statements: Vec<String> = texts.found.iter().map(issue).collect();
        let problem_statement = statements.join("\n\n");
        let difficulty = Difficulty {
            issue_characters: problem_statement.chars().count(),
            ..self.difficulty.clone()
        };
        let origins = texts.found.iter().map(|text| {
            json!({
                "number": text.number,
                "origin": text.origin,
                "created_at": text.created_at,
                "later_edits": text.later_edits,
            })
        });
        let sha256 = |text: &str| hex(&Sha256::digest(text));
        let other = json!({
            "pull_number": self.pull_request,
            "issue_numbers": self.issues,
            "issues": origins.collect::<Vec<Value>>(),
            "issues_without_text": texts.missing,
            "fix_commit": self.fix_commit,
            "license": self.licence,
            "submodules_left_out": self.submodules,
            "difficulty": difficulty,
            "sha256": {
                "problem_statement": sha256(&problem_statement),
                "patch": sha256(&self.patch),
                "test_patch": sha256(&self.test_patch),
            },
        });
        let other = match other {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        Instance {
            instance_id: self.id.clone(),
            repo: self.repo.clone(),
            base_commit: self.base_commit.clone(),
            problem_statement,
            hints_text: None,
            created_at: Some(self.fixed_at.to_string()),
            version: None,
            environment_setup_commit: Some(self.base_commit.clone()),
            patch: Some(self.patch.clone()),
            test_patch: Some(self.test_patch.clone()),
            fail_to_pass: None,
            pass_to_pass: None,
            other,
        }
    }
}
