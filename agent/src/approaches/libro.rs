//! LIBRO as ported by SWT-bench (§4.1).
//!
//! It takes several samples of `zero-shot-plus`, and drops those that cannot be applied or do not fail on the
//! old code. For each failure, the model says whether it is the issue's. The shortest of those is submitted,
//! or otherwise the shortest of all that are left.

use testwright_agent_prompts::{LibroJudge, Prompt, ZeroShotPlusSystem, ZeroShotTask};

use super::extra_inputs;
use super::stages::{Draft, SAMPLE_TEMPERATURE, SAMPLES, judge, retrieve, system_and_user, write};
use super::{Approach, ApproachContext, Workflow};
use crate::agent::{Flow, Outcome, Run};
use crate::formats::{OldFiles, function_blocks};

pub(super) static APPROACH: Approach = Approach {
    options: extra_inputs::OPTIONS,
    ..Approach::new(
        "libro",
        "runs five samples, judges their failures, and takes the shortest of the best-judged tests",
        Workflow::Pipeline {
            stages: &["retrieve", "write", "run", "judge", "choose"],
            model_calls: "5, and one for each sample that fails",
            prompts: &[
                ZeroShotPlusSystem::NAME,
                ZeroShotTask::NAME,
                LibroJudge::NAME,
            ],
        },
        |run, context| Box::pin(execute(run, context)),
    )
};

async fn execute(run: &mut Run, context: &ApproachContext) -> Flow<Outcome> {
    let tree = run.tree()?;
    let task = retrieve(run, &tree, context, true)?;
    let messages = system_and_user(&ZeroShotPlusSystem {}, &task)?;
    let mut failing: Vec<FailingSample> = Vec::new();
    for _ in 0..SAMPLES {
        let (messages, format) = (messages.clone(), function_blocks::read);
        let written = write(run, &tree, messages, SAMPLE_TEMPERATURE, format).await?;
        let Ok(draft) = written else {
            continue;
        };
        let is_duplicate =
            |sample: &&FailingSample| sample.draft.proposed.files == draft.proposed.files;
        if let Some(same) = failing.iter().find(is_duplicate) {
            let is_of_issue = same.is_of_issue;
            failing.push(FailingSample { draft, is_of_issue });
            continue;
        }
        let Some((_, failure)) = draft.failure(run).await? else {
            continue;
        };
        let is_of_issue = fails_for_issue(run, &draft, failure).await?;
        failing.push(FailingSample { draft, is_of_issue });
    }
    let Some(chosen) = choose(&failing, &tree) else {
        return Ok(Outcome::nothing(format!(
            "no sample of {SAMPLES} fails on the old code"
        )));
    };
    run.stage(
        "choose",
        format!("sample {} of {} that fail", chosen + 1, failing.len()),
    )?;
    failing[chosen].draft.hand_in(run).await
}

/// Asks whether a failure on the old code is the one in the issue.
pub(super) async fn fails_for_issue(run: &mut Run, draft: &Draft, failure: String) -> Flow<bool> {
    let question = LibroJudge {
        issue: run.issue.folded_text(),
        test: draft.reply.trim().to_owned(),
        failure,
    };
    Ok(judge(run, &question).await?.is_yes)
}

/// A sample that fails on the old code.
struct FailingSample {
    draft: Draft,
    is_of_issue: bool,
}

/// Chooses among the samples that the judge prefers, or otherwise all, the one that adds the fewest lines. On
/// a tie, the first one counts.
fn choose(failing: &[FailingSample], old: &dyn OldFiles) -> Option<usize> {
    let has_preferred = failing.iter().any(|sample| sample.is_of_issue);
    let length = |sample: &FailingSample| sample.draft.proposed.added(old);
    let is_fit = |at: &usize| failing[*at].is_of_issue || !has_preferred;
    let fit = (0..failing.len()).filter(is_fit);
    fit.min_by_key(|at| length(&failing[*at]))
}

#[cfg(test)]
mod tests;
