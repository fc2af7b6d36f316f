//! Prompts of the three tasks, and their lengths.

use testwright_agent_prompts::{
    CloverAssertion, CloverBlocks, CloverSystem, CloverTarget, CodeBlock, Prompt, RenderError,
};
use testwright_evals::cases::context::Tokenizer;
use testwright_evals::clover::answer::Form;
use testwright_evals::clover::context::Prompts;
use testwright_evals::clover::{Problem, Question, Task};

use testwright_agent::retrieval::tokens;
use testwright_models::Message;

/// Names of the prompts.
pub const PROMPTS: &[&str] = &[
    CloverSystem::NAME,
    CloverAssertion::NAME,
    CloverTarget::NAME,
    CloverBlocks::NAME,
];

/// Placeholder for the blank.
const BLANK: &str = "____";

/// Counts the tokens of prompts with the tokenizer of OpenAI's models since GPT-4o.
pub struct TaskPrompts;

impl Tokenizer for TaskPrompts {
    fn name(&self) -> &str {
        tokens::TOKENIZER
    }

    fn count(&self, text: &str) -> usize {
        tokens::count(text)
    }

    fn first<'t>(&self, text: &'t str, most: usize) -> &'t str {
        tokens::first(text, most)
    }
}

impl Prompts for TaskPrompts {
    /// Counts the tokens for the longer answer form.
    fn instructions(&self, problem: &Problem) -> usize {
        let count = |form| {
            // Templates that do not render are reported before any question is asked.
            let texts = texts(problem, form, Some("")).unwrap_or_default();
            texts.iter().map(|text| tokens::count(text)).sum::<usize>()
        };
        let [default, alternative] = forms(problem.task).map(count);
        default.max(alternative)
    }
}

/// Returns the default form of answers, then the alternative.
pub fn forms(task: Task) -> [Form; 2] {
    match task {
        Task::Assertion => [Form::Assertion, Form::Operand],
        Task::Target | Task::Blocks => [Form::Full, Form::Part],
    }
}

/// Returns the conversation that asks for an answer. `context` is `None` if no code is shown.
///
/// # Errors
///
/// Fails if a template cannot be rendered.
pub fn messages(
    problem: &Problem,
    form: Form,
    context: Option<&str>,
) -> Result<Vec<Message>, RenderError> {
    let [system, user] = texts(problem, form, context)?;
    Ok(vec![
        Message::System { content: system },
        Message::User { content: user },
    ])
}

fn texts(problem: &Problem, form: Form, context: Option<&str>) -> Result<[String; 2], RenderError> {
    let user = match &problem.question {
        Question::Assertion { prefix, suffix, .. } => CloverAssertion {
            repository: problem.repository.clone(),
            path: problem.path.clone(),
            code: above(problem),
            assertion: format!("{prefix}{BLANK}{suffix}"),
            after: problem.text.after.trim_matches('\n').to_owned(),
            whole: form == Form::Assertion,
            context: context.unwrap_or_default().trim_end().to_owned(),
        }
        .render()?,
        Question::Target {
            path,
            qualified_name,
            is_class,
        } => CloverTarget {
            repository: problem.repository.clone(),
            path: problem.path.clone(),
            test: problem.test.clone(),
            code: problem.without_statements().trim_end().to_owned(),
            target_kind: if *is_class { "class" } else { "function" }.to_owned(),
            target: qualified_name.clone(),
            target_path: context.map_or_else(String::new, |_| path.clone()),
            part: form == Form::Part,
            context: context.unwrap_or_default().trim_end().to_owned(),
        }
        .render()?,
        Question::Blocks { blocks } => CloverBlocks {
            repository: problem.repository.clone(),
            path: problem.path.clone(),
            test: problem.test.clone(),
            code: problem.without_statements().trim_end().to_owned(),
            blocks: blocks
                .iter()
                .map(|block| CodeBlock {
                    path: block.path.clone(),
                    first: block.first,
                    last: block.last,
                    source: block.source.clone(),
                })
                .collect(),
            part: form == Form::Part,
            context: context.unwrap_or_default().trim_end().to_owned(),
        }
        .render()?,
    };
    Ok([CloverSystem {}.render()?, user])
}

/// Returns the test file up to the assertion.
fn above(problem: &Problem) -> String {
    let text = &problem.text;
    format!("{}{}{}", text.before, text.header, text.body)
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests;
