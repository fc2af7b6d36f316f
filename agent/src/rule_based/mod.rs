//! A model without an API key: fixed rules that use the same tools as a language model.
//!
//! It extracts the code, transcripts, tracebacks and statements of the issue (`extract`), lists the steps to
//! run (`steps`), and runs them on the old code (`probe`). It then makes tests from the results
//! (`candidates`, `functions`), and finds a place for them (`test_location`). It writes them like the tests there
//! (`test_name`, `test_code`, `test_style`), and submits the first that fails as the issue says (`policy`).
//!
//! The model is a pure function of the conversation: for the same messages it gives the same reply, so its
//! runs can be resumed and replayed like any other (`policy_runner`). It never guesses: if the issue shows
//! nothing that can be run, or the shown failure does not occur, it says so.

mod candidates;
mod code_match;
mod comment_annotations;
pub mod extract;
mod functions;
mod outcome;
mod policy;
mod policy_runner;
mod probe;
mod stated_output;
mod steps;
mod test_body;
mod test_code;
mod test_location;
mod test_name;
mod test_style;
#[cfg(test)]
mod tests;

use async_trait::async_trait;

use policy_runner::{PolicyRunner, Turn};
use testwright_models::{Message, Model, ModelError, Reply, Request};

/// Returns whether the text of an issue has code that this model can run or turn into a test.
pub fn has_code(issue: &str) -> bool {
    let issue = extract::extract(issue);
    !steps::steps(&issue).is_empty() || !functions::candidates(&issue).is_empty()
}

/// The rule-based model.
#[derive(Debug, Clone, Copy, Default)]
pub struct Snippet;

impl Snippet {
    /// Returns the next turn of a conversation.
    fn turn(messages: &[Message]) -> Turn {
        let issue = messages.iter().find_map(|message| match message {
            Message::User { content } => extract::issue_in(content),
            _ => None,
        });
        let Some(issue) = issue else {
            return Turn::Final(
                "I have nothing: there is no issue in the conversation.".to_owned(),
            );
        };
        let mut runner = PolicyRunner::new(messages);
        match policy::play(&mut runner, issue) {
            Ok(never) => match never {},
            Err(turn) => turn,
        }
    }
}

#[async_trait]
impl Model for Snippet {
    fn name(&self) -> &str {
        "snippet"
    }

    async fn complete(&self, request: &Request) -> Result<Reply, ModelError> {
        Snippet::turn(&request.messages)
            .reply()
            .map_err(|message| ModelError::fatal(message, None))
    }
}
