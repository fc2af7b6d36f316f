//! e-Otter++ (arXiv 2508.06365): Otter++ with several forms of the issue, partly masked contexts, and
//! feedback from running the drafts. Each failure is compared with the issue. Among the drafts that fail
//! because of the issue, the first of the best class is submitted.

use testwright_agent_prompts::{EOtterRewrite, LibroJudge, Prompt};

use super::libro::fails_for_issue;
use super::otter::{PROMPTS, drafts, view};
use super::otter_plus_plus::{FailingDraft, submit_best, views};
use super::stages::ask;
use super::{Approach, ApproachContext, ApproachOption, Workflow};
use crate::agent::{Flow, Outcome, Run};

const REWRITE: ApproachOption =
    ApproachOption::on_by_default("rewrite", "also drafts from a rewritten issue");
const MASKS: ApproachOption =
    ApproachOption::on_by_default("masks", "also drafts with parts of the context masked");
const JUDGE: ApproachOption =
    ApproachOption::on_by_default("judge", "a call compares each failure with the issue");

pub(super) static APPROACH: Approach = Approach {
    options: &[REWRITE, MASKS, JUDGE],
    ..Approach::new(
        "e-otter-plus-plus",
        "otter-plus-plus with more drafts, from a rewritten issue and from partly masked context; a judge compares each failure with the issue",
        Workflow::Pipeline {
            stages: &[
                "rewrite", "localize", "write", "repair", "run", "judge", "choose",
            ],
            model_calls: "15 to 21",
            prompts: ALL_PROMPTS,
        },
        |run, context| Box::pin(execute(run, context)),
    )
};

async fn execute(run: &mut Run, context: &ApproachContext) -> Flow<Outcome> {
    // The first view is that of Otter, with a plan.
    let views = views();
    let views = match context.options.is_on(&MASKS) {
        true => &views[1..],
        false => &views[1..2],
    };
    let mut all = drafts(run, views).await?;
    if context.options.is_on(&REWRITE) {
        let rewritten = rewrite(run).await?;
        let issue = std::mem::replace(&mut run.issue.body, rewritten);
        let more = drafts(run, &[view(true, true), view(false, false)]).await;
        run.issue.body = issue;
        all.extend(more?);
    }
    let mut failing: Vec<FailingDraft> = Vec::new();
    for draft in all {
        let Some((kind, failure)) = draft.failure(run).await? else {
            continue;
        };
        run.stage("run", format!("fails on the old code: {kind}"))?;
        let is_other =
            context.options.is_on(&JUDGE) && !fails_for_issue(run, &draft, failure).await?;
        failing.push(FailingDraft {
            draft,
            is_other,
            kind,
        });
    }
    submit_best(run, &failing).await
}

const ALL_PROMPTS: &[&str] = &[
    EOtterRewrite::NAME,
    PROMPTS[0],
    PROMPTS[1],
    PROMPTS[4],
    LibroJudge::NAME,
];

async fn rewrite(run: &mut Run) -> Flow<String> {
    let question = EOtterRewrite {
        repository: run.source.name.clone(),
        issue: run.issue.folded_text(),
    };
    let text = ask(run, &question).await?.trim().to_owned();
    run.stage("rewrite", text.lines().next().unwrap_or_default())?;
    Ok(text)
}
