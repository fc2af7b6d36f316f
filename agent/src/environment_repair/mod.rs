//! Repair of an environment by a model, if the rules cannot build it.
//!
//! The model sees the recipe, the error, and what the repository says about its tests. It has three tools:
//! `amend_environment` builds with other keys of the recipe, `try_tests` runs tests in the result, and `open_file` reads
//! the repository. Network and limits are those of any build, and only the keys that a repository may set itself can be
//! amended.

mod amend_environment;
mod brief;
mod try_tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use testwright_agent_prompts::{EnvironmentRepairSystem, EnvironmentRepairTask, Prompt};
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::environment::{Amendments, Environment};
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::repository::Source;
use testwright_tools::tool::{AnyTool, ToolSpec};
use testwright_tools::tools::{OpenFile, count};
use testwright_tools::visible;

use crate::agent::{Budget, Limits, Progress, numbered_lines};
use crate::trajectory::EnvironmentRepair;
use testwright_config::settings::Settings;
use testwright_models::{
    Message, Model, ModelName, ModelSource, Reply, Request, ToolCall, ToolResult, Usage,
};

pub(crate) use brief::advice;

/// Names of the templates for a repair.
pub const REPAIR_PROMPTS: &[&str] = &[EnvironmentRepairSystem::NAME, EnvironmentRepairTask::NAME];

/// Maximum amendments of one repair.
const MAX_AMENDMENTS: u32 = 6;
/// Maximum model calls of one repair.
const MAX_CALLS: u32 = 24;
/// Maximum bytes of a file that the model may open.
const MAX_FILE_LEN: usize = 1 << 20;
/// Maximum names of a folder that are listed.
const MAX_LISTED: usize = 200;
/// Maximum characters of the model's last words.
const MAX_WORDS_LEN: usize = 600;

/// The model that repairs environments, and its limits.
#[derive(Clone)]
pub struct RepairModel {
    /// Model to ask.
    pub model: Arc<dyn Model>,
    /// Maximum dollars and tokens.
    pub limits: Limits,
    /// Maximum completion tokens of one call.
    pub max_tokens: Option<u64>,
    /// Sampling temperature; `None` for the client's default.
    pub temperature: Option<f64>,
}

impl RepairModel {
    /// Returns the model with the limits of the settings, or `None` if it follows fixed rules.
    pub fn new(settings: &Settings, name: &ModelName, model: Arc<dyn Model>) -> Option<Self> {
        let follows_rules = matches!(name.source(), ModelSource::Rules);
        (!follows_rules).then(|| RepairModel {
            model,
            limits: Limits {
                // A repair has limits of its own for these.
                steps: None,
                minutes: None,
                ..Limits::of_settings(settings)
            },
            max_tokens: settings.model.max_tokens,
            temperature: settings.model.temperature,
        })
    }
}

/// The failed build that a repair starts from.
pub struct FailedBuild<'a> {
    /// Code of the repository.
    pub source: &'a Source,
    /// Origin of the recipe.
    pub origin: &'a str,
    /// Python versions that the backend has.
    pub pythons: Vec<String>,
    /// Error of the build.
    pub error: SandboxError,
    /// File for the conversation.
    pub conversation: PathBuf,
}

/// A repair in progress.
pub struct Repair<'a> {
    assistant: &'a RepairModel,
    failed: FailedBuild<'a>,
    amendments: Amendments<'a>,
    progress: &'a dyn Progress,
    budget: Budget,
    messages: Vec<Message>,
    amendment_count: u32,
}

/// The end of one step of the conversation.
enum Step {
    Continue,
    Repaired(Box<Environment>),
    /// The reason why the repair ends without success.
    GivenUp(String),
}

impl<'a> Repair<'a> {
    /// Prepares a repair.
    pub fn new(
        assistant: &'a RepairModel,
        failed: FailedBuild<'a>,
        amendments: Amendments<'a>,
        progress: &'a dyn Progress,
    ) -> Self {
        Repair {
            budget: Budget::new(assistant.limits.clone()),
            assistant,
            failed,
            amendments,
            progress,
            messages: Vec::new(),
            amendment_count: 0,
        }
    }

    /// Asks the model until an environment works, and returns it with a record of the repair.
    ///
    /// # Errors
    ///
    /// Fails with the error of the first build, and how the repair ended, if no amendment works. Other errors of the
    /// sandbox end the repair at once.
    pub async fn run(mut self) -> Result<(Environment, EnvironmentRepair), SandboxError> {
        let ended = self.converse().await;
        let finished = self.amendments.finish().await;
        let conversation = self.failed.conversation.display().to_string();
        match ended? {
            Ok(environment) => {
                finished?;
                let record = EnvironmentRepair {
                    calls: self.budget.spent.model_calls,
                    amendments: self.amendment_count,
                    usage: Usage {
                        prompt_tokens: self.budget.spent.prompt_tokens,
                        cached_tokens: self.budget.spent.cached_tokens,
                        completion_tokens: self.budget.spent.completion_tokens,
                        dollars: self.budget.spent.dollars,
                        estimated: false,
                    },
                    model_seconds: self.budget.spent.model_seconds,
                    recipe: environment.recipe.to_toml(),
                    messages: self.messages,
                };
                Ok((environment, record))
            }
            Err(reason) => {
                let mut error = self.failed.error;
                error.message.push_str(&format!(
                    "\n  a model tried {}: {reason}\n  conversation: {conversation}",
                    amendments(self.amendment_count)
                ));
                Err(error)
            }
        }
    }

    /// Returns the environment, or the reason why no amendment works.
    async fn converse(&mut self) -> Result<Result<Environment, String>, SandboxError> {
        self.open_conversation()?;
        let tools = [
            amend_environment::spec(),
            try_tests::spec(),
            AnyTool::spec(&OpenFile),
        ];
        while self.budget.spent.model_calls < MAX_CALLS {
            if let Some(limit) = self.budget.side_call(&self.messages) {
                return Ok(Err(format!("the limit of {} is reached", limit.flag())));
            }
            let reply = match self.next_reply(&tools).await {
                Ok(reply) => reply,
                Err(message) => return Ok(Err(message)),
            };
            let step = self.carry_out(&reply).await;
            self.write_conversation()?;
            match step? {
                Step::Continue => {}
                Step::Repaired(environment) => return Ok(Ok(*environment)),
                Step::GivenUp(reason) => return Ok(Err(reason)),
            }
        }
        Ok(Err(format!("{MAX_CALLS} model calls were not enough")))
    }

    fn open_conversation(&mut self) -> Result<(), SandboxError> {
        let system = EnvironmentRepairSystem {
            tries: MAX_AMENDMENTS,
        };
        let sample = self.amendments.take_sample();
        let task = brief::task(
            self.failed.source,
            self.amendments.recipe(),
            self.failed.origin,
            std::mem::take(&mut self.failed.pythons),
            &self.failed.error,
            sample.as_ref().map(try_tests::describe),
        )?;
        let render = |text: Result<String, testwright_agent_prompts::RenderError>| {
            text.map_err(|error| SandboxError::new(ErrorKind::System, error.to_string()))
        };
        let content = render(system.render())?;
        self.messages.push(Message::System { content });
        let content = render(task.render())?;
        self.messages.push(Message::User { content });
        self.write_conversation()
    }

    /// Returns the next reply, or the reason why the model cannot be asked.
    async fn next_reply(&mut self, tools: &[ToolSpec]) -> Result<Reply, String> {
        let assistant = self.assistant;
        let request = Request {
            messages: self.messages.clone(),
            tools: tools.to_vec(),
            parallel_calls: false,
            temperature: assistant.temperature,
            max_tokens: (self.budget).completion_tokens(&self.messages, &[], assistant.max_tokens),
        };
        let started = Instant::now();
        let reply = assistant.model.complete(&request).await;
        let reply = reply.map_err(|error| format!("the model cannot be asked: {error}"))?;
        let seconds = started.elapsed().as_secs_f64();
        self.budget.record_call(&reply, &request, seconds, false);
        Ok(reply)
    }

    async fn carry_out(&mut self, reply: &Reply) -> Result<Step, SandboxError> {
        let turn = reply.turn();
        self.messages.push(turn.assistant);
        if reply.calls.is_empty() && reply.malformed.is_empty() {
            let words: String = reply.content.trim().chars().take(MAX_WORDS_LEN).collect();
            return Ok(Step::GivenUp(match words.is_empty() {
                true => "it stopped without a call".to_owned(),
                false => format!("it gave up: {}", visible(&words)),
            }));
        }
        for call in &reply.calls {
            let (text, environment) = self.answer(call).await?;
            self.messages.push(Message::Tool(ToolResult {
                id: call.id.clone(),
                content: visible(&text).into_owned(),
            }));
            if let Some(environment) = environment {
                return Ok(Step::Repaired(environment));
            }
        }
        self.messages
            .extend(turn.answers.into_iter().map(Message::Tool));
        if let Some(content) = turn.remark {
            self.messages.push(Message::User { content });
        }
        Ok(match self.amendment_count >= MAX_AMENDMENTS {
            true => Step::GivenUp("none of them works".to_owned()),
            false => Step::Continue,
        })
    }

    /// Answers a call, with the environment if it works now.
    async fn answer(
        &mut self,
        call: &ToolCall,
    ) -> Result<(String, Option<Box<Environment>>), SandboxError> {
        let arguments = call.arguments.value();
        let open_file = AnyTool::name(&OpenFile);
        let text = match call.name.as_str() {
            amend_environment::NAME => match amend_environment::keys(arguments) {
                Ok(keys) => return self.amend(keys).await,
                Err(error) => error.to_string(),
            },
            try_tests::NAME => match try_tests::settings(arguments) {
                Ok(settings) => match self.amendments.try_tests(&settings).await {
                    Ok(Some(sample)) => try_tests::describe(&sample),
                    Ok(None) => "There is no environment with pytest yet.".to_owned(),
                    Err(error) if error.kind == ErrorKind::Build => error.message,
                    Err(error) => return Err(error),
                },
                Err(error) => error.to_string(),
            },
            name if name == open_file => match AnyTool::spec(&OpenFile).check(arguments) {
                Ok(arguments) => self.open_file(&arguments)?,
                Err(error) => error.to_string(),
            },
            other => format!(
                "There is no tool `{other}`. The tools are {}, {} and {open_file}.",
                amend_environment::NAME,
                try_tests::NAME
            ),
        };
        Ok((text, None))
    }

    async fn amend(
        &mut self,
        keys: toml::Table,
    ) -> Result<(String, Option<Box<Environment>>), SandboxError> {
        let names: Vec<&str> = keys.keys().map(String::as_str).collect();
        let (number, names) = (self.amendment_count + 1, names.join(", "));
        let detail = format!("amendment {number} of {MAX_AMENDMENTS}: {names}");
        self.progress.phase("repair", &detail);
        let error = match self.amendments.amend(keys).await {
            Ok(environment) => {
                self.amendment_count += 1;
                let sample = self.amendments.take_sample();
                let sample = sample.as_ref().map(try_tests::describe);
                let text = format!("The environment works.\n{}", sample.unwrap_or_default());
                return Ok((text, Some(Box::new(environment))));
            }
            Err(error) => error,
        };
        if let Some(text) = amend_environment::refusal(&error) {
            return Ok((text, None));
        }
        if error.kind != ErrorKind::Build {
            return Err(error);
        }
        self.amendment_count += 1;
        let mut text = format!("Failed to {}", error.message);
        if let Some(sample) = self.amendments.take_sample() {
            text.push_str(&format!("\n{}", try_tests::describe(&sample)));
        }
        let remaining = MAX_AMENDMENTS.saturating_sub(self.amendment_count);
        text.push_str(&format!("\n({} left)", amendments(remaining)));
        Ok((text, None))
    }

    /// Shows lines of a file of the repository, as it is at the base commit.
    fn open_file(&self, arguments: &Value) -> Result<String, SandboxError> {
        let path = arguments["path"].as_str().unwrap_or_default();
        let path = path.trim_start_matches("./").trim_end_matches('/');
        let tree = self.failed.source.tree()?;
        if let Some(content) = tree.read(path)? {
            if content.len() > MAX_FILE_LEN {
                return Ok(format!("{path} is larger than 1 MiB."));
            }
            let text = String::from_utf8_lossy(&content);
            return Ok(numbered_lines(path, &text, arguments));
        }
        let below = match path {
            "" | "." => String::new(),
            path => format!("{path}/"),
        };
        let names = brief::names_in(&tree, &below, MAX_LISTED);
        Ok(match names.is_empty() {
            true => format!("{path} does not exist."),
            false => format!("{path} is a folder: {}", names.join(", ")),
        })
    }

    /// Writes the messages to the file, as JSON lines.
    fn write_conversation(&self) -> Result<(), SandboxError> {
        let mut lines = String::new();
        for message in &self.messages {
            let line = serde_json::to_string(message)
                .map_err(|error| SandboxError::new(ErrorKind::System, error.to_string()))?;
            lines.push_str(&line);
            lines.push('\n');
        }
        Ok(std::fs::write(&self.failed.conversation, lines)?)
    }
}

/// Returns a number of amendments in words.
pub(crate) fn amendments(number: u32) -> String {
    count(number, "amendment")
}
