//! `verify`: runs test files independently and returns their outcomes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_evals::cases::verify;

use super::cases::{CaseInput, CaseVerdict, cases, open_place, options, unless_cancelled};
use super::service_tool::{CallError, Effects, Service, ServiceCall};

pub(super) struct Verify;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct VerifyArgs {
    /// Repository: a URL, or a folder on the server. The server must allow it.
    repository: Option<String>,
    /// Commit, tag or branch. Default: HEAD.
    commit: Option<String>,
    /// Test files. They run independently of each other.
    cases: Vec<CaseInput>,
    /// Number of runs per case: a case with different outcomes is flaky. Default: 1.
    repeats: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Verified {
    /// Outcomes, in the order of the request.
    cases: Vec<CaseVerdict>,
}

#[async_trait::async_trait]
impl Service for Verify {
    type Args = VerifyArgs;
    type Output = Verified;

    const NAME: &'static str = "verify";
    const TITLE: &'static str = "Run test files";
    const DESCRIPTION: &'static str = "Runs test files on the current code of a Python repository, many in one call, and returns the outcome of each: passed, \
                               failed, error, not run, timed out, crashed or flaky. Each file exists only during its own run; the repository stays \
                               unchanged.";
    const EFFECTS: Effects = Effects::Reads;

    async fn run(
        call: &ServiceCall<'_>,
        args: VerifyArgs,
    ) -> Result<(String, Verified), CallError> {
        let cases = cases(&args.cases)?;
        let options = options(args.repeats, false);
        let (repository, commit) = (args.repository.as_deref(), args.commit.as_deref());
        let (place, _room) = open_place(call, repository, commit).await?;
        let verified = unless_cancelled(call, verify(&place, &cases, &options)).await?;
        let verdicts: Vec<CaseVerdict> = verified
            .iter()
            .map(CaseVerdict::from_verification)
            .collect();
        let lines: Vec<String> = verdicts.iter().map(CaseVerdict::line).collect();
        Ok((lines.join("\n"), Verified { cases: verdicts }))
    }
}
