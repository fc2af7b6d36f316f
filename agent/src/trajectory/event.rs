//! Lines of a trajectory. They say all that is needed to go on after a crash and to play a run again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use testwright_tools::tool::ToolSpec;

use crate::issues::Issue;
use crate::outcome::{Limit, Outcome};
use testwright_models::{Message, Reply, ToolResult};

/// Format of the trajectory; raised when an older reader would misread a newer file.
pub const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// First line of every trajectory.
    Started(Box<Started>),
    /// A system or user message that joined the conversation.
    Message { message: Message },
    /// A model's reply.
    Reply {
        purpose: Purpose,
        /// SHA-256 of the request.
        request: String,
        /// The messages of a request of its own (a review); empty for the conversation.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        asked: Vec<Message>,
        reply: Reply,
        /// Seconds until the reply was there.
        seconds: f64,
    },
    /// A tool's answer.
    Answer(Answer),
    /// Files of the workspace that differ from the last such line; after each step that changed any.
    State {
        files: Vec<FileState>,
        /// Files that differ and are too large to be kept: a run that is resumed goes on without them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<String>,
    },
    /// Older tool answers were cut because the model's context was full: the first `until` messages.
    Compacted { until: usize },
    /// A call of the model that the run has no reply to.
    NoReply { purpose: Purpose, why: NoReplyCause },
    /// One of several drafts came to its end, and so did its conversation.
    DraftEnded {
        number: u32,
        /// What ended it, where a limit did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<Limit>,
        /// Why it came to nothing, where it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// What a stage of a pipeline came to.
    Stage { stage: String, result: String },
    /// A crash came before this line; the run goes on.
    Resumed { at: String },
    /// Last line of a run that came to an end by itself.
    Ended { outcome: Outcome },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Started {
    /// Version of this format.
    pub format: u32,
    /// RFC 3339, UTC.
    pub at: String,
    /// Version of testwright.
    pub testwright: String,
    /// Name of the approach.
    pub approach: String,
    /// Name of the model.
    pub model: String,
    pub issue: Issue,
    /// `owner/name` or a folder's name.
    pub repository: String,
    /// The old code.
    pub commit: Option<String>,
    /// Digest of the old code's files.
    pub digest: String,
    /// How to start this run again: settings that are not secrets.
    pub settings: Value,
    /// The tools that the model is given.
    pub tools: Vec<ToolSpec>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A step of the conversation.
    Step,
    /// A step of a pipeline: a prompt of its own.
    Prompt,
    /// The reviewer's reading of a failure.
    Review,
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum NoReplyCause {
    /// The prompt does not fit into the model's context, and nothing is left to cut.
    ContextFull { message: String },
    /// The minutes of the run were up: before the call was made, or while it went on.
    TimeUp { begun: bool },
}

impl Purpose {
    /// It counts as a step; else it belongs to one.
    pub fn is_step(self) -> bool {
        match self {
            Purpose::Step | Purpose::Prompt => true,
            Purpose::Review => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    pub tool: String,
    pub result: ToolResult,
    /// The tool refused the call: the model's mistake.
    #[serde(default)]
    pub refused: bool,
    /// The structured part, kept for the tools whose facts decide something (`submit`, `try_fix`, `run_pytest`).
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
    pub seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileState {
    pub path: String,
    /// Base64; `None` for a deleted file.
    pub content: Option<String>,
    /// The file is as it was at the base commit again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub base: bool,
}
