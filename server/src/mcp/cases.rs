//! Code that `verify` and `cov` share: test files, the repository in which they run, and their outcomes.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_evals::cases::{Case, CaseEnvironment, CaseOptions, CaseOutcome, Verification};

use super::service_tool::{CallError, ServiceCall};
use crate::fields::{check_name, check_path};
use crate::sandbox_limits::SandboxPermit;
use crate::sandbox_place::SandboxPlace;
use testwright_config::error::Error;

/// Maximum number of cases per call.
const MAX_CASES: usize = 500;
/// Default and maximum timeout of a case, in seconds.
const DEFAULT_SECONDS: u64 = 60;
const MAX_SECONDS: u64 = 900;
const MAX_REPEATS: u32 = 10;

/// A test file with its content.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseInput {
    /// Name of the case in the result. Default: the path.
    id: Option<String>,
    /// Path of the test file in the repository, existing or new.
    path: String,
    /// Full content of the test file.
    content: String,
    /// Tests to run: `Class::test_x` or `test_x`. Default: all tests of the file.
    #[serde(default)]
    tests: Vec<String>,
    /// Timeout in seconds. Default: 60.
    seconds: Option<u64>,
}

/// The outcome of a case.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CaseVerdict {
    pub id: String,
    /// Whether all of its tests ran and passed.
    pub passed: bool,
    /// `passed`, `failed`, `error` (in the file or a fixture), `not_run`, `timed_out`, `crashed` or `flaky`.
    pub outcome: &'static str,
    /// Reason why it did not pass.
    pub reason: Option<String>,
    /// Wall time, in seconds.
    pub seconds: f64,
}

impl CaseVerdict {
    pub(super) fn from_verification(verification: &Verification) -> CaseVerdict {
        let (outcome, reason) = match &verification.outcome {
            CaseOutcome::Passed => ("passed", None),
            CaseOutcome::Failed { message } => ("failed", Some(message.clone())),
            CaseOutcome::Error { message } => ("error", Some(message.clone())),
            CaseOutcome::NotRun { reason } => ("not_run", Some(reason.clone())),
            CaseOutcome::TimedOut => ("timed_out", None),
            CaseOutcome::Crashed { reason } => ("crashed", Some(reason.clone())),
            CaseOutcome::Flaky => ("flaky", Some("the outcome differs between runs".to_owned())),
        };
        CaseVerdict {
            id: verification.id.clone(),
            passed: verification.passed(),
            outcome,
            reason,
            seconds: verification.seconds,
        }
    }

    /// Formats the outcome as a line for a model.
    pub(super) fn line(&self) -> String {
        let mut line = format!("{}: {}", self.id, self.outcome.replace('_', " "));
        if let Some(reason) = &self.reason {
            let first = reason.lines().next().unwrap_or_default();
            line.push_str(&format!(": {first}"));
        }
        line
    }
}

/// Checks the cases and converts them for the library.
pub(super) fn cases(inputs: &[CaseInput]) -> Result<Vec<Case>, CallError> {
    if inputs.is_empty() || inputs.len() > MAX_CASES {
        return Err(CallError(format!(
            "failed to read the cases: there are {}; the allowed number is 1 to {MAX_CASES}",
            inputs.len()
        )));
    }
    for input in inputs {
        check_name("id", input.id.as_deref().unwrap_or_default())?;
        check_path("path", &input.path)?;
        for test in &input.tests {
            check_path("tests", test)?;
        }
    }
    let case = |input: &CaseInput| Case {
        id: input.id.clone().unwrap_or_else(|| input.path.clone()),
        path: input.path.clone(),
        source: input.content.clone(),
        tests: input.tests.clone(),
        timeout: Duration::from_secs(
            input
                .seconds
                .unwrap_or(DEFAULT_SECONDS)
                .clamp(1, MAX_SECONDS),
        ),
    };
    Ok(inputs.iter().map(case).collect())
}

/// Returns the options for cases. A call uses one sandbox, because the number of clients' sandboxes is limited.
pub(super) fn options(repeats: Option<u32>, contexts: bool) -> CaseOptions {
    CaseOptions {
        workers: 1,
        repeats: repeats.unwrap_or(1).clamp(1, MAX_REPEATS),
        contexts,
        ..CaseOptions::default()
    }
}

/// Prepares the environment of a repository, and reserves a sandbox until the permit is dropped.
pub(super) async fn open_place(
    call: &ServiceCall<'_>,
    repository: Option<&str>,
    commit: Option<&str>,
) -> Result<(CaseEnvironment, SandboxPermit), CallError> {
    let api = &call.parts.api;
    let place = SandboxPlace::resolve(api, repository, commit, None).await?;
    let owner = call.caller().owner;
    let opened = async {
        let room = api.sandboxes.acquire(&owner).await?;
        let place = place.of_cases(api, call.sandbox_progress()).await?;
        Ok::<_, Error>((place, room))
    };
    let opened = unless_cancelled(call, opened).await?;
    call.progress.report("the tests run");
    Ok(opened)
}

pub(super) async fn unless_cancelled<T, E>(
    call: &ServiceCall<'_>,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, CallError>
where
    Error: From<E>,
{
    tokio::select! {
        done = work => Ok(done.map_err(Error::from)?),
        () = call.cancelled() => Err(CallError::cancelled()),
    }
}
