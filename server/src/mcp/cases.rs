//! What `verify` and `cov` have in common: test files in, the repository in which they run, how each came out.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_evals::cases::{Case, CaseOptions, CaseOutcome, Place, Verification};

use super::owner_shares::SandboxRoom;
use super::place::SandboxPlace;
use super::service_tool::{CallError, ServiceCall};
use crate::fields::{check_name, check_path};
use testwright_config::error::Error;

/// Cases of one call.
const MAX_CASES: usize = 500;
/// Seconds that a case may take unless it says otherwise, and at most.
const SECONDS: u64 = 60;
const MAX_SECONDS: u64 = 900;
const MAX_REPEATS: u32 = 10;

/// A test file as it shall be.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenCase {
    /// Named in the answer. Default: the path.
    id: Option<String>,
    /// Where in the repository the test file is, or is to be.
    path: String,
    /// The whole content of the test file.
    content: String,
    /// `Class::test_x` or `test_x`. Default: all tests of the file.
    #[serde(default)]
    tests: Vec<String>,
    /// The longest time that it may take. Default: 60.
    seconds: Option<u64>,
}

/// How a case came out.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CaseVerdict {
    pub id: String,
    /// All of its tests ran and passed.
    pub passed: bool,
    /// `passed`, `failed`, `error` (the file or a fixture), `not_run`, `timed_out`, `crashed` or `flaky`.
    pub outcome: &'static str,
    /// Why it did not pass.
    pub reason: Option<String>,
    /// Wall time.
    pub seconds: f64,
}

impl CaseVerdict {
    pub fn of(verification: &Verification) -> CaseVerdict {
        let (outcome, reason) = match &verification.outcome {
            CaseOutcome::Passed => ("passed", None),
            CaseOutcome::Failed { message } => ("failed", Some(message.clone())),
            CaseOutcome::Error { message } => ("error", Some(message.clone())),
            CaseOutcome::NotRun { reason } => ("not_run", Some(reason.clone())),
            CaseOutcome::TimedOut => ("timed_out", None),
            CaseOutcome::Crashed { reason } => ("crashed", Some(reason.clone())),
            CaseOutcome::Flaky => (
                "flaky",
                Some("it did not come out the same each time".to_owned()),
            ),
        };
        CaseVerdict {
            id: verification.id.clone(),
            passed: verification.passed(),
            outcome,
            reason,
            seconds: verification.seconds,
        }
    }

    /// For a model to read.
    pub fn line(&self) -> String {
        let mut line = format!("{}: {}", self.id, self.outcome.replace('_', " "));
        if let Some(reason) = &self.reason {
            let first = reason.lines().next().unwrap_or_default();
            line.push_str(&format!(": {first}"));
        }
        line
    }
}

/// As the library takes them.
pub fn cases(given: &[GivenCase]) -> Result<Vec<Case>, CallError> {
    if given.is_empty() || given.len() > MAX_CASES {
        return Err(CallError(format!(
            "failed to read the cases: there are {}, and a call takes 1 to {MAX_CASES}",
            given.len()
        )));
    }
    for given in given {
        check_name("id", given.id.as_deref().unwrap_or_default())?;
        check_path("path", &given.path)?;
        for test in &given.tests {
            check_path("tests", test)?;
        }
    }
    let case = |given: &GivenCase| Case {
        id: given.id.clone().unwrap_or_else(|| given.path.clone()),
        path: given.path.clone(),
        source: given.content.clone(),
        tests: given.tests.clone(),
        timeout: Duration::from_secs(given.seconds.unwrap_or(SECONDS).clamp(1, MAX_SECONDS)),
    };
    Ok(given.iter().map(case).collect())
}

/// One sandbox for a call: the number of those that clients may have is limited.
pub fn options(repeats: Option<u32>, contexts: bool) -> CaseOptions {
    CaseOptions {
        workers: 1,
        repeats: repeats.unwrap_or(1).clamp(1, MAX_REPEATS),
        contexts,
        ..CaseOptions::default()
    }
}

/// The environment of a repository, and room for a sandbox for as long as the permit is kept.
pub async fn open_place(
    call: &ServiceCall<'_>,
    repository: Option<&str>,
    commit: Option<&str>,
) -> Result<(Place, SandboxRoom), CallError> {
    let api = &call.parts.api;
    let place = SandboxPlace::of(api, repository, commit, None).await?;
    let owner = call.caller().owner;
    let opened = async {
        let room = call.parts.sessions.room(&owner).await?;
        let place = place.of_cases(api, &call.progress).await?;
        Ok::<_, Error>((place, room))
    };
    let opened = unless_cancelled(call, opened).await?;
    call.progress.tell("the tests run");
    Ok(opened)
}

pub async fn unless_cancelled<T, E>(
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
