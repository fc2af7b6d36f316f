//! The state of a run: the model, the session, the record, the budget, and the recorded part of a resumed
//! run.

mod model_calls;
mod pipeline;
mod program;

pub use pipeline::ChangedTests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use testwright_sandboxes::repository::Source;
use testwright_tools::tool::{AnyTool, Effect, Route, Tool};
use testwright_tools::tools::OpenFile;
use testwright_tools::visible;

use super::Budget;
use super::earlier_calls::takes_tests;
use super::failures::unknown_tool;
use super::fix_trials::RecordedTrial;
use super::full_issue::numbered_issue_lines;
use super::processor::CpuPermit;
use super::progress::{Progress, StepView};
use super::replay::Replay;
use super::run_counts::RunCounts;
use super::submission_policy::SubmissionPolicy;
use super::submission_record::SubmissionRecord;
use crate::gate::Evidence;
use crate::issues::{FULL_ISSUE_PATH, Issue};
use crate::outcome::{DATA_MARK, Flow, Outcome};
use crate::session::{Contents, Session};
use crate::trajectory::{Event, FileState, RecordedAnswer, RunFolder};
use testwright_models::{Message, Model, ToolCall, ToolResult};

/// The parts from which a run is created.
pub struct RunParts {
    /// Issue to write a test for.
    pub issue: Issue,
    /// Old code.
    pub source: Source,
    /// Model that is asked.
    pub model: Arc<dyn Model>,
    /// Session in a sandbox with the old code.
    pub session: Session,
    /// Folder of the run, with its trajectory.
    pub folder: RunFolder,
    /// Limits of the run.
    pub budget: Budget,
    /// Recorded events to replay first; empty for a new run.
    pub replay: Replay,
    /// Receiver of progress.
    pub progress: Arc<dyn Progress>,
    /// Maximum completion tokens of one call.
    pub max_tokens: Option<u64>,
    /// Sampling temperature; `None` for the client's default.
    pub temperature: Option<f64>,
    /// Share of the processors.
    pub processor: CpuPermit,
}

/// A run in progress: its conversation, its workspace and its record.
pub struct Run {
    /// Issue to write a test for.
    pub issue: Issue,
    /// Old code.
    pub source: Source,
    pub(super) session: Session,
    /// Limits and usage.
    pub budget: Budget,
    /// Receiver of progress.
    pub progress: Arc<dyn Progress>,
    /// Recorded events that are yet to be replayed.
    pub replay: Replay,
    model: Arc<dyn Model>,
    folder: RunFolder,
    pub(super) messages: Vec<Message>,
    max_tokens: Option<u64>,
    temperature: Option<f64>,
    processor: CpuPermit,
    /// Files that differ from the base commit, as last recorded.
    pub(super) state: Contents,
    /// Whether the sandbox has the state of the recorded part.
    caught_up: bool,
    pub(super) submission_policy: SubmissionPolicy,
    pub(super) given: Vec<String>,
    pub(super) trials: Vec<RecordedTrial>,
    /// Number of calls so far that tried candidate fixes.
    pub(super) fix_calls: usize,
    /// Number of times the tool server had ended when the draft started.
    pub(super) ends_before: u32,
    /// Edits of the last fix.
    pub(super) last_fix: Vec<Value>,
    pub(super) fix_asked_for: bool,
    /// Number of times the reviewer's doubts were sent back.
    pub(super) doubts: u32,
    /// Number of reviews in all drafts so far.
    pub(super) reviews: usize,
    /// Number of times the context was compacted.
    pub(super) compactions: u32,
    /// Whether the conversation was shortened because the service refused a request without a clear reason.
    pub(super) shortened_after_refusal: bool,
    /// Calls that ran code, each with one line of its answer.
    pub(super) code_calls: Vec<String>,
    /// The last submission, if the gate refused it for lasting reasons.
    pub(super) refused_submission: Option<Box<SubmissionRecord>>,
    /// Patch and evidence of an accepted submission.
    pub(super) submission: Option<(String, Box<Evidence>)>,
    /// Messages of the last request of a user's program, which its next request repeats.
    program_messages: Vec<Message>,
    /// Number of leading messages of the present request that are recorded already.
    recorded_messages: usize,
}

/// Maximum number of times the tool server may end while code of the repository or the model runs. That code
/// is the cause, so the run ends with nothing found, and counts.
const MAX_TOOLBOX_ENDS: u32 = 3;

/// Maximum time for a tool call; the toolbox has shorter limits of its own.
const MAX_CALL_TIMEOUT: Duration = Duration::from_secs(900);

impl Run {
    /// Creates a run with an empty conversation.
    pub fn new(parts: RunParts) -> Self {
        Run {
            issue: parts.issue,
            source: parts.source,
            session: parts.session,
            budget: parts.budget,
            progress: parts.progress,
            caught_up: parts.replay.has_live_tools(),
            replay: parts.replay,
            model: parts.model,
            folder: parts.folder,
            messages: Vec::new(),
            max_tokens: parts.max_tokens,
            temperature: parts.temperature,
            processor: parts.processor,
            state: Contents::new(),
            submission_policy: SubmissionPolicy::default(),
            given: Vec::new(),
            trials: Vec::new(),
            fix_calls: 0,
            ends_before: 0,
            last_fix: Vec::new(),
            fix_asked_for: false,
            doubts: 0,
            reviews: 0,
            compactions: 0,
            shortened_after_refusal: false,
            code_calls: Vec::new(),
            refused_submission: None,
            submission: None,
            program_messages: Vec::new(),
            recorded_messages: 0,
        }
    }

    /// Sets descriptions of the model's extra inputs, for the evidence.
    pub fn set_extra_inputs(&mut self, inputs: Vec<String>) {
        self.given = inputs;
    }

    /// Sets the approach's requirements for a submission beyond the gate.
    pub fn set_submission_policy(&mut self, policy: SubmissionPolicy) {
        self.submission_policy = policy;
    }

    /// Returns the conversation so far.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the folder of the run.
    pub fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// Returns the toolbox's description of the workspace.
    ///
    /// # Errors
    ///
    /// Fails with the outcome that ends the run, if the sandbox fails.
    pub async fn describe(&self) -> Flow<String> {
        Ok(self.session.describe().await?)
    }

    /// Adds a system or user message to the conversation.
    ///
    /// # Errors
    ///
    /// Fails with the outcome that ends the run, if the message cannot be recorded.
    pub fn say(&mut self, message: Message) -> Flow {
        // A resumed run creates the same messages again; they are on disk already.
        if self.replay.is_over() {
            self.record(&Event::Message {
                message: message.clone(),
            })?;
        }
        self.messages.push(message);
        Ok(())
    }

    /// Adds a message of the user to the conversation.
    pub(crate) fn remark(&mut self, content: String) -> Flow {
        self.say(Message::User { content })
    }

    /// Runs a tool call, or takes its recorded answer, and appends the answer to the conversation.
    ///
    /// # Errors
    ///
    /// Fails with the outcome that ends the run or the draft: the sandbox or the record fails, or a
    /// recorded draft ended here.
    pub async fn call(
        &mut self,
        call: &ToolCall,
        allowed: &[&dyn AnyTool],
    ) -> Flow<RecordedAnswer> {
        let answer = if self.replay.has_live_tools() {
            let now = self.execute_call(call, allowed).await?;
            self.compare(call, now)
        } else if let Some(answer) = self.recorded_answer(&call.id) {
            self.restore_facts(&answer);
            self.budget.add_earlier_time(answer.seconds);
            answer
        } else if let Some(outcome) = self.replay.draft_outcome() {
            return Err(outcome);
        } else {
            self.execute_call(call, allowed).await?
        };
        let spent = &mut self.budget.spent;
        *spent.tool_calls.entry(call.name.clone()).or_default() += 1;
        spent.refused_calls += u32::from(answer.refused);
        spent.tool_seconds += answer.seconds;
        self.note_code_call(call, &answer);
        self.answered(answer.result.clone());
        Ok(answer)
    }

    /// Takes the recorded answer to a call. The model calls made on the way, such as a review, count again.
    fn recorded_answer(&mut self, call: &str) -> Option<RecordedAnswer> {
        for (reply, seconds) in self.replay.take_side_replies(call) {
            self.budget.record_side_call(&reply, seconds);
        }
        self.replay.answer(call)
    }

    /// Notes, in a replay, a difference between the answer and the recorded one. The recorded answer continues
    /// the conversation, because later replies refer to it.
    fn compare(&mut self, call: &ToolCall, now: RecordedAnswer) -> RecordedAnswer {
        let Some(recorded) = self.replay.answer(&call.id) else {
            return now;
        };
        if recorded.result.content != now.result.content {
            self.replay.differences.push(super::ReplayDifference {
                step: self.budget.spent.steps,
                tool: call.name.clone(),
                recorded: recorded.result.content.clone(),
                replayed: now.result.content.clone(),
            });
        }
        RecordedAnswer {
            result: recorded.result,
            ..now
        }
    }

    /// Answers a call that is not run, with the reason.
    ///
    /// # Errors
    ///
    /// Fails with the outcome that ends the run or the draft: the answer cannot be recorded, or a recorded
    /// draft ended here.
    pub fn decline(&mut self, call: &ToolCall, text: String) -> Flow {
        let result = ToolResult {
            id: call.id.clone(),
            content: text,
        };
        if self.replay.answer(&call.id).is_none() && !self.replay.has_live_tools() {
            if let Some(outcome) = self.replay.draft_outcome() {
                return Err(outcome);
            }
            self.record(&Event::Answer(RecordedAnswer {
                tool: call.name.clone(),
                result: result.clone(),
                refused: true,
                data: Value::Null,
                seconds: 0.0,
            }))?;
        }
        self.budget.spent.refused_calls += 1;
        self.answered(result);
        Ok(())
    }

    /// Appends an answer that no tool gave, e.g. for a call that could not be read.
    pub fn answered(&mut self, result: ToolResult) {
        self.messages.push(Message::Tool(result));
    }

    async fn execute_call(
        &mut self,
        call: &ToolCall,
        allowed: &[&dyn AnyTool],
    ) -> Flow<RecordedAnswer> {
        self.acquire_processor().await;
        let answer = self.carry_out_here(call, allowed).await;
        self.processor.release();
        // A recording can end with a review whose call has no answer. If the repeated call asks for no review, the
        // recording does not fit.
        if !self.replay.has_live_tools() && !self.replay.is_over() {
            self.leave_recording();
        }
        answer
    }

    async fn acquire_processor(&mut self) {
        let waited = self.processor.acquire().await;
        self.budget.exclude_wait(waited);
    }

    async fn carry_out_here(
        &mut self,
        call: &ToolCall,
        allowed: &[&dyn AnyTool],
    ) -> Flow<RecordedAnswer> {
        self.restore_workspace().await?;
        let view = StepView {
            step: self.budget.spent.steps,
            action: &call.name,
            detail: call.arguments.as_str(),
            spent: &self.budget.spent,
            seconds: 0.0,
        };
        self.progress.begins(&view);
        let (started, of_models) = (Instant::now(), self.budget.spent.model_seconds);
        let deadline = self.budget.left().min(MAX_CALL_TIMEOUT);
        let tool = allowed.iter().find(|tool| tool.name() == call.name);
        let (text, refused, data) = match tool {
            Some(tool) => self.call_tool(*tool, call, deadline).await?,
            None => (unknown_tool(&call.name, allowed), true, Value::Null),
        };
        // The reviewer's time counts as the model's.
        let of_models = self.budget.spent.model_seconds - of_models;
        let seconds = (started.elapsed().as_secs_f64() - of_models).max(0.0);
        let answer = RecordedAnswer {
            tool: call.name.clone(),
            result: ToolResult {
                id: call.id.clone(),
                // Answers created on the host (`submit`) quote file names too.
                content: visible(&text).into_owned(),
            },
            refused,
            data,
            seconds,
        };
        self.record(&Event::Answer(answer.clone()))?;
        if !refused && tool.is_some_and(|tool| tool.effect() == Effect::Writes) {
            self.record_state().await?;
        }
        self.progress.ended(&StepView {
            step: self.budget.spent.steps,
            action: &call.name,
            detail: match first_line(&answer.result.content) {
                line if line.starts_with(DATA_MARK) => "ran the code of the issue",
                line => line,
            },
            spent: &self.budget.spent,
            seconds,
        });
        let ended = (self.session.ended_by_code()).saturating_sub(self.ends_before);
        if ended >= MAX_TOOLBOX_ENDS {
            return Err(Outcome::nothing(format!(
                "code run by the calls ended the tool server {ended} times, by running out of memory or otherwise"
            )));
        }
        Ok(answer)
    }

    /// Calls a tool. Returns its answer, whether it refused the call, and the data that a resumed run needs.
    async fn call_tool(
        &mut self,
        tool: &dyn AnyTool,
        call: &ToolCall,
        deadline: Duration,
    ) -> Flow<(String, bool, Value)> {
        // The match below reads `path` in the form that the tool sees.
        let arguments = match tool.check(call.arguments.value()) {
            Ok(arguments) => arguments,
            Err(error) => return Ok((error.to_string(), true, Value::Null)),
        };
        match tool.route() {
            _ if call.name == OpenFile::NAME && arguments["path"] == FULL_ISSUE_PATH => {
                let text = numbered_issue_lines(&self.issue.text(), &arguments);
                Ok((text, false, Value::Null))
            }
            Route::Gate => self.submit(&arguments, deadline).await,
            Route::Fork => self.call_in_fork(&call.name, arguments, deadline).await,
            Route::Sandbox => {
                let answer = self.session.call(&call.name, arguments, deadline).await;
                let answer = answer?;
                let data = match takes_tests(tool) {
                    true => RunCounts::of_report(&answer.data),
                    false => Value::Null,
                };
                Ok((answer.text, answer.refused, data))
            }
        }
    }

    /// Restores the recorded state of the workspace before the first new call of a resumed run.
    async fn restore_workspace(&mut self) -> Flow {
        if self.caught_up {
            return Ok(());
        }
        self.caught_up = true;
        let state = self.replay.take_state();
        if !state.is_empty() {
            self.session.restore(&state).await?;
        }
        self.state = state;
        Ok(())
    }

    /// Returns the files that differ from the base commit and that records store.
    pub(super) async fn workspace(&mut self) -> Flow<Contents> {
        if self.replay.has_live_tools() {
            let (now, _) = self.session.changes().await?;
            return Ok(now);
        }
        Ok(match self.caught_up {
            true => self.state.clone(),
            false => self.replay.state().clone(),
        })
    }

    async fn record_state(&mut self) -> Flow {
        if self.replay.has_live_tools() {
            return Ok(());
        }
        let (now, omitted) = self.session.changes().await?;
        let changed = (now.iter()).filter(|(path, content)| self.state.get(*path) != Some(content));
        let changed = changed.map(|(path, content)| (path, content.clone(), false));
        let back = self.state.keys().filter(|path| !now.contains_key(*path));
        let back = back.map(|path| (path, None, true));
        let state = |(path, content, base): (&String, _, _)| FileState {
            path: path.clone(),
            content,
            base,
        };
        let files: Vec<FileState> = changed.chain(back).map(state).collect();
        if !files.is_empty() || !omitted.is_empty() {
            self.record(&Event::State { files, omitted })?;
            self.state = now;
        }
        Ok(())
    }

    /// Records an event. A replay records nothing, because its record is complete.
    pub(super) fn record(&mut self, event: &Event) -> Flow {
        if self.replay.has_live_tools() {
            return Ok(());
        }
        Ok(self.folder.append(event)?)
    }

    /// Records the end, and returns what is needed to finish the folder.
    pub async fn finish(mut self, outcome: &Outcome) -> (Budget, RunFolder, Replay) {
        if !self.replay.has_live_tools()
            && outcome.is_final()
            && let Err(error) = self.folder.append(&Event::Ended {
                outcome: outcome.clone(),
            })
        {
            self.progress.note(&format!("failed to {error}"));
        }
        if let Err(error) = self.session.close().await {
            self.progress.note(&format!("failed to {error}"));
        }
        (self.budget, self.folder, self.replay)
    }
}

/// Returns the first line that is not blank.
fn first_line(text: &str) -> &str {
    let mut lines = text.lines().map(str::trim_end);
    lines.find(|line| !line.is_empty()).unwrap_or_default()
}
