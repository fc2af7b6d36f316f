//! Checks a given test: the gate's verdict and its evidence, without a model, candidate fixes or a golden patch.

mod evidence;
mod signals;

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::{self, File, FileKind, Files, Source, Tree};
use testwright_tools::tool::Tool as _;
use testwright_tools::tools::Restore;
use testwright_tools::tools::changes::LINK;
use testwright_tools::tools::submission::Submission;

use self::signals::signals;
use crate::gate::{self, Verdict};
use crate::session::Session;
use testwright_config::error::Result;

pub use evidence::{CheckEvidence, FailureEvidence, RerunEvidence};

/// Timeout of the check, not counting the start of the sandbox.
const CHECK_TIMEOUT: Duration = Duration::from_secs(900);

/// A test to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestInput {
    /// A patch for `git apply` on the old code.
    Patch(String),
    /// A test file, existing or new.
    File {
        /// Path in the repository.
        path: String,
        /// Full content.
        content: Vec<u8>,
    },
}

impl TestInput {
    /// Returns the paths of the files that the test adds or changes.
    pub fn paths(&self) -> Vec<String> {
        match self {
            TestInput::Patch(patch) => repository::touched_paths(patch).into_iter().collect(),
            TestInput::File { path, .. } => vec![path.clone()],
        }
    }
}

/// A test that the gate has judged.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedTest {
    /// The verdict as a message.
    pub text: String,
    /// The verdict and its evidence.
    pub evidence: CheckEvidence,
}

impl TestInput {
    /// Returns the files of the test, relative to the old code. The inner error says why the patch does not apply.
    fn files(&self, source: &Source) -> Result<std::result::Result<Files, String>> {
        match self {
            TestInput::Patch(patch) => {
                let applied = repository::apply(&source.tree()?, &Files::new(), patch)?;
                let files = applied.map(|applied| applied.files);
                Ok(files.map_err(|why| format!("the patch does not apply: {why}")))
            }
            TestInput::File { path, content } => {
                let (content, kind) = (content.clone(), FileKind::Plain);
                let file = File { content, kind };
                Ok(Ok(Files::from([(path.clone(), Some(file))])))
            }
        }
    }
}

/// Gathers the evidence on a submission that the gate has judged.
///
/// # Errors
///
/// Fails if the old code cannot be read.
pub fn submission_evidence(
    submission: &Submission,
    verdict: &Verdict,
    issue: &str,
    tree: &Tree,
) -> std::result::Result<CheckEvidence, SandboxError> {
    let mut evidence = CheckEvidence::without_probability(submission, verdict, issue, tree)?;
    evidence.signals = signals(&evidence, issue);
    evidence.estimate_probability();
    Ok(evidence)
}

/// Checks a test in a session that has no other changes. The inner error says why the test cannot be run.
///
/// # Errors
///
/// Fails if the old code cannot be read, or a sandbox fails.
pub async fn check_test(
    session: &Session,
    source: &Source,
    issue: &str,
    input: &TestInput,
) -> Result<std::result::Result<CheckedTest, String>> {
    let files: Vec<Value> = match input.files(source)? {
        Ok(files) => files.iter().map(encode_file).collect(),
        Err(why) => return Ok(Err(why)),
    };
    let put = session
        .call(Restore::NAME, json!({ "files": files }), CHECK_TIMEOUT)
        .await?;
    if put.refused {
        return Ok(Err(put.text));
    }
    let check = gate::check_submission(session, source, issue, &json!({}), CHECK_TIMEOUT).await;
    Ok(match check {
        Ok((submission, verdict)) => Ok(CheckedTest {
            text: verdict.text(),
            evidence: submission_evidence(&submission, &verdict, issue, &source.tree()?)?,
        }),
        Err(error) => Err(error.refusal()?),
    })
}

/// Checks a test like [`check_test`], and returns only the evidence. A test that cannot be run is not accepted.
///
/// # Errors
///
/// Fails for the same reasons as [`check_test`].
pub async fn gather_evidence(
    session: &Session,
    source: &Source,
    issue: &str,
    input: &TestInput,
) -> Result<CheckEvidence> {
    Ok(match check_test(session, source, issue, input).await? {
        Ok(checked) => checked.evidence,
        Err(reason) => CheckEvidence::refused(reason),
    })
}

/// Encodes a file for the tool `restore`.
pub(crate) fn encode_file((path, file): (&String, &Option<File>)) -> Value {
    let mode = file.as_ref().and_then(|file| match file.kind {
        FileKind::Plain => None,
        FileKind::Executable => Some(0o100_755),
        FileKind::Link => Some(LINK),
    });
    let content = (file.as_ref()).map(|file| BASE64_STANDARD.encode(&file.content));
    json!({ "path": path, "content": content, "mode": mode })
}
