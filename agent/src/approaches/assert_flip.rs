//! AssertFlip (arXiv 2507.17542): writes a passing test that pins the wrong behaviour, then inverts its
//! assertions. A validator compares the failure with the issue, and its reasons lead to another attempt.

use testwright_agent_prompts::{
    AssertFlipFlip, AssertFlipRefine, AssertFlipRegenerate, AssertFlipSystem, AssertFlipValidate,
    Prompt, ZeroShotPlusSystem, ZeroShotTask,
};
use testwright_sandboxes::repository::Tree;

use super::extra_inputs::{GIVEN_FILES, GIVEN_PATCH, GIVEN_TESTS, OTHER_PATCH};
use super::stages::{Draft, judge, retrieve, system_and_user, user_message, write};
use super::{Approach, ApproachContext, ApproachOption, Workflow};
use crate::agent::{Flow, Outcome, Run};
use crate::formats::function_blocks;
use testwright_models::Message;

/// Maximum number of rewrites of a test until it passes.
const REFINEMENTS: usize = 10;
const REGENERATIONS: usize = 10;

const INVERSION: ApproachOption = ApproachOption::on_by_default(
    "inversion",
    "writes a passing test first; off: writes the failing test at once",
);
const VALIDATOR: ApproachOption =
    ApproachOption::on_by_default("validator", "a call compares the failure with the issue");
const REGENERATION: ApproachOption = ApproachOption::on_by_default(
    "regeneration",
    "makes another attempt if one leads to nothing",
);

pub(super) static APPROACH: Approach = Approach {
    options: &[
        INVERSION,
        VALIDATOR,
        REGENERATION,
        GIVEN_TESTS,
        GIVEN_PATCH,
        GIVEN_FILES,
        OTHER_PATCH,
    ],
    ..Approach::new(
        "assert-flip",
        "writes a passing test, inverts its assertions, then validates the failure",
        Workflow::Pipeline {
            stages: &["retrieve", "write", "run", "flip", "judge", "repair"],
            model_calls: "3 per attempt, and 1 per rewrite of a test",
            prompts: &[
                AssertFlipSystem::NAME,
                ZeroShotTask::NAME,
                AssertFlipRefine::NAME,
                AssertFlipFlip::NAME,
                AssertFlipValidate::NAME,
                AssertFlipRegenerate::NAME,
            ],
        },
        |run, context| Box::pin(execute(run, context)),
    )
};

async fn execute(run: &mut Run, context: &ApproachContext) -> Flow<Outcome> {
    let options = &context.options;
    let tree = run.tree()?;
    let task = retrieve(run, &tree, context, true)?;
    let inverts = options.is_on(&INVERSION);
    let first = match inverts {
        true => system_and_user(&AssertFlipSystem {}, &task)?,
        false => system_and_user(&ZeroShotPlusSystem {}, &task)?,
    };
    let mut messages = first.clone();
    // A failing test that the validator rejected.
    let mut fallback: Option<Draft> = None;
    let regenerations = match options.is_on(&REGENERATION) {
        true => REGENERATIONS,
        false => 0,
    };
    for _ in 0..=regenerations {
        let written = if inverts {
            match passing(run, &tree, messages).await? {
                Ok(passing) => flip(run, &tree, passing).await?,
                Err(unusable) => Err(unusable),
            }
        } else {
            failing(run, &tree, messages).await?
        };
        let (reply, reasons) = match written {
            Err(Unusable { reply, reasons }) => (reply, reasons),
            Ok((draft, _)) if !options.is_on(&VALIDATOR) => return draft.hand_in(run).await,
            Ok((draft, failure)) => match doubts(run, &draft, failure).await? {
                None => return draft.hand_in(run).await,
                Some(doubts) => {
                    let reply = draft.reply.clone();
                    fallback = Some(draft);
                    (reply, doubts)
                }
            },
        };
        let again = AssertFlipRegenerate {
            reply: reply.trim().to_owned(),
            reasons,
            passes_first: inverts,
        };
        messages = first.clone();
        messages.push(user_message(&again)?);
    }
    match fallback {
        Some(draft) => draft.hand_in(run).await,
        None => Ok(Outcome::nothing(
            "no test passes on the old code and fails with inverted assertions",
        )),
    }
}

/// Writes a test that passes on the old code, and rewrites it until it does.
async fn passing(
    run: &mut Run,
    tree: &Tree,
    messages: Vec<Message>,
) -> Flow<Result<Draft, Unusable>> {
    let mut conversation = messages.clone();
    let mut unusable = Unusable::default();
    for _ in 0..=REFINEMENTS {
        let written = write(run, tree, conversation, 0.0, function_blocks::read).await?;
        let again = match written {
            Err(why) => AssertFlipRefine {
                reply: why.reply.trim().to_owned(),
                problem: why.error.0,
                failure: String::new(),
            },
            Ok(draft) => {
                let ran = draft.run_on_old_code(run).await?;
                if ran.pass {
                    run.stage("run", "passes on the old code")?;
                    return Ok(Ok(draft));
                }
                run.stage("run", "does not pass on the old code")?;
                AssertFlipRefine {
                    reply: draft.reply.trim().to_owned(),
                    problem: String::new(),
                    failure: ran.text,
                }
            }
        };
        conversation = messages.clone();
        conversation.push(user_message(&again)?);
        unusable = Unusable {
            reasons: match again.problem.as_str() {
                "" => format!(
                    "It does not pass on the code as it is:\n\n{}",
                    again.failure
                ),
                problem => format!("It cannot be used: {problem}."),
            },
            reply: again.reply,
        };
    }
    Ok(Err(unusable))
}

/// A test with the wrong result on the old code, or a reply that is not a test.
#[derive(Default)]
struct Unusable {
    reply: String,
    reasons: String,
}

/// A test and its failure on the old code.
type Failing = (Draft, String);

/// Inverts the assertions of a passing test.
async fn flip(run: &mut Run, tree: &Tree, passing: Draft) -> Flow<Result<Failing, Unusable>> {
    let question = AssertFlipFlip {
        issue: run.issue.folded_text(),
        reply: passing.reply.trim().to_owned(),
    };
    let messages = vec![user_message(&question)?];
    let unusable = |reasons: String| Unusable {
        reply: passing.reply.clone(),
        reasons,
    };
    let draft = match write(run, tree, messages, 0.0, function_blocks::read).await? {
        Ok(draft) => draft,
        Err(why) => {
            let reasons = format!("Its assertions could not be inverted: {}.", why.error);
            return Ok(Err(unusable(reasons)));
        }
    };
    let ran = draft.run_on_old_code(run).await?;
    if ran.kind.is_none() {
        run.stage("flip", "passes with inverted assertions")?;
        return Ok(Err(unusable(
            "With inverted assertions it passes on the code as it is: they did not pin what the issue describes."
                .to_owned(),
        )));
    }
    run.stage("flip", "fails with inverted assertions")?;
    Ok(Ok((draft, ran.text)))
}

/// Writes a test that should fail at once.
async fn failing(
    run: &mut Run,
    tree: &Tree,
    messages: Vec<Message>,
) -> Flow<Result<Failing, Unusable>> {
    let draft = match write(run, tree, messages, 0.0, function_blocks::read).await? {
        Ok(draft) => draft,
        Err(why) => {
            let reasons = format!("It cannot be put into the repository: {}.", why.error);
            let reply = why.reply;
            return Ok(Err(Unusable { reply, reasons }));
        }
    };
    let ran = draft.run_on_old_code(run).await?;
    if ran.kind.is_none() {
        run.stage("run", "does not fail on the old code")?;
        return Ok(Err(Unusable {
            reply: draft.reply,
            reasons: "It does not fail on the code as it is.".to_owned(),
        }));
    }
    run.stage("run", "fails on the old code")?;
    Ok(Ok((draft, ran.text)))
}

/// Returns the validator's reasons to reject a test's failure.
async fn doubts(run: &mut Run, draft: &Draft, failure: String) -> Flow<Option<String>> {
    let question = AssertFlipValidate {
        issue: run.issue.folded_text(),
        reply: draft.reply.trim().to_owned(),
        failure,
    };
    let judgement = judge(run, &question).await?;
    Ok((!judgement.is_yes).then(|| judgement.text.trim().to_owned()))
}
