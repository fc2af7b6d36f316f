//! e-Otter++ (arXiv 2508.06365): Otter++ with several forms of the issue, partly masked contexts, and
//! feedback from running the drafts. Each failure is compared with the issue. Among the drafts that fail
//! because of the issue, the first of the best class is submitted.

use testwright_agent_prompts::{EOtterRewrite, LibroJudge, Prompt};

use super::otter::{OtterConfig, PROMPTS, drafts};
use super::stages::{Draft, ask, judge};
use super::{Approach, ApproachContext, ApproachOption, Workflow};
use crate::agent::{FailureKind, Flow, Outcome, Run};

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
    let views = match context.options.is_on(&MASKS) {
        true => vec![
            view(true, true),
            view(true, false),
            view(false, true),
            view(false, false),
        ],
        false => vec![view(true, true)],
    };
    let mut all = drafts(run, &views).await?;
    if context.options.is_on(&REWRITE) {
        let rewritten = rewrite(run).await?;
        let issue = std::mem::replace(&mut run.issue.body, rewritten);
        let more = drafts(run, &[view(true, true), view(false, false)]).await;
        run.issue.body = issue;
        all.extend(more?);
    }
    let mut failing: Vec<FailingDraft> = Vec::new();
    for draft in all {
        run.write_files(&draft.proposed.files).await?;
        let ran = run.run_changed_tests().await?;
        let Some(kind) = ran.kind else {
            run.stage("run", "passes on the old code: dropped")?;
            continue;
        };
        run.stage("run", format!("fails on the old code: {kind}"))?;
        let question = LibroJudge {
            issue: run.issue.folded_text(),
            test: draft.reply.trim().to_owned(),
            failure: ran.text,
        };
        let is_of_issue = match context.options.is_on(&JUDGE) {
            true => judge(run, &question).await?.is_yes,
            false => true,
        };
        failing.push(FailingDraft {
            draft,
            kind,
            is_of_issue,
        });
    }
    let Some(chosen) = best(&failing) else {
        return Ok(Outcome::nothing("no draft fails on the old code"));
    };
    let of = failing.len();
    let kind = failing[chosen].kind;
    run.stage(
        "choose",
        format!("draft {} of {of} that fail: {kind}", chosen + 1),
    )?;
    failing[chosen].draft.hand_in(run).await
}

const ALL_PROMPTS: &[&str] = &[
    EOtterRewrite::NAME,
    PROMPTS[0],
    PROMPTS[1],
    PROMPTS[4],
    LibroJudge::NAME,
];

/// Returns the parts of the localized code that a draft sees.
fn view(tests: bool, focal: bool) -> OtterConfig {
    OtterConfig {
        planner: false,
        tests,
        focal,
        ..OtterConfig::default()
    }
}

struct FailingDraft {
    draft: Draft,
    kind: FailureKind,
    is_of_issue: bool,
}

/// Returns the best draft: those that fail because of the issue come first; among these, the first of the
/// best class.
fn best(failing: &[FailingDraft]) -> Option<usize> {
    (0..failing.len()).min_by_key(|at| (!failing[*at].is_of_issue, failing[*at].kind))
}

async fn rewrite(run: &mut Run) -> Flow<String> {
    let question = EOtterRewrite {
        repository: run.source.name.clone(),
        issue: run.issue.folded_text(),
    };
    let text = ask(run, &question).await?.trim().to_owned();
    run.stage("rewrite", text.lines().next().unwrap_or_default())?;
    Ok(text)
}
