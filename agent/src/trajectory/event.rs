//! The lines of a trajectory. They hold everything that is needed to resume after a crash and to replay a
//! run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use testwright_tools::tool::ToolSpec;

use crate::issues::Issue;
use crate::outcome::{Limit, Outcome};
use testwright_models::{Message, Reply, ToolResult, Usage};

/// Format version of the trajectory; raised when an older reader would misread a newer file.
pub const FORMAT: u32 = 1;

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// First line of every trajectory.
    Started(Box<Started>),
    /// A system or user message that was added to the conversation, or a tool call of the user's own program.
    Message {
        /// The message.
        message: Message,
    },
    /// A model's reply.
    Reply {
        /// Purpose of the call.
        purpose: Purpose,
        /// SHA-256 of the request.
        request: String,
        /// Messages of a side call, such as a review; empty for the conversation. Those of the user's own program
        /// omit what its previous request had.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        messages: Vec<Message>,
        /// The reply, with its tokens and cost.
        reply: Reply,
        /// Seconds until the reply arrived.
        seconds: f64,
    },
    /// A tool's answer.
    Answer(RecordedAnswer),
    /// Files of the workspace that changed since the last such line; written after each step that changed
    /// any.
    State {
        /// Files that changed.
        files: Vec<FileState>,
        /// Files that differ but are too large to store; a resumed run continues without them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        omitted: Vec<String>,
    },
    /// Older tool answers among the first `until` messages were cut because the model's context was full.
    Compacted {
        /// Number of messages, from the first one, whose tool answers were cut.
        until: usize,
    },
    /// A model call without a reply.
    NoReply {
        /// Purpose of the call.
        purpose: Purpose,
        /// Reason why there is no reply.
        cause: NoReplyCause,
    },
    /// The end of one of several drafts and of its conversation.
    DraftEnded {
        /// Number of the draft, counted from 1.
        number: u32,
        /// Limit that ended it, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<Limit>,
        /// Reason why the draft had no result, if it had none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The result of a pipeline's stage.
    Stage {
        /// Name of the stage.
        stage: String,
        /// Result in words.
        result: String,
    },
    /// A resumed run; an interruption came before this line.
    Resumed {
        /// Time at which the run resumed (RFC 3339, UTC).
        at: String,
    },
    /// Last line of a run that ended by itself.
    Ended {
        /// Outcome of the run.
        outcome: Outcome,
    },
}

/// The start of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Started {
    /// Version of this format.
    pub format: u32,
    /// Start time (RFC 3339, UTC).
    pub at: String,
    /// Version of testwright.
    pub testwright: String,
    /// Name of the approach.
    pub approach: String,
    /// Name of the model.
    pub model: String,
    /// Issue to write a test for.
    pub issue: Issue,
    /// Repository as `owner/name`, or the name of a folder.
    pub repository: String,
    /// Commit of the old code.
    pub commit: Option<String>,
    /// Digest of the old code's files.
    pub digest: String,
    /// Settings to start this run again, without secrets.
    pub settings: Value,
    /// Tools that the model is offered.
    pub tools: Vec<ToolSpec>,
    /// Repair of the environment before the run, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment_repair: Option<EnvironmentRepair>,
}

/// The repair of an environment by a model, which came before the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentRepair {
    /// Model calls.
    pub calls: u32,
    /// Number of amendments of the recipe that were built; the last one works.
    pub amendments: u32,
    /// Tokens and cost of the calls.
    pub usage: Usage,
    /// Seconds in model calls.
    pub model_seconds: f64,
    /// The recipe that works, as TOML.
    pub recipe: String,
    /// The conversation.
    pub messages: Vec<Message>,
}

/// The purpose of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A step of the conversation.
    Step,
    /// A stage of a pipeline, with a prompt of its own.
    Prompt,
    /// A review of a failure.
    Review,
}

/// The reason why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum NoReplyCause {
    /// The prompt does not fit into the model's context, and nothing is left to cut.
    ContextFull {
        /// Message of the provider.
        message: String,
    },
    /// The minutes of the run were up, before the call or during it.
    TimeUp {
        /// Whether the call had begun.
        call_started: bool,
    },
}

impl Purpose {
    /// Returns whether it counts as a step; otherwise it belongs to one.
    pub fn is_step(self) -> bool {
        self != Purpose::Review
    }
}

/// A tool's answer to a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedAnswer {
    /// Name of the tool.
    pub tool: String,
    /// Answer that the model reads.
    pub result: ToolResult,
    /// Whether the tool refused the call, which is the model's mistake.
    #[serde(default)]
    pub refused: bool,
    /// Structured data, stored for the tools whose facts decide something (`submit`, `try_fix`,
    /// `run_pytest`).
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
    /// Seconds that the call took.
    pub seconds: f64,
}

/// A file of the workspace that changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileState {
    /// Path relative to the repository.
    pub path: String,
    /// Content in Base64; `None` for a deleted file.
    pub content: Option<String>,
    /// Whether the file again has its content from the base commit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub base: bool,
}
