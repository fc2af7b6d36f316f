//! Otter++ (Otter §4.2): five drafts from different views of the code, which run on the old code. Among the
//! failing drafts, the first of the best class is submitted: an assertion, another failure, or an error.

use super::otter::{PROMPTS, drafts, view};
use super::stages::Draft;
use super::{Approach, ApproachContext, Options, Workflow};
use crate::agent::{FailureKind, Flow, Outcome, Run};

/// Returns the five views. T1 is Otter; the others skip the planner, and see both localizations, only tests,
/// only focal code, or neither.
pub(super) fn views() -> [Options; 5] {
    [
        Options::default(),
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
    let mut failing: Vec<FailingDraft> = Vec::new();
    for draft in drafts(run, &views()).await? {
        if let Some((kind, _)) = draft.failure(run).await? {
            failing.push(FailingDraft {
                draft,
                is_other: false,
                kind,
            });
        }
    }
    submit_best(run, &failing).await
}

/// A draft that fails on the old code.
pub(super) struct FailingDraft {
    pub draft: Draft,
    /// Whether it fails for another reason than the one in the issue.
    pub is_other: bool,
    pub kind: FailureKind,
}

/// Submits the best draft: those that fail because of the issue come first; among these, the first of the best kind.
pub(super) async fn submit_best(run: &mut Run, failing: &[FailingDraft]) -> Flow<Outcome> {
    let ranks: Vec<_> = (failing.iter()).map(|f| (f.is_other, f.kind)).collect();
    let Some(chosen) = best(&ranks) else {
        return Ok(Outcome::nothing("no draft fails on the old code"));
    };
    let FailingDraft { draft, kind, .. } = &failing[chosen];
    let of = failing.len();
    run.stage(
        "choose",
        format!("draft {} of {of} that fail: {kind}", chosen + 1),
    )?;
    draft.hand_in(run).await
}

/// Returns the index of the first draft of the best rank.
fn best<R: Ord>(ranks: &[R]) -> Option<usize> {
    (0..ranks.len()).min_by_key(|at| &ranks[*at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assertion_precedes_error() {
        use FailureKind::{Assertion, Error, Other};
        assert_eq!(best(&[Error, Other, Assertion, Assertion]), Some(2));
        assert_eq!(best(&[Error, Other, Other]), Some(1));
        assert_eq!(best::<FailureKind>(&[]), None);
    }
}
