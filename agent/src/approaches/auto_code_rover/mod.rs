//! AutoCodeRover (arXiv 2404.05427) as ported by SWT-bench (§4.1). In a first conversation, the model may
//! only search the code. Then one answer gives tests as parts of files before and after.

mod search;

use testwright_agent_prompts::{
    AutoCodeRoverAgain, AutoCodeRoverMore, AutoCodeRoverSystem, AutoCodeRoverTask,
    AutoCodeRoverWrite, Prompt,
};

use super::stages::{system_and_user, user_message, write};
use super::{Approach, ApproachContext, Workflow};
use crate::agent::{Flow, Outcome, Run};
use crate::formats::snippets;
use crate::retrieval::tokens;
use testwright_models::Message;

use search::CodeSearch;

/// Maximum number of search rounds.
const ROUNDS: usize = 10;
/// Number of full rounds that would use up all tokens for code.
const SHARES: usize = 4;
/// Maximum number of answers, if one cannot be applied.
const ANSWERS: usize = 3;

pub(super) static APPROACH: Approach = Approach::new(
    "auto-code-rover",
    "searches the code in up to ten rounds, then writes the test in one answer",
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
    },
    |run, context| Box::pin(execute(run, context)),
);

async fn execute(run: &mut Run, context: &ApproachContext) -> Flow<Outcome> {
    let tree = run.tree()?;
    let code = CodeSearch::from_tree(&tree)?;
    let task = AutoCodeRoverTask {
        repository: run.source.name.clone(),
        issue: run.issue.folded_text(),
    };
    let mut messages = system_and_user(&AutoCodeRoverSystem {}, &task)?;
    let mut budget = CodeBudget::new(context.code_tokens());
    for round in 1..=ROUNDS {
        let reply = run.prompt_reply(messages.clone(), 0.0).await?.content;
        let calls = search::calls(&reply);
        messages.push(assistant(reply));
        let call_texts: Vec<String> = calls.iter().map(ToString::to_string).collect();
        run.stage(
            "search",
            match call_texts.is_empty() {
                true => "enough".to_owned(),
                false => call_texts.join(", "),
            },
        )?;
        if calls.is_empty() {
            break;
        }
        let (allowed_calls, excess_calls) = calls.split_at(calls.len().min(search::MAX_CALLS));
        let mut results = budget.round(
            allowed_calls
                .iter()
                .map(|call| (call.to_string(), code.answer(call))),
        );
        results.extend(excess_calls.iter().map(|call| {
            let most = search::MAX_CALLS;
            format!("{call}: not run, because a message may have {most} calls; repeat it if you still need it")
        }));
        let remaining_rounds = match budget.is_spent() {
            true => 0,
            false => ROUNDS - round,
        };
        messages.push(user_message(&AutoCodeRoverMore {
            results,
            left: remaining_rounds,
        })?);
        if remaining_rounds == 0 {
            break;
        }
    }
    match messages.last_mut() {
        // Two consecutive user messages are not allowed.
        Some(Message::User { content }) => {
            let write = AutoCodeRoverWrite {}.render()?;
            content.push_str(&format!("\n\n{write}"));
        }
        _ => messages.push(user_message(&AutoCodeRoverWrite {})?),
    }
    let mut why = String::new();
    for _ in 0..ANSWERS {
        match write(run, &tree, messages.clone(), 0.0, snippets::read).await? {
            Ok(draft) => return draft.hand_in(run).await,
            Err(unusable) => {
                why = unusable.error.0;
                messages.push(assistant(unusable.reply));
                let problem = why.clone();
                messages.push(user_message(&AutoCodeRoverAgain { problem })?);
            }
        }
    }
    Ok(Outcome::nothing(format!(
        "could not apply any of {ANSWERS} answers: {why}"
    )))
}

/// Tokens of code that searches may still show.
struct CodeBudget {
    left: usize,
    /// Tokens in one round.
    round: usize,
}

impl CodeBudget {
    fn new(code_tokens: usize) -> CodeBudget {
        CodeBudget {
            left: code_tokens,
            round: code_tokens / SHARES,
        }
    }

    /// Returns the results of a round's searches, each with its call, up to the remaining tokens.
    fn round(&mut self, results: impl Iterator<Item = (String, String)>) -> Vec<String> {
        let mut room = self.round.min(self.left);
        let cut_results = results.map(|(call, result)| {
            let begin = tokens::first(&result, room);
            let token_count = tokens::count(begin);
            room -= token_count.min(room);
            self.left -= token_count.min(self.left);
            match begin.len() == result.len() {
                true => result,
                false => {
                    let excerpt = if begin.is_empty() {
                        call.as_str()
                    } else {
                        begin
                    };
                    format!(
                        "{}\n… (cut: no more fits; search for less)",
                        excerpt.trim_end()
                    )
                }
            }
        });
        cut_results.collect()
    }

    /// Returns whether too little is left for a piece of code.
    fn is_spent(&self) -> bool {
        self.left < self.round / SHARES
    }
}

fn assistant(content: String) -> Message {
    Message::Assistant {
        content,
        calls: Vec::new(),
        extra: Default::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_stay_within_budget() {
        let result = |name: &str| {
            let text = format!("{name}: 1 found\n{}", "x = 1\n".repeat(100));
            (name.to_owned(), text)
        };
        let mut budget = CodeBudget::new(400);
        let mut all = 0;
        for _ in 0..ROUNDS {
            let results = budget.round(["a(b)", "c(d)"].map(result).into_iter());
            let token_count: usize = results.iter().map(|result| tokens::count(result)).sum();
            // The limit excludes the notes about truncation.
            assert!(token_count <= 100 + 40, "{results:?}");
            assert!(results[1].starts_with("c(d)\n… (cut"), "{results:?}");
            all += token_count;
        }
        assert!(all <= 400 + ROUNDS * 40 && budget.is_spent(), "{all}");
        let mut wide = CodeBudget::new(100_000);
        assert_eq!(wide.round([result("a(b)")].into_iter()), [result("a(b)").1]);
        assert!(!wide.is_spent());
    }
}
