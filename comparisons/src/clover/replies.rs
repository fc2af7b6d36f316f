//! Stored replies of models and agents, one per line. They are appended at once, so an interrupted evaluation can
//! resume.

use std::path::Path;

use serde::{Deserialize, Serialize};
use testwright_evals::clover::Budget;
use testwright_evals::clover::answer::Form;
use testwright_evals::clover::evaluation::{AnswerKey, ModelAnswer, ReplyEnd};

use super::REPLIES;
use super::plan::{ModelQuestion, SINGLE_CALL, system_name};
use crate::record_file::{Record, RecordFile};
use testwright_agent::formats::code_block;
use testwright_config::error::Result;
use testwright_models::Usage;

/// A reply to one question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredReply {
    /// Id of the problem.
    pub problem: String,
    /// [`SINGLE_CALL`], which is the default, or the name of an agent.
    #[serde(default = "single_call")]
    pub approach: String,
    /// The model, as named in the settings.
    pub model: String,
    /// Token budget of the question.
    pub budget: Budget,
    /// Requested form of the answer.
    pub form: Form,
    /// Hash of the messages of a single call; empty for an agent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_sha256: String,
    /// The way the reply ended.
    #[serde(flatten)]
    pub end: ReplyEnd,
    /// The model's reply to a single call, or the test file of an agent.
    pub text: String,
    /// Number of model calls.
    #[serde(default = "one")]
    pub calls: u32,
    /// Tokens and cost of all calls together.
    pub usage: Usage,
    /// Wall time in seconds.
    pub seconds: f64,
    /// Whether the reply was reused from another question with the same messages, without a call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

fn single_call() -> String {
    SINGLE_CALL.to_owned()
}

fn one() -> u32 {
    1
}

impl StoredReply {
    /// Creates a reply without cost, which comes from one call.
    pub fn new(ask: &ModelQuestion<'_>, end: ReplyEnd, text: String) -> Self {
        StoredReply {
            problem: ask.problem.id.clone(),
            approach: ask.approach.to_owned(),
            model: ask.model.to_owned(),
            budget: ask.budget,
            form: ask.form,
            request_sha256: String::new(),
            end,
            text,
            calls: 1,
            usage: Usage::default(),
            seconds: 0.0,
            shared: false,
        }
    }

    /// Returns the name of the approach with the model, as used in reports.
    pub fn system(&self) -> String {
        system_name(&self.approach, &self.model)
    }

    /// Returns whether questions with the same messages can reuse the reply.
    pub(super) fn is_reusable(&self) -> bool {
        self.approach == SINGLE_CALL && !matches!(self.end, ReplyEnd::NoReply { .. })
    }

    /// Extracts the answer to be graded.
    pub fn answer(&self) -> ModelAnswer {
        ModelAnswer {
            problem: self.problem.clone(),
            system: self.system(),
            budget: self.budget,
            form: self.form,
            end: self.end.clone(),
            code: match self.approach == SINGLE_CALL {
                true => code_block::code(&self.text).unwrap_or_default(),
                false => self.text.clone(),
            },
        }
    }
}

impl Record for StoredReply {
    type Key = AnswerKey;
    const WHAT: &'static str = "a reply";

    fn key(&self) -> AnswerKey {
        (self.problem.clone(), self.system(), self.budget, self.form)
    }
}

/// Returns the key of the answer to a question.
pub fn key(ask: &ModelQuestion<'_>) -> AnswerKey {
    (ask.problem.id.clone(), ask.system(), ask.budget, ask.form)
}

/// Replies of a folder, open for appending.
pub type Replies = RecordFile<StoredReply>;

/// Opens the replies of a folder for appending.
///
/// # Errors
///
/// Fails if the file cannot be opened, is in use by another process, or contains an invalid line.
pub fn open(folder: &Path) -> Result<Replies> {
    RecordFile::open(folder.join(REPLIES))
}

/// Reads the replies of a folder.
///
/// # Errors
///
/// Fails if the file cannot be read or contains an invalid line.
pub fn stored(folder: &Path) -> Result<Vec<StoredReply>> {
    let replies = Replies::read(&folder.join(REPLIES))?;
    Ok(replies.into_values().collect())
}

/// Finds a model's reply to a single call with the same messages.
pub fn to_request(replies: &Replies, model: &str, request: &str) -> Option<StoredReply> {
    replies.find(|reply| {
        reply.is_reusable() && reply.model == model && reply.request_sha256 == request
    })
}

#[cfg(test)]
mod tests;
