//! Defines a tool: a name, a documented argument struct and a handler.
//!
//! Errors come in two kinds, by type. [`ToolError::Refused`] is for the model: an invalid argument, or a
//! function that does not exist (with the nearest names). [`ToolError::Broken`] is never shown to a model:
//! the run ends as `infrastructure`.

mod arguments;
mod schema;

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use crate::error::refusal;
pub use crate::error::{Result, ToolError};
use crate::workspace::Workspace;

/// A tool's result: a text for the model, and the same facts for programs.
#[derive(Debug)]
pub struct Reply<D> {
    /// Text for the model.
    pub text: String,
    /// Data for programs, with the facts of the text.
    pub data: D,
}

impl<D> Reply<D> {
    /// Creates a reply from its text and data.
    pub fn new(text: impl Into<String>, data: D) -> Self {
        Reply {
            text: text.into(),
            data,
        }
    }
}

/// A [`Reply`] with its type erased.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolAnswer {
    /// The text for the model. It is short, says what was cut and how to get more, and is byte-for-byte
    /// deterministic for the same workspace state.
    pub text: String,
    /// Facts of the text, for programs (MCP's `structuredContent`), in the tool's [`Tool::Data`].
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

impl<D: Serialize> Reply<D> {
    /// Encodes the data, or refuses if it is too large to send.
    fn encode(self) -> Result<ToolAnswer> {
        let Reply { text, data } = self;
        let broken = |e| ToolError::Broken(format!("an answer could not be encoded: {e}"));
        let mut length = Length(0);
        serde_json::to_writer(&mut length, &data).map_err(broken)?;
        if length.0 > MAX_DATA_LEN {
            return Err(refusal!(
                "The answer would take {} MiB; the limit is {} MiB. Fewer or smaller files, fewer tests and \
                 shorter messages make it less.",
                length.0.div_ceil(1 << 20),
                MAX_DATA_LEN >> 20
            ));
        }
        let data = serde_json::to_value(data).map_err(broken)?;
        Ok(ToolAnswer { text, data })
    }
}

/// Arguments of a tool that takes none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

/// Maximum bytes of an answer's data, and of a call's arguments. Neither end of MCP accepts longer messages, and a
/// dropped message is never answered.
pub const MAX_DATA_LEN: usize = 12 << 20;

/// A writer that only counts bytes.
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

/// The callers that may use a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Audience {
    /// Models and MCP clients; each approach chooses which tools its model is offered.
    Model,
    /// Host only (moves state into and out of the sandbox); never listed to a model.
    Host,
}

/// The effect of a call on the caller's workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Files stay unchanged.
    Reads,
    /// Files may change, through the tool itself or the code that it runs.
    Writes,
}

/// The place where the host executes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// The sandbox that the caller works in.
    Sandbox,
    /// A copy of the sandbox, which is discarded. The host stores the answer's data with the run. If the data is a
    /// fix trial (`patch` and `report`), it becomes part of the evidence.
    Fork,
    /// The submission gate, which calls the tool in a fresh sandbox and decides on the evidence.
    Gate,
}

/// The workspace and deadline of one call.
pub struct Context<'a> {
    /// Checkout that the call works on.
    pub workspace: &'a mut Workspace,
    /// The time when the call must end. Then the processes of the tool are killed with their whole group, and
    /// their output so far is returned.
    pub deadline: Instant,
}

impl Context<'_> {
    /// Returns the time left until the deadline.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Returns the deadline of a part of the call that may take this time, however long.
    pub fn deadline_after(&self, time: Duration) -> Instant {
        Instant::now() + time.min(self.left())
    }

    /// Returns the deadline of a test run that may use `1/parts` of the time left.
    pub fn share_of_time(&self, parts: u32) -> Instant {
        let max_time = Duration::from_secs(self.workspace.config().test_seconds);
        self.deadline_after(max_time.min(self.left() / parts))
    }
}

/// A tool. The model reads the doc comments of the fields of `Args` in the schema.
pub trait Tool: Send + Sync {
    /// Arguments of a call.
    type Args: DeserializeOwned + JsonSchema;
    /// Data for programs; MCP clients get its schema, models do not.
    type Data: Serialize + JsonSchema;
    /// Name by which callers address the tool; unique.
    const NAME: &'static str;
    /// One to four sentences for the model: what the tool does, when to use it.
    const DESCRIPTION: &'static str;
    /// The name that MCP clients show to people.
    const TITLE: &'static str = "";
    /// Callers that may use the tool. Default: models.
    const AUDIENCE: Audience = Audience::Model;
    /// Effect on the caller's workspace. Default: writes.
    const EFFECT: Effect = Effect::Writes;
    /// Whether a writing tool may overwrite or remove existing files, by itself or through the code that it runs.
    const IS_DESTRUCTIVE: bool = true;
    /// Whether a second call with the same arguments changes nothing more.
    const IS_IDEMPOTENT: bool = false;
    /// Place where the host executes a call. Default: the caller's sandbox.
    const ROUTE: Route = Route::Sandbox;
    /// Whether the tool works on lines, whole files or commands. Approaches whose other tools handle functions and
    /// tests leave such tools out.
    const LOW_LEVEL: bool = false;
    /// Maximum seconds of a call unless the caller sets another limit.
    const SECONDS: u64 = 30;
    /// Whether the tool runs code of the repository or the model. If so, that code may have caused a crash of the
    /// toolbox.
    const RUNS_CODE: bool = false;
    /// Whether the tool is offered only if the settings name wanted lines (see [`crate::config::Config::wanted`]).
    const NEEDS_WANTED_LINES: bool = false;

    /// Performs a call.
    ///
    /// # Errors
    ///
    /// Returns `Refused` if the model must change its call, and `Broken` if the sandbox or the toolbox failed.
    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>>;
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSpec {
    /// Name by which a model calls the tool.
    pub name: String,
    /// Text that tells a model what the tool does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments, an object without `$schema`, `title` or references.
    pub parameters: Value,
}

/// A [`Tool`] with its types erased, as held in the tool list.
pub trait AnyTool: Send + Sync {
    /// Returns [`Tool::NAME`].
    fn name(&self) -> &'static str;
    /// Returns [`Tool::TITLE`].
    fn title(&self) -> &'static str;
    /// Returns [`Tool::AUDIENCE`].
    fn audience(&self) -> Audience;
    /// Returns [`Tool::EFFECT`].
    fn effect(&self) -> Effect;
    /// Returns [`Tool::IS_DESTRUCTIVE`].
    fn is_destructive(&self) -> bool;
    /// Returns [`Tool::IS_IDEMPOTENT`].
    fn is_idempotent(&self) -> bool;
    /// Returns [`Tool::ROUTE`].
    fn route(&self) -> Route;
    /// Returns [`Tool::LOW_LEVEL`].
    fn low_level(&self) -> bool;
    /// Returns [`Tool::SECONDS`].
    fn seconds(&self) -> u64;
    /// Returns [`Tool::RUNS_CODE`].
    fn runs_code(&self) -> bool;
    /// Returns [`Tool::NEEDS_WANTED_LINES`].
    fn needs_wanted_lines(&self) -> bool;
    /// Returns the name, the description and the argument schema, as a model sees them.
    fn spec(&self) -> ToolSpec;
    /// Returns the JSON Schema of [`ToolAnswer::data`].
    fn data_schema(&self) -> Value;
    /// Checks the arguments against the schema, and returns them as [`AnyTool::call`] reads them.
    ///
    /// # Errors
    ///
    /// Returns the error that [`AnyTool::call`] would.
    fn check(&self, arguments: Value) -> Result<Value>;
    /// Calls the tool.
    ///
    /// # Errors
    ///
    /// Arguments that do not fit the schema are [`ToolError::Refused`], naming the field and the nearest known one.
    fn call(&self, context: &mut Context<'_>, arguments: Value) -> Result<ToolAnswer>;
}
