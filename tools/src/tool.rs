//! What a tool is: a name, a documented argument struct, a handler.
//!
//! Errors come in two kinds, by type. [`ToolError::Refused`] is for the model: a bad argument,
//! a function that does not exist (with the nearest names). [`ToolError::Broken`] is never shown
//! to a model: the run ends as `infrastructure`.

mod arguments;
mod schema;

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::error::ToolError;
use crate::workspace::Workspace;

/// What a tool returns: a text for the model, and the same facts for programs.
#[derive(Debug)]
pub struct Reply<D> {
    pub text: String,
    pub data: D,
}

impl<D> Reply<D> {
    pub fn new(text: impl Into<String>, data: D) -> Self {
        Reply {
            text: text.into(),
            data,
        }
    }
}

/// A [`Reply`] with its type forgotten.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// What the model reads. Short, says what was cut and how to get more, and the same byte for
    /// byte for the same state of the workspace.
    pub text: String,
    /// The same facts for programs (MCP's `structuredContent`), of the tool's [`Tool::Data`].
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

impl<D: Serialize> Reply<D> {
    /// Refuses data that are too much to send.
    fn encode(self) -> Result<Answer, ToolError> {
        let Reply { text, data } = self;
        let broken = |e| ToolError::Broken(format!("an answer could not be encoded: {e}"));
        let mut length = Length(0);
        serde_json::to_writer(&mut length, &data).map_err(broken)?;
        if length.0 > MAX_DATA_LEN {
            return Err(ToolError::Refused(format!(
                "What there is to tell takes {} MiB; at most {} MiB can be told. Fewer or smaller files, fewer tests and \
                 shorter messages make it less.",
                length.0.div_ceil(1 << 20),
                MAX_DATA_LEN >> 20
            )));
        }
        let data = serde_json::to_value(data).map_err(broken)?;
        Ok(Answer { text, data })
    }
}

/// Most bytes of an answer's data, and of a call's arguments: neither end of MCP takes longer messages, and one that is
/// dropped there is never answered.
pub const MAX_DATA_LEN: usize = 12 << 20;

/// Counts what is written.
pub struct Length(pub usize);

impl std::io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Who may call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Audience {
    /// Models and MCP clients; which of them a model is offered is up to the approach.
    Model,
    /// The host alone (state in and out of the sandbox); never listed to a model.
    Host,
}

/// What a call leaves behind in the caller's workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Files stay as they are.
    Reads,
    /// Files may change: by the tool itself, or by code that it runs.
    Writes,
}

/// How the host carries out a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// In the sandbox that the caller works in.
    Sandbox,
    /// In a copy of it, which is thrown away. The host keeps the answer's data with the run: where they are the trial of
    /// a fix (`patch` and `report`), they become part of the evidence.
    Fork,
    /// Through the submission gate, which calls the tool in a fresh sandbox and decides on what it gathers there.
    Gate,
}

/// What a handler works with.
pub struct Context<'a> {
    pub workspace: &'a mut Workspace,
    /// When the call has to be over. Processes that a tool starts are ended at this moment, with
    /// their whole group, and what they printed so far is returned.
    pub deadline: Instant,
}

impl Context<'_> {
    /// Time left until the deadline.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// When a run of tests has to be over that may take such a part of the time left.
    pub fn share(&self, parts: u32) -> Instant {
        let most = Duration::from_secs(self.workspace.config().test_seconds);
        Instant::now() + most.min(self.left() / parts)
    }
}

/// One tool. The doc comments of `Args` and of its fields are what the model reads in the schema.
pub trait Tool: Send + Sync {
    type Args: DeserializeOwned + JsonSchema;
    /// What programs read; MCP clients are told its schema, models are not.
    type Data: Serialize + JsonSchema;
    const NAME: &'static str;
    /// One to four sentences for the model: what it does, when to use it.
    const DESCRIPTION: &'static str;
    /// The name that MCP clients show to people.
    const TITLE: &'static str = "";
    const AUDIENCE: Audience = Audience::Model;
    const EFFECT: Effect = Effect::Writes;
    /// A tool that writes may overwrite or remove what was there, by itself or by the code that it runs.
    const IS_DESTRUCTIVE: bool = true;
    /// Calling it a second time with the same arguments changes nothing more.
    const IS_IDEMPOTENT: bool = false;
    const ROUTE: Route = Route::Sandbox;
    /// It works on lines, whole files or commands. Approaches choose by this: those whose tools know functions and tests
    /// leave it out.
    const LOW_LEVEL: bool = false;
    /// Seconds a call may take unless the caller says otherwise.
    const SECONDS: u64 = 30;
    /// It runs code of the repository or of the model: what happens to the toolbox meanwhile may be their doing.
    const RUNS_CODE: bool = false;
    /// It is offered only where lines are named that tests are wanted for (see [`crate::config::Config::wanted`]).
    const NEEDS_WANTED_LINES: bool = false;

    fn call(
        &self,
        context: &mut Context<'_>,
        args: Self::Args,
    ) -> Result<Reply<Self::Data>, ToolError>;
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments, an object with no `$schema`, no `title` and no references.
    pub parameters: Value,
}

/// [`Tool`] with its argument type forgotten: what the list holds.
pub trait AnyTool: Send + Sync {
    fn name(&self) -> &'static str;
    fn title(&self) -> &'static str;
    fn audience(&self) -> Audience;
    fn effect(&self) -> Effect;
    fn is_destructive(&self) -> bool;
    fn is_idempotent(&self) -> bool;
    fn route(&self) -> Route;
    fn low_level(&self) -> bool;
    fn seconds(&self) -> u64;
    fn runs_code(&self) -> bool;
    fn needs_wanted_lines(&self) -> bool;
    fn spec(&self) -> ToolSpec;
    /// JSON Schema of [`Answer::data`].
    fn data_schema(&self) -> Value;
    /// Do the arguments fit the schema? If not, the error is that of [`AnyTool::call`].
    fn check(&self, arguments: Value) -> Result<(), ToolError>;
    /// Arguments that do not fit the schema are [`ToolError::Refused`], naming the field and the
    /// nearest known one.
    fn call(&self, context: &mut Context<'_>, arguments: Value) -> Result<Answer, ToolError>;
}
