//! AutoCodeRover (arXiv 2404.05427) as SWT-bench ported it (§4.1): first a conversation in which the model may only search
//! the code, then one answer with tests as pieces of files before and after.

mod search;

use async_trait::async_trait;
use testwright_agent_prompts::{
    AutoCodeRoverAgain, AutoCodeRoverMore, AutoCodeRoverSystem, AutoCodeRoverTask,
    AutoCodeRoverWrite, Prompt,
};

use super::stages::{system_and_user, write};
use super::{Approach, ApproachContext, Workflow};
use crate::agent::{Outcome, Run, prompt};
use crate::formats::snippets;
use crate::model::Message;

use search::CodeSearch;

/// Rounds of searches.
const ROUNDS: usize = 10;
/// Answers, where one cannot be applied.
const ANSWERS: usize = 3;

pub(super) struct AutoCodeRover;

#[async_trait]
impl Approach for AutoCodeRover {
    fn name(&self) -> &'static str {
        "auto-code-rover"
    }

    fn description(&self) -> &'static str {
        "searches the code in up to ten rounds, then writes the test in one answer"
    }

    fn workflow(&self) -> Workflow {
        Workflow::Pipeline {
            stages: &["search", "write"],
            model_calls: "2 to 13",
            prompts: &[
                AutoCodeRoverSystem::NAME,
                AutoCodeRoverTask::NAME,
                AutoCodeRoverMore::NAME,
                AutoCodeRoverWrite::NAME,
                AutoCodeRoverAgain::NAME,
            ],
        }
    }

    async fn run(&self, run: &mut Run, _: &ApproachContext) -> Outcome {
        let outcome = stages(run).await;
        outcome.unwrap_or_else(|outcome| outcome)
    }
}

fn user(text: &(impl Prompt + Sync)) -> Result<Message, Outcome> {
    let content = prompt(text.render())?;
    Ok(Message::User { content })
}

fn assistant(content: String) -> Message {
    Message::Assistant {
        content,
        calls: Vec::new(),
    }
}

async fn stages(run: &mut Run) -> Result<Outcome, Outcome> {
    let tree = run.tree()?;
    let code = CodeSearch::of(&tree)?;
    let task = AutoCodeRoverTask {
        repository: run.source.name.clone(),
        issue: run.issue.folded_text(),
    };
    let mut messages = system_and_user(&AutoCodeRoverSystem {}, &task)?;
    for round in 1..=ROUNDS {
        let reply = run.prompt_reply(messages.clone(), Some(0.0)).await?.content;
        let calls = search::calls(&reply);
        messages.push(assistant(reply));
        let named: Vec<String> = calls.iter().map(ToString::to_string).collect();
        run.stage(
            "search",
            match named.is_empty() {
                true => "enough".to_owned(),
                false => named.join(", "),
            },
        )?;
        if calls.is_empty() {
            break;
        }
        let results: Vec<String> = calls.iter().map(|call| code.answer(call)).collect();
        messages.push(user(&AutoCodeRoverMore {
            results,
            left: ROUNDS - round,
        })?);
    }
    match messages.last_mut() {
        // Two messages of a user may not follow each other.
        Some(Message::User { content }) => {
            let write = prompt(AutoCodeRoverWrite {}.render())?;
            content.push_str(&format!("\n\n{write}"));
        }
        _ => messages.push(user(&AutoCodeRoverWrite {})?),
    }
    let mut why = String::new();
    for _ in 0..ANSWERS {
        match write(run, &tree, messages.clone(), Some(0.0), snippets::read).await? {
            Ok(draft) => return draft.hand_in(run).await,
            Err(unusable) => {
                why = unusable.error.0;
                messages.push(assistant(unusable.reply));
                let problem = why.clone();
                messages.push(user(&AutoCodeRoverAgain { problem })?);
            }
        }
    }
    Ok(Outcome::Nothing {
        reason: format!("none of {ANSWERS} answers can be applied: {why}"),
    })
}
