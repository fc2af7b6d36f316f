//! Asks models, by single calls or through agents: concurrently, within a budget in dollars, storing each reply at
//! once.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use futures::{StreamExt as _, TryStreamExt as _};
use testwright_evals::clover::context::context;
use testwright_evals::clover::evaluation::ReplyEnd;
use testwright_evals::clover::folder::Benchmark;
use testwright_evals::clover::problem::sha256;

use super::agents::{AgentRun, Agents};
use super::plan::ModelQuestion;
use super::prompts::{TaskPrompts, messages};
use super::replies::{self, Replies, StoredReply, key, to_request};
use crate::compare::first_line;
use crate::model_work::{MAX_FAILURES, ModelWork, open_ledger};
use testwright_agent::agent::{Outcome, Progress};
use testwright_agent::setup;
use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;
use testwright_models::spending_limit::SpendingLimit;
use testwright_models::{Finish, Message, Model, ModelError, ModelName, Request, Usage};

/// Settings and state for asking models.
pub struct Questioner<'a> {
    /// Settings of models and agents.
    pub settings: &'a Settings,
    /// The benchmark with the problems to ask.
    pub benchmark: &'a Benchmark,
    /// Folder of the evaluation, which stores the replies.
    pub folder: &'a Path,
    /// Maximum cost of all calls together, in dollars.
    pub max_dollars: Option<f64>,
    /// Maximum tokens of a reply, in place of the task's limit.
    pub max_tokens: Option<u64>,
    /// Maximum concurrent calls and agent runs.
    pub at_once: usize,
    /// Agents; `None` if none are asked.
    pub agents: Option<Agents<'a>>,
    /// Receiver of the progress of agents, for display.
    pub progress: Arc<dyn Progress>,
}

/// Outcome of asking.
#[derive(Debug, Default)]
pub struct AskingSummary {
    /// Whether asking was interrupted before the last question.
    pub interrupted: bool,
    /// Number of questions that were not asked, and the reason.
    pub not_asked: Option<(usize, String)>,
    /// Total cost of all calls in the folder, in US dollars.
    pub dollars: f64,
}

/// Shared state of the calls.
struct AskingState {
    models: BTreeMap<String, Arc<dyn Model>>,
    ceiling: Arc<SpendingLimit>,
    work: ModelWork,
    replies: Replies,
}

impl Questioner<'_> {
    /// Asks all questions that have no reply yet.
    ///
    /// # Errors
    ///
    /// Fails if a model cannot be set up, or a file in the folder cannot be read or written. A failed call is part of
    /// the result.
    pub async fn ask(
        &self,
        asks: &[ModelQuestion<'_>],
        ended: &(dyn Fn(&ModelQuestion<'_>, bool) + Send + Sync),
    ) -> Result<AskingSummary> {
        let replies = replies::open(self.folder)?;
        let ceiling = open_ledger(self.folder, self.max_dollars)?;
        let mut models = BTreeMap::new();
        for ask in asks {
            if let Entry::Vacant(entry) = models.entry(ask.model.to_owned()) {
                let name = ModelName::parse(ask.model)?;
                let (quota, progress) = (ceiling.clone(), self.progress.clone());
                let model = setup::model(self.settings, &name, None, Some(quota), progress)?;
                entry.insert(model);
            }
        }
        let state = AskingState {
            models,
            ceiling,
            work: ModelWork::default(),
            replies,
        };
        let times = &format!("{MAX_FAILURES} times");
        let calls = asks.iter().map(|ask| {
            let state = &state;
            async move {
                if state.replies.get(&key(ask)).is_some() {
                    ended(ask, false);
                    return Ok(());
                }
                let (work, ceiling) = (&state.work, Some(state.ceiling.as_ref()));
                if !work.skip_if_blocked(ask.model, ceiling, times)
                    && !work.is_interrupted()
                    && self.ask_unless_interrupted(ask, state).await?
                {
                    ended(ask, true);
                }
                Ok::<(), Error>(())
            }
        });
        // The first failure drops the other calls.
        let all_ended = futures::stream::iter(calls)
            .buffer_unordered(self.at_once.max(1))
            .try_collect::<()>()
            .await;
        let interrupted = state.work.is_interrupted();
        if let Some(agents) = self.agents.as_ref()
            && (interrupted || all_ended.is_err())
        {
            agents.abandon().await?;
        }
        all_ended?;
        Ok(AskingSummary {
            interrupted,
            not_asked: state.work.skipped(),
            dollars: state.ceiling.spent(),
        })
    }

    /// Asks one question; returns `false` if it was interrupted.
    async fn ask_unless_interrupted(
        &self,
        ask: &ModelQuestion<'_>,
        state: &AskingState,
    ) -> Result<bool> {
        if ask.is_for_agent() {
            // The agent handles an interruption itself, so that no sandbox is left behind.
            self.agent(ask, state).await?;
            return Ok(!state.work.is_interrupted());
        }
        tokio::select! {
            result = self.one(ask, state) => result.map(|()| true),
            () = setup::interrupted() => {
                state.work.interrupt();
                Ok(false)
            }
        }
    }

    async fn agent(&self, ask: &ModelQuestion<'_>, state: &AskingState) -> Result<()> {
        let (Some(agents), Some(model)) = (&self.agents, state.models.get(ask.model)) else {
            return Ok(());
        };
        match agents.run(ask, model.clone()).await? {
            AgentRun::Ended(reply) => {
                state.work.note(ask.model, false);
                state.replies.add(*reply)
            }
            AgentRun::CutShort(Outcome::Interrupted) => {
                state.work.interrupt();
                Ok(())
            }
            AgentRun::CutShort(outcome) => {
                if matches!(outcome, Outcome::ModelFailed { .. }) {
                    state.work.note(ask.model, true);
                }
                state.work.skip(first_line(&outcome.summary()));
                Ok(())
            }
        }
    }

    async fn one(&self, ask: &ModelQuestion<'_>, state: &AskingState) -> Result<()> {
        let replies = &state.replies;
        let messages = self.messages(ask)?;
        let text = serde_json::to_string(&messages)
            .map_err(|error| Error::infrastructure("encode a prompt").cause(error))?;
        let request_sha256 = sha256(&text);
        let reply = |end: ReplyEnd, text: String, usage: Usage, seconds: f64| StoredReply {
            request_sha256: request_sha256.clone(),
            usage,
            seconds,
            ..StoredReply::new(ask, end, text)
        };
        // Several budgets may show the whole of a small repository, which gives identical requests.
        if let Some(same) = to_request(replies, ask.model, &request_sha256) {
            return replies.add(StoredReply {
                shared: true,
                calls: 0,
                ..reply(same.end, same.text, Usage::default(), 0.0)
            });
        }
        let Some(model) = state.models.get(ask.model) else {
            return Ok(());
        };
        let room = ask.problem.task.max_answer_tokens() as u64;
        let request = Request {
            messages,
            tools: Vec::new(),
            parallel_calls: false,
            temperature: self.settings.model.temperature.or(Some(0.0)),
            max_tokens: Some(self.max_tokens.unwrap_or(room)),
        };
        let begun = Instant::now();
        let answered = model.complete(&request).await;
        let seconds = begun.elapsed().as_secs_f64();
        state.work.note(
            ask.model,
            matches!(
                answered,
                Err(ModelError::Fatal { .. }
                    | ModelError::Refused { .. }
                    | ModelError::Transient { .. }
                    | ModelError::Unreachable { .. })
            ),
        );
        match answered {
            Ok(answer) => {
                let end = match answer.finish {
                    Finish::Length => ReplyEnd::CutOff,
                    Finish::ContentFilter => ReplyEnd::NoReply {
                        reason: "the provider's content filter withheld the reply".to_owned(),
                    },
                    Finish::Stop | Finish::ToolCalls => ReplyEnd::Complete,
                };
                replies.add(reply(end, answer.content, answer.usage, seconds))
            }
            Err(ModelError::ContextFull(reason)) => {
                let reason = format!("the prompt is too long: {reason}");
                replies.add(reply(
                    ReplyEnd::NoReply { reason },
                    String::new(),
                    Usage::default(),
                    seconds,
                ))
            }
            Err(error) => {
                state.work.skip(error.to_string());
                Ok(())
            }
        }
    }

    fn messages(&self, ask: &ModelQuestion<'_>) -> Result<Vec<Message>> {
        let problem = ask.problem;
        let texts = self.benchmark.texts(&problem.repository, &problem.commit);
        let text = |path: &str| texts.get(path).copied();
        let context_text = context(problem, ask.budget, &TaskPrompts, &text);
        messages(problem, ask.form, context_text.as_deref())
            .map_err(|error| Error::usage("render a prompt").cause(error))
    }
}
