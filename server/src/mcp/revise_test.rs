//! `revise_test`: a run that revises the test of an earlier one.

use schemars::JsonSchema;
use serde::Deserialize;

use super::service_tool::{CallError, Effects, Service, ServiceCall};
use super::write_failing_test::{RunResult, run_to_end};
use crate::api::runs;

pub(super) struct ReviseTest;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RevisionArgs {
    /// Id of the run that wrote the test.
    run: String,
    /// Changes to make, in the user's words.
    hint: String,
}

#[async_trait::async_trait]
impl Service for ReviseTest {
    type Args = RevisionArgs;
    type Output = RunResult;

    const NAME: &'static str = "revise_test";
    const TITLE: &'static str = "Revise a test";
    const DESCRIPTION: &'static str = "Revises the test of a run of `write_failing_test` as the user says, in a new run on the same code, and returns the new \
                               test like that tool. The test of the old run is kept.";
    const EFFECTS: Effects = Effects::Creates;

    async fn run(
        call: &ServiceCall<'_>,
        args: RevisionArgs,
    ) -> Result<(String, RunResult), CallError> {
        let (api, caller) = (&call.parts.api, call.caller());
        let (run, _) = runs::revise_run(api, &caller, &args.run, &args.hint, None).await?;
        run_to_end(call, run).await
    }
}
