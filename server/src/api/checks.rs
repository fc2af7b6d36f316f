//! The handler for checks, which judge given tests on the old code.

use std::sync::Arc;

use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};

use super::{Api, ApiResult, ApiState};
use crate::authentication::Caller;
use crate::fields::{MAX_NAME_LEN, check_count, check_name};
use crate::request::{RunLimits, check_issue, read_test};
use crate::sandbox_place::SandboxPlace;
use testwright_agent::agent::NotesToLog;
use testwright_agent::check::{CheckEvidence, TestInput};
use testwright_config::error::Error;
use testwright_config::stop_signal::stopped;

/// Maximum number of tests.
const MAX_TESTS: usize = 20;

/// A request to check tests for an issue.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChecksRequest {
    /// Repository: a URL, or a folder on the server. Required unless the issue is a URL. The server must allow it.
    #[schema(max_length = 2048)]
    repository: Option<String>,
    /// Commit, tag or branch of the old code. Default: HEAD.
    #[schema(max_length = 200)]
    commit: Option<String>,
    /// URL of a GitHub issue, or the issue itself: a line with its title, then its text.
    #[schema(min_length = 1, max_length = 1_048_576)]
    issue: String,
    /// Tests, up to 20. Each runs in its own sandbox.
    #[schema(min_items = 1, max_items = 20)]
    tests: Vec<GivenTest>,
    /// Model that tries fixes of the issue on each accepted test and reviews it, by the name that its provider uses.
    /// Default: none.
    #[schema(max_length = 200)]
    model: Option<String>,
    /// Limits of the model, for each test.
    #[serde(default)]
    limits: RunLimits,
}

/// A test: a patch, or a file with its content.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenTest {
    /// Name of the test in the response. Default: the path.
    #[schema(min_length = 1, max_length = 100)]
    name: Option<String>,
    /// Patch for the old code, for `git apply`.
    #[schema(max_length = 1_048_576)]
    patch: Option<String>,
    /// Path of the test file in the repository, existing or new; instead of a patch.
    #[schema(max_length = 2048)]
    path: Option<String>,
    /// Full content of the test file, together with `path`.
    #[schema(max_length = 1_048_576)]
    content: Option<String>,
}

/// The results of a request.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Checks {
    /// Results, in the order of the request.
    pub checks: Vec<NamedCheck>,
}

/// The verdict on a test, and its evidence.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct NamedCheck {
    /// Name of the test, otherwise its path; absent for a patch without a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Evidence, with the same fields as the result of the MCP tool `check_test`, such as `accepted` and `findings`.
    /// `refused` is the reason why the test could not be run.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub evidence: CheckEvidence,
}

/// Check given tests on the old code
///
/// Responds once all tests are checked. If the client disconnects, the checks end.
#[utoipa::path(post, path = "/v1/checks", tag = "checks", request_body = ChecksRequest, responses(
    (status = 200, description = "all tests were checked, whatever the verdicts", body = Checks),
    (status = 400, description = "invalid JSON body"),
    (status = 413, description = "body too long"),
    (status = 415, description = "body is not application/json"),
    (status = 422, description = "invalid request"),
    (status = 500, description = "the environment, a sandbox or the model's service failed"),
    (status = 503, description = "the server is shutting down"),
))]
pub async fn create(
    State(state): Api,
    Extension(caller): Extension<Caller>,
    body: Result<Json<ChecksRequest>, JsonRejection>,
) -> ApiResult<Json<Checks>> {
    let Json(request) = body?;
    let checks = tokio::select! {
        checks = check(&state, &caller.owner, &request) => checks?,
        () = stopped(state.stop.clone()) => {
            let error = Error::cancelled("the server is shutting down");
            return Err(error.into());
        }
    };
    Ok(Json(Checks { checks }))
}

/// Checks the tests one after the other. Dropping the future stops whatever was started.
async fn check(
    state: &ApiState,
    owner: &str,
    request: &ChecksRequest,
) -> Result<Vec<NamedCheck>, Error> {
    let tests = request.read_tests()?;
    let place = SandboxPlace::resolve(
        state,
        request.repository.as_deref(),
        request.commit.as_deref(),
        Some(&request.issue),
    )
    .await?;
    let progress = Arc::new(NotesToLog);
    let model = (request.model.as_deref(), &request.limits);
    let environment = place.prepare_checks(state, owner, model, progress).await?;
    let mut checks = Vec::new();
    for (name, test) in tests {
        let evidence = match environment.check(&test).await? {
            Ok(checked) => checked.evidence,
            Err(reason) => CheckEvidence::refused(reason),
        };
        checks.push(NamedCheck { name, evidence });
    }
    Ok(checks)
}

impl ChecksRequest {
    /// Validates the issue and the tests, and returns the tests with their names.
    fn read_tests(&self) -> Result<Vec<(Option<String>, TestInput)>, Error> {
        check_count("tests", self.tests.len(), MAX_TESTS)?;
        check_issue(&self.issue)?;
        self.tests.iter().map(GivenTest::read).collect()
    }
}

impl GivenTest {
    fn read(&self) -> Result<(Option<String>, TestInput), Error> {
        if let Some(name) = &self.name {
            check_name("name", name)?;
            if !(1..=MAX_NAME_LEN).contains(&name.chars().count()) {
                return Err(Error::usage("read `name`").cause(format!(
                    "it is not a line of 1 to {MAX_NAME_LEN} characters"
                )));
            }
        }
        let (patch, path) = (self.patch.as_deref(), self.path.as_deref());
        let input = read_test(patch, path, self.content.as_deref())?;
        let name = self.name.as_ref().or(self.path.as_ref());
        Ok((name.cloned(), input))
    }
}
