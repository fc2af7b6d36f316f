//! Otter++ (Otter §4.2): five drafts from different views of the code, which run on the old code. Among the
//! failing drafts, the first of the best class is submitted: an assertion, another failure, or an error.

use super::otter::{OtterConfig, PROMPTS, drafts};
use super::stages::Draft;
use super::{Approach, ApproachContext, Workflow};
use crate::agent::{FailureKind, Flow, Outcome, Run};

/// Returns the five views. T1 is Otter; the others skip the planner, and see both localizations, only tests,
/// only focal code, or neither.
fn views() -> [OtterConfig; 5] {
    let full_config = OtterConfig::default();
    let view = |tests, focal| OtterConfig {
        planner: false,
        tests,
        focal,
        ..full_config
    };
    [
        full_config,
        view(true, true),
        view(true, false),
        view(false, true),
        view(false, false),
    ]
}

pub(super) static APPROACH: Approach = Approach::new(
    "otter-plus-plus",
    "otter and four drafts without a plan; takes the draft with the best failure: an assertion, then another failure, then a test that cannot run",
    Workflow::Pipeline {
        stages: &["localize", "plan", "write", "repair", "run", "choose"],
        model_calls: "11 to 15",
        prompts: PROMPTS,
    },
    |run, context| Box::pin(execute(run, context)),
);

async fn execute(run: &mut Run, _: &ApproachContext) -> Flow<Outcome> {
    let mut failing: Vec<(Draft, FailureKind)> = Vec::new();
    for draft in drafts(run, &views()).await? {
        run.write_files(&draft.proposed.files).await?;
        let ran = run.run_changed_tests().await?;
        match ran.kind {
            Some(kind) => failing.push((draft, kind)),
            None => run.stage("run", "passes on the old code: dropped")?,
        }
    }
    let kinds: Vec<FailureKind> = failing.iter().map(|(_, kind)| *kind).collect();
    let Some(chosen) = best(&kinds) else {
        return Ok(Outcome::nothing("no draft fails on the old code"));
    };
    let (draft, kind) = &failing[chosen];
    let of = failing.len();
    run.stage(
        "choose",
        format!("draft {} of {of} that fail: {kind}", chosen + 1),
    )?;
    draft.hand_in(run).await
}

/// Returns the index of the first draft of the best kind.
fn best(kinds: &[FailureKind]) -> Option<usize> {
    (0..kinds.len()).min_by_key(|at| kinds[*at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assertion_precedes_error() {
        use FailureKind::{Assertion, Error, Other};
        assert_eq!(best(&[Error, Other, Assertion, Assertion]), Some(2));
        assert_eq!(best(&[Error, Other, Other]), Some(1));
        assert_eq!(best(&[]), None);
    }
}
