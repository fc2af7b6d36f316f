//! The code shown with a problem: which files, in which order, and how much of them fits into the budget.

use std::collections::BTreeMap;

use super::problem::{Budget, Problem, sha256};
use crate::cases::context::{ContextClass, Tokenizer, fill};

/// Maximum tokens around the text of a shown file, without its name.
const FRAME_TOKENS: usize = 6;
/// Longest note on a cut file.
const CUT: &str = ", the first 100000 lines";

/// Access to the prompts, to compute their length, and to the tokenizer of prompts and answers.
pub trait Prompts: Tokenizer + Send {
    /// Counts the tokens of a problem's prompt without its context.
    fn instructions(&self, problem: &Problem) -> usize;
}

/// Builds the context of a problem: whole files while they fit, then the first lines of the next one. Returns `None` if
/// the budget allows no context. `text` returns the text of a repository file.
pub fn context<'t>(
    problem: &Problem,
    budget: Budget,
    prompts: &dyn Prompts,
    text: &dyn Fn(&str) -> Option<&'t str>,
) -> Option<String> {
    let room = budget.tokens()?;
    let files = problem.context.iter();
    let order: Vec<(String, Option<ContextClass>)> =
        files.map(|file| (file.path.clone(), file.class)).collect();
    let cut = prompts.count(CUT);
    let reserved_tokens = problem.task.max_answer_tokens() + prompts.instructions(problem) + cut;
    let room = room.saturating_sub(reserved_tokens);
    let mut read = |path: &str| text(path).map(str::to_owned);
    let files = fill(&order, room, FRAME_TOKENS, prompts, &mut read);
    let sections = files.into_iter();
    let sections = sections.map(|file| {
        let cut = match file.is_whole {
            true => String::new(),
            false => format!(", the first {} lines", file.text.lines().count()),
        };
        format!("### {}{cut}\n{}\n\n", file.path, file.text.trim_end())
    });
    Some(sections.collect())
}

/// Returns the hash of the context for each budget.
pub fn hashes<'t>(
    problem: &Problem,
    prompts: &dyn Prompts,
    text: &dyn Fn(&str) -> Option<&'t str>,
) -> BTreeMap<Budget, String> {
    let budgets = problem.budgets.iter();
    let hash = |budget: &Budget| {
        let context_text = context(problem, *budget, prompts, text)?;
        Some((*budget, sha256(&context_text)))
    };
    budgets.filter_map(hash).collect()
}

#[cfg(test)]
pub(super) mod tests;
