//! AssertFlip (arXiv 2507.17542): first a test that passes on the old code and pins the wrong behaviour, then its
//! assertions turned round; a validator reads the failure against the issue, and its reasons lead to another attempt.

use async_trait::async_trait;
use testwright_agent_prompts::{
    AssertFlipFlip, AssertFlipRefine, AssertFlipRegenerate, AssertFlipSystem, AssertFlipValidate,
    Prompt, ZeroShotTask,
};
use testwright_sandboxes::repository::Tree;

use super::stages::{CODE_TOKENS, Draft, judge, retrieve, system_and_user, write};
use super::{Approach, ApproachContext, Workflow};
use crate::agent::{Outcome, Run, prompt};
use crate::formats::function_blocks;
use crate::model::Message;

/// Attempts to make a test pass, and attempts in all.
const REFINEMENTS: usize = 10;
const ATTEMPTS: usize = 10;

pub(super) struct AssertFlip;

#[async_trait]
impl Approach for AssertFlip {
    fn name(&self) -> &'static str {
        "assert-flip"
    }

    fn description(&self) -> &'static str {
        "first a test that passes, then its assertions turned round; a validator"
    }

    fn workflow(&self) -> Workflow {
        Workflow::Pipeline {
            stages: &["retrieve", "write", "run", "flip", "judge", "repair"],
            model_calls: "3 an attempt, and one for each time that a test has to be written again",
            prompts: &[
                AssertFlipSystem::NAME,
                ZeroShotTask::NAME,
                AssertFlipRefine::NAME,
                AssertFlipFlip::NAME,
                AssertFlipValidate::NAME,
                AssertFlipRegenerate::NAME,
            ],
        }
    }

    async fn run(&self, run: &mut Run, _: &ApproachContext) -> Outcome {
        let outcome = attempts(run).await;
        outcome.unwrap_or_else(|outcome| outcome)
    }
}

async fn attempts(run: &mut Run) -> Result<Outcome, Outcome> {
    let tree = run.tree()?;
    let task = retrieve(run, &tree, CODE_TOKENS)?;
    let first = system_and_user(&AssertFlipSystem {}, &task)?;
    let mut messages = first.clone();
    // A test that fails, though the validator is not content with it.
    let mut fallback: Option<Draft> = None;
    for _ in 0..ATTEMPTS {
        let Some(passing) = passing(run, &tree, messages).await? else {
            break;
        };
        let (reply, reasons) = match flip(run, &tree, &passing).await? {
            Flipped::Valid(draft) => return draft.hand_in(run).await,
            Flipped::Doubtful(draft, reasons) => {
                let reply = draft.reply.clone();
                fallback = Some(draft);
                (reply, reasons)
            }
            Flipped::Unusable(reasons) => (passing.reply, reasons),
        };
        let again = AssertFlipRegenerate {
            reply: reply.trim().to_owned(),
            reasons,
        };
        messages = first.clone();
        messages.push(user(&again)?);
    }
    match fallback {
        Some(draft) => draft.hand_in(run).await,
        None => Ok(Outcome::Nothing {
            reason: "no test came about that passes on the old code and fails once its assertions are turned round"
                .to_owned(),
        }),
    }
}

fn user(text: &(impl Prompt + Sync)) -> Result<Message, Outcome> {
    let content = prompt(text.render())?;
    Ok(Message::User { content })
}

/// A test that passes on the old code, written again until it does.
async fn passing(
    run: &mut Run,
    tree: &Tree,
    messages: Vec<Message>,
) -> Result<Option<Draft>, Outcome> {
    let mut asked = messages.clone();
    for _ in 0..REFINEMENTS {
        let written = write(run, tree, asked, Some(0.0), function_blocks::read).await?;
        let again = match written {
            Err(why) => AssertFlipRefine {
                reply: why.reply.trim().to_owned(),
                problem: why.error.0,
                failure: String::new(),
            },
            Ok(draft) => {
                run.put_files(&draft.proposed.files).await?;
                let ran = run.run_changed_tests().await?;
                if ran.pass {
                    run.stage("run", "passes on the old code")?;
                    return Ok(Some(draft));
                }
                run.stage("run", "does not pass on the old code")?;
                AssertFlipRefine {
                    reply: draft.reply.trim().to_owned(),
                    problem: String::new(),
                    failure: ran.text,
                }
            }
        };
        asked = messages.clone();
        asked.push(user(&again)?);
    }
    Ok(None)
}

/// What became of a test whose assertions were turned round.
enum Flipped {
    Valid(Draft),
    /// It fails; why the validator is not content.
    Doubtful(Draft, String),
    /// Why there is none that fails.
    Unusable(String),
}

async fn flip(run: &mut Run, tree: &Tree, passing: &Draft) -> Result<Flipped, Outcome> {
    let issue = run.issue.folded_text();
    let question = AssertFlipFlip {
        issue: issue.clone(),
        reply: passing.reply.trim().to_owned(),
    };
    let messages = vec![user(&question)?];
    let draft = match write(run, tree, messages, Some(0.0), function_blocks::read).await? {
        Ok(draft) => draft,
        Err(why) => {
            return Ok(Flipped::Unusable(format!(
                "Its assertions could not be turned round: {}.",
                why.error
            )));
        }
    };
    run.put_files(&draft.proposed.files).await?;
    let ran = run.run_changed_tests().await?;
    if ran.kind.is_none() {
        run.stage("flip", "passes with its assertions turned round")?;
        return Ok(Flipped::Unusable(
            "With its assertions turned round it passes on the code as it is: they did not pin what the issue describes."
                .to_owned(),
        ));
    }
    run.stage("flip", "fails with its assertions turned round")?;
    let question = AssertFlipValidate {
        issue,
        reply: draft.reply.trim().to_owned(),
        failure: ran.text,
    };
    let judgement = judge(run, &question).await?;
    Ok(match judgement.is_yes {
        true => Flipped::Valid(draft),
        false => Flipped::Doubtful(draft, judgement.text.trim().to_owned()),
    })
}
