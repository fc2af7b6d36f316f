//! Decides on a submission: the facts come from the sandbox (`submit` of the toolbox), the decision is made
//! here, one rule after the other, and every fault is named at once.
//!
//! The rules are those of the submission gate: only test files change; the patch applies to the clean base;
//! tests are contributed; at least one of them fails in a sound way, and none that passed breaks; it fails
//! again under other conditions; it ran code under test.

mod evidence;
mod evidence_rows;
mod reported_error;
mod rules;
mod sentence;

pub use evidence::{Evidence, FixTrial, Review, ReviewVerdict, TestEvidence};
pub use evidence_rows::evidence_rows;
pub use rules::{Finding, Rule};
pub use sentence::{best_sentence, quoted_sentence};

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::repository::{Source, apply_check};
use testwright_tools::tool::{AnyTool, Tool, ToolError};
use testwright_tools::tools::submission::{ChangedFile, Submission};
use testwright_tools::tools::test_patch::SortedChanges;
use testwright_tools::tools::{Restore, Submit, TestPatch};

use crate::session::{CallAnswer, Session};

/// The gate's decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What is wrong; empty means accepted.
    pub findings: Vec<Finding>,
    /// What was left out of the patch, `path: reason`.
    pub dropped: Vec<String>,
    /// The failing contributed tests, soundly failing or not.
    pub failing: Vec<TestEvidence>,
    /// Contributed tests that pass on the old code already.
    pub passing: Vec<String>,
    /// What is no fault, and worth a second look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Verdict {
    pub fn accepted(&self) -> bool {
        self.findings.is_empty()
    }

    /// The message to the model.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        if self.accepted() {
            lines.push("The checks of the submission passed:".to_owned());
            lines.extend(
                self.failing
                    .iter()
                    .map(|test| format!("- {} fails: {}{}", test.id, test.line(), test.limits())),
            );
        } else {
            lines.push("Not accepted:".to_owned());
            lines.extend(
                self.findings
                    .iter()
                    .map(|finding| format!("- {}", finding.text)),
            );
        }
        if !self.passing.is_empty() {
            lines.push(format!(
                "Passing on this code already: {}",
                self.passing.join(", ")
            ));
        }
        lines.extend(self.notes.iter().map(|note| format!("Note: {note}.")));
        if !self.dropped.is_empty() {
            lines.push("Left out of the patch, and put back in the workspace:".to_owned());
            lines.extend(self.dropped.iter().map(|line| format!("- {line}")));
        }
        lines.join("\n")
    }
}

/// Decides. `applies` is what `git apply` on a clean checkout said; `issue` is the issue's whole text.
pub fn decide(submission: &Submission, issue: &str, applies: &Result<(), String>) -> Verdict {
    let failing = rules::failing(submission);
    let mut findings = Vec::new();
    for rule in rules::ALL {
        (rule.check)(
            &rules::Case {
                submission,
                issue,
                applies,
                failing: &failing,
            },
            &mut |text| {
                findings.push(Finding {
                    rule: rule.rule,
                    text,
                })
            },
        );
    }
    Verdict {
        findings,
        dropped: submission
            .files
            .iter()
            .filter(|file| !file.kept)
            .map(|file| match &file.reason {
                Some(reason) => format!("{}: {reason}", file.path),
                None => file.path.clone(),
            })
            .collect(),
        passing: rules::passing(submission),
        notes: failing
            .iter()
            .filter_map(|test| reported_error::other_error(test, issue))
            .collect(),
        failing,
    }
}

/// A submission, looked at.
pub enum SubmissionCheck {
    /// The call itself was wrong: the text says how.
    Refused(String),
    Judged {
        submission: Box<Submission>,
        verdict: Verdict,
    },
}

/// Gathers the facts and decides. `arguments` are those of the tool `submit`.
///
/// The sandbox of the session says what the patch is, and nothing more: it may have become anything. The facts come from
/// one in which nothing has happened yet and to which the patch is all that is added.
pub async fn check_submission(
    session: &Session,
    source: &Source,
    issue: &str,
    arguments: &Value,
    deadline: Duration,
) -> Result<SubmissionCheck, SandboxError> {
    if let Err(ToolError::Refused(text)) = Submit.check(arguments.clone()) {
        return Ok(SubmissionCheck::Refused(text));
    }
    let answer = session.call(TestPatch::NAME, json!({}), deadline).await?;
    if answer.refused {
        return Ok(SubmissionCheck::Refused(answer.text));
    }
    let sorted: SortedChanges = read(answer)?;
    let fresh = session.fresh().await?;
    let judged = judge(&fresh, &sorted, arguments, deadline).await;
    session.discard(fresh).await;
    let submission = match judged? {
        Judgement::Submission(submission) => submission,
        Judgement::Refused(text) => return Ok(SubmissionCheck::Refused(text)),
    };
    let applies = if submission.patch.is_empty() {
        Ok(())
    } else {
        apply_check(source, &submission.patch).unwrap_or_else(|e| Err(e.message))
    };
    let verdict = decide(&submission, issue, &applies);
    Ok(SubmissionCheck::Judged {
        submission,
        verdict,
    })
}

enum Judgement {
    Submission(Box<Submission>),
    Refused(String),
}

/// Applies the patch in a fresh sandbox and runs the tests there.
async fn judge(
    fresh: &Session,
    sorted: &SortedChanges,
    arguments: &Value,
    deadline: Duration,
) -> Result<Judgement, SandboxError> {
    let refused = |answer: CallAnswer| Judgement::Refused(answer.text);
    let answer = fresh
        .call(Restore::NAME, json!({ "files": sorted.kept }), deadline)
        .await?;
    if answer.refused {
        return Ok(refused(answer));
    }
    let answer = match fresh.call(Submit::NAME, arguments.clone(), deadline).await {
        // The tests are all that ran in it.
        Err(error) if error.kind == ErrorKind::Dead => {
            return Ok(Judgement::Refused(format!(
                "the sandbox ended while the tests of the submission ran: failed to {error}"
            )));
        }
        answer => answer?,
    };
    if answer.refused || answer.ended {
        return Ok(refused(answer));
    }
    let mut submission: Box<Submission> = read(answer)?;
    let dropped_here: Vec<ChangedFile> = (submission.files.iter())
        .filter(|file| !file.kept)
        .cloned()
        .collect();
    submission.files.clone_from(&sorted.files);
    for dropped in dropped_here {
        submission.files.retain(|file| file.path != dropped.path);
        submission.files.push(dropped);
    }
    for problem in &sorted.problems {
        if !submission.problems.contains(problem) {
            submission.problems.push(problem.clone());
        }
    }
    Ok(Judgement::Submission(submission))
}

fn read<T: DeserializeOwned>(answer: CallAnswer) -> Result<T, SandboxError> {
    let broken = |what: String| {
        SandboxError::new(
            ErrorKind::System,
            format!("read what `submit` found out: {what}"),
        )
    };
    if answer.refused {
        return Err(broken(answer.text));
    }
    serde_json::from_value(answer.data).map_err(|e| broken(e.to_string()))
}

#[cfg(test)]
mod tests;
