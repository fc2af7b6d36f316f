//! `revise_test`: a run that revises the test of an earlier one.

use rmcp::model::{CallToolResult, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::service_tool::{CallError, Effects, ServiceCall, ServiceTool};
use super::write_failing_test::{RunResult, run_to_end};
use crate::api::runs;

pub(super) struct ReviseTest;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RevisionArgs {
    /// Id of the run that wrote the test.
    run: String,
    /// Changes to make, in the user's words.
    hint: String,
}

#[async_trait::async_trait]
impl ServiceTool for ReviseTest {
    fn name(&self) -> &'static str {
        "revise_test"
    }

    fn tool(&self) -> Tool {
        Tool::new(
            self.name(),
            "Revises the test of a run of `write_failing_test` as the user says, in a new run on the same code, and returns the new \
                        test like that tool. The test of the old run is kept.",
            serde_json::Map::new(),
        )
        .with_input_schema::<RevisionArgs>()
        .with_output_schema::<RunResult>()
        .with_title("Revise a test")
        .with_annotations(Effects::CREATES.annotations())
    }

    async fn call(&self, call: &ServiceCall<'_>) -> Result<CallToolResult, CallError> {
        let args: RevisionArgs = call.arguments()?;
        let (api, caller) = (&call.parts.api, call.caller());
        let (run, _) = runs::revise_run(api, &caller, &args.run, &args.hint, None).await?;
        run_to_end(call, run).await
    }
}
