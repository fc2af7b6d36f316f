//! `check_test`: the gate's verdict on a test that the client provides.

use schemars::JsonSchema;
use serde::Deserialize;

use super::cases::unless_cancelled;
use super::service_tool::{CallError, Effects, Service, ServiceCall};
use crate::request::{RunLimits, read_test};
use crate::sandbox_place::SandboxPlace;
use testwright_agent::check::{CheckEvidence, CheckedTest, FailureEvidence};

pub(super) struct CheckTest;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckArgs {
    /// Repository: a URL, or a folder on the server. Required unless the issue is a URL. The server must allow it.
    repository: Option<String>,
    /// Commit, tag or branch of the old code. Default: HEAD.
    commit: Option<String>,
    /// Issue: URL of a GitHub issue, or a line with its title, then its text. It is required with a model, or if the test
    /// uses a name that does not exist yet.
    issue: Option<String>,
    /// Test, as a patch for `git apply` on the old code.
    patch: Option<String>,
    /// Path of the test file in the repository, existing or new; instead of a patch.
    path: Option<String>,
    /// Full content of the test file, together with `path`.
    content: Option<String>,
    /// Model that tries fixes of the issue on an accepted test and reviews it, by the name that its provider uses.
    /// Default: none.
    model: Option<String>,
    /// Limits of the model.
    #[serde(default)]
    limits: RunLimits,
}

#[async_trait::async_trait]
impl Service for CheckTest {
    type Args = CheckArgs;
    type Output = CheckEvidence;

    const NAME: &'static str = "check_test";
    const TITLE: &'static str = "Check a test";
    const DESCRIPTION: &'static str = "Runs a given test on the old code of a Python repository and checks whether it reproduces an issue: it changes only \
                               test files, fails for a sound reason, fails again under other conditions, and runs code of the repository. \
                               Reports all problems. With `model`, also tries fixes of the issue and reviews the failure, which costs model \
                               calls.";
    const EFFECTS: Effects = Effects::Reads;

    async fn run(
        call: &ServiceCall<'_>,
        args: CheckArgs,
    ) -> Result<(String, CheckEvidence), CallError> {
        let test = read_test(
            args.patch.as_deref(),
            args.path.as_deref(),
            args.content.as_deref(),
        )?;
        let parts = call.parts;
        let place = SandboxPlace::resolve(
            &parts.api,
            args.repository.as_deref(),
            args.commit.as_deref(),
            args.issue.as_deref(),
        )
        .await?;
        let owner = call.caller().owner;
        let checking = async {
            let progress = call.sandbox_progress();
            let model = (args.model.as_deref(), &args.limits);
            let environment = place
                .prepare_checks(&parts.api, &owner, model, progress)
                .await?;
            environment.check(&test).await
        };
        let checked = unless_cancelled(call, checking).await?;
        let checked = checked.map_err(CallError)?;
        let text = text_with_evidence(&checked, args.issue.is_some());
        Ok((text, checked.evidence))
    }
}

/// Returns the verdict with the sentences of the issue, if there is one, and the confidence: models may see only the text
/// of a result.
fn text_with_evidence(checked: &CheckedTest, has_issue: bool) -> String {
    let CheckedTest { text, evidence } = checked;
    let mut text = text.clone();
    let mut sentences: Vec<String> = Vec::new();
    let failing = evidence.failing.iter().filter(|_| has_issue);
    for sentence in failing.map(FailureEvidence::sentence_text) {
        if !sentences.contains(&sentence) {
            text.push_str(&format!("\nIssue: {sentence}"));
            sentences.push(sentence);
        }
    }
    text.push_str(&format!("\nConfidence: {:.2}", evidence.probability));
    if evidence.is_doubted() {
        text.push_str("\nThe gate accepts the test, but the fixes or the review contradict it.");
    }
    text
}

#[cfg(test)]
mod tests;
