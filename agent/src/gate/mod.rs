//! The submission gate. The facts come from the sandbox (`submit` of the toolbox). The decision is made here,
//! one rule after the other, and all faults are reported at once.
//!
//! The rules are:
//!
//! - Only test files change, and only those that the user named, if any.
//! - The patch applies to the clean base.
//! - It contributes tests.
//! - At least one of them fails in a sound way, and no test that passed breaks.
//! - The failure repeats under other conditions, and with a placebo in the code under test.
//! - The failing test runs code under test.

mod case;
mod chance;
mod coverage;
mod environment_failures;
mod evidence;
mod evidence_rows;
mod record;
mod reported_error;
mod reruns;
mod rules;
mod sentence;
mod unrelated_inputs;

pub(crate) use case::contributed;
pub use coverage::{CoverageVerdict, decide_coverage};
pub use evidence::{Evidence, FixTrial, Review, ReviewVerdict, TestEvidence, model_checks};
pub use evidence_rows::{evidence_rows, fix_tried, opinion};
pub use reruns::{describe_reruns, failed_again, holds_placebo};
pub use rules::{Finding, Rule};
pub use sentence::{best_sentence, longest_quotation, quoted_sentence};

use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testwright_config::hex::hex;
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::repository::{Source, apply_check};
use testwright_tools::tool::{AnyTool, Tool, ToolError};
use testwright_tools::tools::cover::CoverResult;
use testwright_tools::tools::submission::{ChangedFile, Submission};
use testwright_tools::tools::test_patch::SortedChanges;
use testwright_tools::tools::{Cover, Restore, Submit, TestPatch};

use crate::session::{CallAnswer, Session};

/// The gate's decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Findings; empty if the submission is accepted.
    pub findings: Vec<Finding>,
    /// Changes omitted from the patch, as `path: reason`.
    pub dropped: Vec<String>,
    /// Failing contributed tests, whether they fail soundly or not.
    pub failing: Vec<TestEvidence>,
    /// Contributed tests that already pass on the old code.
    pub passing: Vec<String>,
    /// Notes that are not faults, but worth a second look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Verdict {
    /// Returns whether the gate accepts the submission.
    pub fn accepted(&self) -> bool {
        self.findings.is_empty()
    }

    /// Refuses changes of Python files other than these test files, which the user named; none allow all.
    pub fn require_files(&mut self, submission: &Submission, files: &[String]) {
        let is_other = |file: &&ChangedFile| {
            file.kept && file.path.ends_with(".py") && !files.contains(&file.path)
        };
        let others = submission.files.iter().filter(is_other);
        let others: Vec<&str> = others.map(|file| file.path.as_str()).collect();
        if files.is_empty() || others.is_empty() {
            return;
        }
        self.findings.push(Finding {
            rule: Rule::TestsOnly,
            text: format!(
                "the user wants no test file changed but {}. Put the tests there, and put back {}.",
                files.join(", "),
                others.join(", ")
            ),
        });
    }

    /// Returns the message to the model.
    pub fn text(&self) -> String {
        let mut lines = rules::describe(&self.findings);
        if self.accepted() {
            lines.push("The checks of the submission passed:".to_owned());
            let line = |test: &TestEvidence| {
                format!("- {} fails: {}{}", test.id, test.line(), test.limits())
            };
            lines.extend(self.failing.iter().map(line));
        }
        if !self.passing.is_empty() {
            let passing = self.passing.join(", ");
            lines.push(format!("Passing on this code already: {passing}"));
        }
        lines.extend(self.notes.iter().map(|note| format!("Note: {note}.")));
        lines.extend(describe_dropped(&self.dropped));
        lines.join("\n")
    }
}

/// Decides on a submission. `applies` is the result of `git apply` on a clean checkout; `issue` is the
/// issue's full text.
pub fn decide(submission: &Submission, issue: &str, applies: &Result<(), String>) -> Verdict {
    let failing = rules::failing(submission);
    let case = case::Case {
        submission,
        issue,
        applies,
        failing: &failing,
    };
    Verdict {
        findings: rules::findings(&case, |_| true),
        dropped: dropped(submission),
        passing: rules::passing(submission),
        notes: failing
            .iter()
            .filter_map(|test| reported_error::other_error(test, issue))
            .chain(unrelated_inputs::notes(submission, &failing))
            .chain(environment_failures::notes(submission, &failing))
            .collect(),
        failing,
    }
}

/// Returns the changes omitted from the patch, as `path: reason`.
fn dropped(submission: &Submission) -> Vec<String> {
    let dropped = submission.files.iter().filter(|file| !file.kept);
    dropped
        .map(|file| match &file.reason {
            Some(reason) => format!("{}: {reason}", file.path),
            None => file.path.clone(),
        })
        .collect()
}

/// Returns the omitted changes as a list for the model; empty if nothing was omitted.
fn describe_dropped(dropped: &[String]) -> Vec<String> {
    rules::list(
        "Left out of the patch, and put back in the workspace:",
        dropped,
    )
}

/// The reason why a submission was not checked.
pub enum CheckError {
    /// The call itself was wrong, as the text for the model explains.
    Refused(String),
    /// A sandbox failed.
    Sandbox(SandboxError),
}

impl CheckError {
    /// Returns the message about a wrong call.
    ///
    /// # Errors
    ///
    /// Fails if a sandbox failed.
    pub fn refusal(self) -> Result<String, SandboxError> {
        match self {
            CheckError::Refused(text) => Ok(text),
            CheckError::Sandbox(error) => Err(error),
        }
    }
}

impl From<SandboxError> for CheckError {
    fn from(error: SandboxError) -> Self {
        CheckError::Sandbox(error)
    }
}

/// The changes of a session that form a submission.
pub struct SubmittedChanges(SortedChanges);

impl SubmittedChanges {
    /// Returns a digest, which is equal for equal changes.
    pub fn digest(&self) -> String {
        hex(&Sha256::digest(
            serde_json::to_vec(&self.0).unwrap_or_default(),
        ))
    }
}

/// Gathers the facts and decides. `arguments` are those of the tool `submit`.
///
/// # Errors
///
/// Fails if the call is wrong or a sandbox fails.
pub async fn check_submission(
    session: &Session,
    source: &Source,
    issue: &str,
    arguments: &Value,
    deadline: Duration,
) -> Result<(Submission, Verdict), CheckError> {
    let changes = submitted_changes(session, arguments, deadline).await?;
    check_changes(session, source, issue, arguments, &changes, deadline).await
}

/// Returns the changes of a session, before any test runs. Changes that cannot be part of a test patch are reverted.
///
/// # Errors
///
/// Fails if the call is wrong or the sandbox fails.
pub async fn submitted_changes(
    session: &Session,
    arguments: &Value,
    deadline: Duration,
) -> Result<SubmittedChanges, CheckError> {
    if let Err(ToolError::Refused(text)) = Submit.check(arguments.clone()) {
        return Err(CheckError::Refused(text));
    }
    let answer = session.call(TestPatch::NAME, json!({}), deadline).await?;
    read(answer).map(SubmittedChanges)
}

/// Gathers the facts about these changes and decides.
///
/// The session's sandbox only supplies the patch, because code may have changed anything in it. The facts
/// come from a fresh sandbox to which only the patch is added.
///
/// # Errors
///
/// Fails if the call is wrong or a sandbox fails.
pub async fn check_changes(
    session: &Session,
    source: &Source,
    issue: &str,
    arguments: &Value,
    changes: &SubmittedChanges,
    deadline: Duration,
) -> Result<(Submission, Verdict), CheckError> {
    let facts = gather(session, source, arguments, changes, deadline).await?;
    let verdict = decide(&facts.submission, issue, &facts.applies);
    Ok((facts.submission, verdict))
}

/// Checks a test that is wanted for the session's lines. Returns the patch with the test, for `git apply`, and the
/// decision.
///
/// # Errors
///
/// Fails if the call is wrong, a sandbox fails, or the session has no wanted lines.
pub async fn check_coverage(
    session: &Session,
    source: &Source,
    arguments: &Value,
    deadline: Duration,
) -> Result<(String, CoverageVerdict), CheckError> {
    let changes = submitted_changes(session, arguments, deadline).await?;
    let facts = gather(session, source, arguments, &changes, deadline).await?;
    let Some(covered) = &facts.covered else {
        let error = SandboxError::new(ErrorKind::System, "measure coverage: no lines are wanted");
        return Err(error.into());
    };
    let verdict = decide_coverage(&facts.submission, covered, &facts.applies);
    Ok((facts.submission.patch, verdict))
}

/// The facts that the gate decides on.
struct GatheredFacts {
    submission: Submission,
    /// Coverage, if lines are wanted.
    covered: Option<CoverResult>,
    applies: Result<(), String>,
}

async fn gather(
    session: &Session,
    source: &Source,
    arguments: &Value,
    changes: &SubmittedChanges,
    deadline: Duration,
) -> Result<GatheredFacts, CheckError> {
    let fresh = session.fresh().await?;
    let run = async {
        let submission = run_submission(&fresh, &changes.0, arguments, deadline).await?;
        let covered = match session.has_wanted_lines() {
            true => Some(run_coverage(&fresh, &submission, deadline).await?),
            false => None,
        };
        Ok::<_, CheckError>((submission, covered))
    };
    let results = run.await;
    session.discard(fresh).await;
    let (submission, covered) = results?;
    let applies = match submission.patch.is_empty() {
        true => Ok(()),
        false => apply_check(source, &submission.patch).unwrap_or_else(|e| Err(e.message)),
    };
    Ok(GatheredFacts {
        submission,
        covered,
        applies,
    })
}

/// Returns which of the wanted lines the contributed tests run.
async fn run_coverage(
    fresh: &Session,
    submission: &Submission,
    deadline: Duration,
) -> Result<CoverResult, CheckError> {
    let tests: Vec<&str> = contributed(submission)
        .map(|test| test.id.as_str())
        .collect();
    if tests.is_empty() {
        return Ok(CoverResult::default());
    }
    let arguments = json!({ "tests": tests });
    let answer = fresh.call(Cover::NAME, arguments, deadline).await?;
    if answer.ended {
        return Err(CheckError::Refused(answer.text));
    }
    read(answer)
}

/// Applies the patch in a fresh sandbox and runs the tests there.
async fn run_submission(
    fresh: &Session,
    sorted: &SortedChanges,
    arguments: &Value,
    deadline: Duration,
) -> Result<Submission, CheckError> {
    let files = json!({ "files": sorted.kept });
    let answer = fresh.call(Restore::NAME, files, deadline).await?;
    if answer.refused {
        return Err(CheckError::Refused(answer.text));
    }
    let answer = match fresh.call(Submit::NAME, arguments.clone(), deadline).await {
        // Only the tests have run in this sandbox.
        Err(error) if error.kind == ErrorKind::Dead => {
            return Err(CheckError::Refused(format!(
                "the sandbox ended while the tests of the submission ran: failed to {error}"
            )));
        }
        answer => answer?,
    };
    if answer.ended {
        return Err(CheckError::Refused(answer.text));
    }
    let mut submission: Submission = read(answer)?;
    let files = std::mem::replace(&mut submission.files, sorted.files.clone());
    for dropped in files.into_iter().filter(|file| !file.kept) {
        submission.files.retain(|file| file.path != dropped.path);
        submission.files.push(dropped);
    }
    for problem in &sorted.problems {
        if !submission.problems.contains(problem) {
            submission.problems.push(problem.clone());
        }
    }
    Ok(submission)
}

fn read<T: DeserializeOwned>(answer: CallAnswer) -> Result<T, CheckError> {
    if answer.refused {
        return Err(CheckError::Refused(answer.text));
    }
    serde_json::from_value(answer.data).map_err(|error| {
        let message = format!("read the result of `submit`: {error}");
        SandboxError::new(ErrorKind::System, message).into()
    })
}

#[cfg(test)]
mod tests;
