//! AssertFlip (arXiv 2507.17542): first a test that passes on the old code and pins the wrong behaviour, then its
//! assertions turned round; a validator reads the failure against the issue, and its reasons lead to another attempt.

use async_trait::async_trait;
use testwright_agent_prompts::{
    AssertFlipFlip, AssertFlipRefine, AssertFlipRegenerate, AssertFlipSystem, AssertFlipValidate,
    Prompt, ZeroShotPlusSystem, ZeroShotTask,
};
use testwright_sandboxes::repository::Tree;

use super::given::{GIVEN_FILES, GIVEN_PATCH, GIVEN_TESTS, OTHER_PATCH};
use super::stages::{Draft, judge, retrieve, system_and_user, write};
use super::{Approach, ApproachContext, ApproachOption, Workflow};
use crate::agent::{Flow, Outcome, Run, prompt};
use crate::formats::function_blocks;
use testwright_models::Message;

/// Times that a test is written again until it passes, and attempts after the first.
const REFINEMENTS: usize = 10;
const REGENERATIONS: usize = 10;

const INVERSION: ApproachOption = ApproachOption {
    name: "inversion",
    description: "first a test that passes; off: the failing test at once",
    default: true,
};
const VALIDATOR: ApproachOption = ApproachOption {
    name: "validator",
    description: "a call reads the failure against the issue",
    default: true,
};
const REGENERATION: ApproachOption = ApproachOption {
    name: "regeneration",
    description: "another attempt where one leads to nothing",
    default: true,
};

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

    fn options(&self) -> &'static [ApproachOption] {
        &[
            INVERSION,
            VALIDATOR,
            REGENERATION,
            GIVEN_TESTS,
            GIVEN_PATCH,
            GIVEN_FILES,
            OTHER_PATCH,
        ]
    }

    async fn run(&self, run: &mut Run, context: &ApproachContext) -> Outcome {
        let outcome = attempts(run, context).await;
        outcome.unwrap_or_else(|outcome| outcome)
    }
}

async fn attempts(run: &mut Run, context: &ApproachContext) -> Flow<Outcome> {
    let options = &context.options;
    let tree = run.tree()?;
    let task = retrieve(run, &tree, context, true)?;
    let inverts = options.is_on(&INVERSION);
    let first = match inverts {
        true => system_and_user(&AssertFlipSystem {}, &task)?,
        false => system_and_user(&ZeroShotPlusSystem {}, &task)?,
    };
    let mut messages = first.clone();
    // A test that fails, though the validator is not content with it.
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

fn user(text: &(impl Prompt + Sync)) -> Flow<Message> {
    let content = prompt(text.render())?;
    Ok(Message::User { content })
}

/// A test that passes on the old code, written again until it does.
async fn passing(
    run: &mut Run,
    tree: &Tree,
    messages: Vec<Message>,
) -> Flow<Result<Draft, Unusable>> {
    let mut asked = messages.clone();
    let mut unusable = Unusable::default();
    for _ in 0..=REFINEMENTS {
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
        asked = messages.clone();
        asked.push(user(&again)?);
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

/// A test that does not pass or fail on the old code as it should, or is none.
#[derive(Default)]
struct Unusable {
    reply: String,
    reasons: String,
}

/// A test, and how it fails on the old code.
type Failing = (Draft, String);

/// A passing test with its assertions turned round.
async fn flip(run: &mut Run, tree: &Tree, passing: Draft) -> Flow<Result<Failing, Unusable>> {
    let question = AssertFlipFlip {
        issue: run.issue.folded_text(),
        reply: passing.reply.trim().to_owned(),
    };
    let messages = vec![user(&question)?];
    let unusable = |reasons: String| Unusable {
        reply: passing.reply.clone(),
        reasons,
    };
    let draft = match write(run, tree, messages, Some(0.0), function_blocks::read).await? {
        Ok(draft) => draft,
        Err(why) => {
            let reasons = format!("Its assertions could not be turned round: {}.", why.error);
            return Ok(Err(unusable(reasons)));
        }
    };
    run.put_files(&draft.proposed.files).await?;
    let ran = run.run_changed_tests().await?;
    if ran.kind.is_none() {
        run.stage("flip", "passes with its assertions turned round")?;
        return Ok(Err(unusable(
            "With its assertions turned round it passes on the code as it is: they did not pin what the issue describes."
                .to_owned(),
        )));
    }
    run.stage("flip", "fails with its assertions turned round")?;
    Ok(Ok((draft, ran.text)))
}

/// A test that is to fail at once.
async fn failing(
    run: &mut Run,
    tree: &Tree,
    messages: Vec<Message>,
) -> Flow<Result<Failing, Unusable>> {
    let draft = match write(run, tree, messages, Some(0.0), function_blocks::read).await? {
        Ok(draft) => draft,
        Err(why) => {
            let reasons = format!("It cannot be put into the repository: {}.", why.error);
            let reply = why.reply;
            return Ok(Err(Unusable { reply, reasons }));
        }
    };
    run.put_files(&draft.proposed.files).await?;
    let ran = run.run_changed_tests().await?;
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

/// Why the validator is not content with how a test fails.
async fn doubts(run: &mut Run, draft: &Draft, failure: String) -> Flow<Option<String>> {
    let question = AssertFlipValidate {
        issue: run.issue.folded_text(),
        reply: draft.reply.trim().to_owned(),
        failure,
    };
    let judgement = judge(run, &question).await?;
    Ok((!judgement.is_yes).then(|| judgement.text.trim().to_owned()))
}
