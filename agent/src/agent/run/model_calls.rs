//! Model calls: for the next reply of the conversation, and with a prompt of their own.

use std::time::Instant;

use testwright_tools::tool::ToolSpec;

use super::super::progress::StepView;
use super::super::{Flow, Limit, Outcome, compaction};
use super::{Run, first_line};
use crate::trajectory::{Event, NoReplyCause, Purpose};
use testwright_models::cassette::digest;
use testwright_models::{Message, ModelError, Reply, Request};

impl Run {
    /// Asks for the next reply of the conversation and appends it; this is the model call of one step.
    ///
    /// # Errors
    ///
    /// Fails with the outcome that ends the run or the draft: the budget is used up, or the model or the
    /// record fails.
    pub async fn next_reply(&mut self, tools: &[ToolSpec], parallel_calls: bool) -> Flow<Reply> {
        // One compaction cuts half of the answers, so several may follow each other.
        while let Some(until) = self.replay.compacted() {
            self.compactions += 1;
            compaction::cut(&mut self.messages, until);
        }
        if let Some(outcome) = self.replay.draft_outcome() {
            return Err(outcome);
        }
        // Moved, here and into the request, to avoid copying a long conversation.
        let messages = std::mem::take(&mut self.messages);
        let is_allowed = self.check_budget(Purpose::Step, &messages, &[]);
        self.messages = messages;
        is_allowed?;
        loop {
            let messages = std::mem::take(&mut self.messages);
            let request = Request {
                tools: tools.to_vec(),
                parallel_calls,
                ..self.request(messages, self.temperature)
            };
            let result = self.call_model(Purpose::Step, &request).await;
            self.messages = request.messages;
            match result {
                Ok(reply) => {
                    let turn = reply.turn();
                    self.messages.push(turn.assistant);
                    return Ok(reply);
                }
                Err(NoReply::ContextFull(message)) => {
                    if !self.compact("the model's context is full")? {
                        // As in a pipeline, this is a result of the method with this model.
                        let reason = message.clone();
                        self.no_reply(Purpose::Step, NoReplyCause::ContextFull { message })?;
                        return Err(Outcome::nothing(reason));
                    }
                }
                // A service may refuse a prompt that is too long without saying so.
                Err(NoReply::Refused(message)) => {
                    let is_first = !std::mem::replace(&mut self.shortened_after_refusal, true);
                    if !is_first || !self.compact("the service refused the request")? {
                        return Err(ModelError::Refused { message }.into());
                    }
                }
                Err(no_reply) => return Err(no_reply.into()),
            }
        }
    }

    /// Cuts the oldest answers, or long texts. Returns false if nothing is left to cut.
    fn compact(&mut self, why: &str) -> Flow<bool> {
        let Some(until) = compaction::cut_position(&self.messages) else {
            return Ok(false);
        };
        self.record(&Event::Compacted { until })?;
        self.progress
            .note(&format!("{why}: older tool answers are cut"));
        self.compactions += 1;
        compaction::cut(&mut self.messages, until);
        Ok(true)
    }

    /// Returns a request without tools.
    fn request(&self, messages: Vec<Message>, temperature: Option<f64>) -> Request {
        Request {
            max_tokens: (self.budget).completion_tokens(&messages, &[], self.max_tokens),
            messages,
            tools: Vec::new(),
            parallel_calls: false,
            temperature,
        }
    }

    fn no_reply(&mut self, purpose: Purpose, cause: NoReplyCause) -> Flow {
        self.record(&Event::NoReply { purpose, cause })
    }

    /// Checks that the budget allows a new call. Otherwise, tells the user the amounts.
    fn check_budget(&mut self, purpose: Purpose, messages: &[Message], tools: &[ToolSpec]) -> Flow {
        if self.replay.is_over()
            && let Some(limit) = self.budget.next_call(messages, tools)
        {
            if let Some(text) = self.budget.describe_excess(limit, messages, tools) {
                self.progress.note(&text);
            }
            self.call_not_made(purpose, limit)?;
            return Err(limit.into());
        }
        Ok(())
    }

    /// Records a call that was not made for lack of time; other limits follow from the record.
    fn call_not_made(&mut self, purpose: Purpose, limit: Limit) -> Flow {
        let call_started = false;
        match limit {
            Limit::Minutes => self.no_reply(purpose, NoReplyCause::TimeUp { call_started }),
            _ => Ok(()),
        }
    }

    /// Makes a side call for a review, without tools. Returns `None` if the budget does not allow it or the prompt does
    /// not fit.
    ///
    /// # Errors
    ///
    /// Fails with the outcome that ends the run: the time is up during the call, or the model or the record
    /// fails.
    pub async fn side_reply(&mut self, messages: Vec<Message>) -> Flow<Option<Reply>> {
        if self.replay.is_over()
            && let Some(limit) = self.budget.side_call(&messages)
        {
            self.call_not_made(Purpose::Review, limit)?;
            return Ok(None);
        }
        let request = self.request(messages, self.temperature);
        match self.call_model(Purpose::Review, &request).await {
            Ok(reply) => Ok(Some(reply)),
            Err(NoReply::ContextFull(_) | NoReply::TimeUp { begun: false }) => Ok(None),
            Err(no_reply) => Err(no_reply.into()),
        }
    }

    /// Makes the model call of a pipeline's stage, whose prompt is independent of earlier ones. A temperature
    /// above 0 is sent whatever the settings say.
    ///
    /// # Errors
    ///
    /// Fails with the outcome that ends the run: the budget is used up, the prompt does not fit, or the
    /// model or the record fails.
    pub async fn prompt_reply(&mut self, messages: Vec<Message>, temperature: f64) -> Flow<Reply> {
        self.check_budget(Purpose::Prompt, &messages, &[])?;
        let request = self.request(messages, decoding(self.temperature, Some(temperature)));
        Ok(self.call_model(Purpose::Prompt, &request).await?)
    }

    /// Makes a model call for a program of the user. The inner error is a message for that program.
    ///
    /// # Errors
    ///
    /// Fails with the outcome that ends the run: the budget is used up, or the model or the record fails.
    pub async fn program_reply(&mut self, mut request: Request) -> Flow<Result<Reply, String>> {
        let most = request.max_tokens.into_iter().chain(self.max_tokens).min();
        request.max_tokens =
            (self.budget).completion_tokens(&request.messages, &request.tools, most);
        request.temperature = decoding(self.temperature, request.temperature);
        if !self.replay.has_reply(&digest(&request)) {
            self.leave_recording();
        }
        self.check_budget(Purpose::Prompt, &request.messages, &request.tools)?;
        self.recorded_messages = repeated(&self.program_messages, &request.messages);
        let result = self.call_model(Purpose::Prompt, &request).await;
        self.recorded_messages = 0;
        match result {
            Ok(reply) => {
                self.program_messages = request.messages;
                self.program_messages.push(reply.turn().assistant);
                Ok(Ok(reply))
            }
            // The program may shorten or change its request.
            Err(NoReply::ContextFull(message) | NoReply::Refused(message)) => Ok(Err(message)),
            Err(no_reply) => Err(no_reply.into()),
        }
    }

    async fn call_model(&mut self, purpose: Purpose, request: &Request) -> Result<Reply, NoReply> {
        let step = purpose.is_step();
        if let Some(recorded) = self.replay.reply(purpose) {
            if !self.replay.has_live_tools() {
                self.budget.add_earlier_time(recorded.seconds);
            }
            self.budget
                .record_call(&recorded.reply, request, recorded.seconds, step);
            let now = digest(request);
            if now != recorded.request {
                tracing::debug!(
                    recorded = recorded.request,
                    now,
                    "the request differs from the recorded one"
                );
            }
            return Ok(recorded.reply);
        }
        if let Some(cause) = self.replay.no_reply(purpose) {
            return Err(match cause {
                NoReplyCause::ContextFull { message } if purpose == Purpose::Step => {
                    NoReply::Ended(Outcome::nothing(message))
                }
                NoReplyCause::ContextFull { message } => NoReply::ContextFull(message),
                NoReplyCause::TimeUp {
                    call_started: begun,
                } => NoReply::TimeUp { begun },
            });
        }
        if self.replay.has_live_tools() {
            return Err(Outcome::nothing("the recorded run ends here").into());
        }
        self.restore_workspace().await?;
        self.session.health().await.map_err(Outcome::from)?;
        let step_number = self.budget.spent.steps + u32::from(step);
        self.progress.begins(&StepView {
            step: step_number,
            action: if step { "model" } else { "review" },
            detail: "",
            spent: &self.budget.spent,
            seconds: 0.0,
        });
        let had_processor = self.processor.release();
        let started = Instant::now();
        let remaining_time = self.budget.left();
        let answered = tokio::time::timeout(remaining_time, self.model.complete(request)).await;
        let seconds = started.elapsed().as_secs_f64();
        if had_processor {
            self.acquire_processor().await;
        }
        let reply = match answered {
            Err(_) => return self.record_time_up(purpose, true),
            Ok(Err(ModelError::TimeUp { begun })) => return self.record_time_up(purpose, begun),
            Ok(Err(ModelError::ContextFull(message))) => {
                // The conversation records how it handles this.
                if purpose != Purpose::Step {
                    let message = message.clone();
                    self.no_reply(purpose, NoReplyCause::ContextFull { message })?;
                }
                return Err(NoReply::ContextFull(message));
            }
            Ok(Err(ModelError::Refused { message })) => return Err(NoReply::Refused(message)),
            Ok(Err(error)) => return Err(NoReply::Ended(error.into())),
            Ok(Ok(reply)) => reply,
        };
        self.record(&Event::Reply {
            purpose,
            request: digest(request),
            messages: match purpose {
                Purpose::Step => Vec::new(),
                Purpose::Prompt | Purpose::Review => {
                    request.messages[self.recorded_messages..].to_vec()
                }
            },
            reply: reply.clone(),
            seconds,
        })?;
        self.budget.record_call(&reply, request, seconds, step);
        let called = describe_calls(&reply);
        self.progress.ended(&StepView {
            step: step_number,
            action: if step { "model" } else { "review" },
            detail: match first_line(&reply.content) {
                "" => &called,
                line => line,
            },
            spent: &self.budget.spent,
            seconds,
        });
        Ok(reply)
    }

    fn record_time_up<T>(&mut self, purpose: Purpose, begun: bool) -> Result<T, NoReply> {
        let call_started = begun;
        self.no_reply(purpose, NoReplyCause::TimeUp { call_started })?;
        Err(NoReply::TimeUp { begun })
    }
}

/// The reason why [`Run::call_model`] has no reply.
enum NoReply {
    ContextFull(String),
    Refused(String),
    TimeUp { begun: bool },
    Ended(Outcome),
}

impl From<Outcome> for NoReply {
    fn from(outcome: Outcome) -> Self {
        NoReply::Ended(outcome)
    }
}

impl From<NoReply> for Outcome {
    fn from(no_reply: NoReply) -> Self {
        match no_reply {
            // This is a result of the method with this model; a retry would give the same.
            NoReply::ContextFull(message) => Outcome::nothing(message),
            NoReply::Refused(message) => ModelError::Refused { message }.into(),
            NoReply::TimeUp { .. } => Limit::Minutes.into(),
            NoReply::Ended(outcome) => outcome,
        }
    }
}

/// Names the calls of a reply, for one without text.
fn describe_calls(reply: &Reply) -> String {
    let names: Vec<&str> = reply.calls.iter().map(|call| call.name.as_str()).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("called {}", names.join(", ")),
    }
}

/// Returns the number of leading messages that a request repeats. Programs may change the form of replies.
fn repeated(before: &[Message], now: &[Message]) -> usize {
    let is_same = |(before, now): &(&Message, &Message)| match (before, now) {
        (Message::Assistant { .. }, Message::Assistant { .. }) => true,
        (before, now) => before == now,
    };
    before.iter().zip(now).take_while(is_same).count()
}

/// Returns the temperature of a pipeline's call. The setting replaces 0, which is a default. A temperature
/// above 0 asks for different samples, from which a method chooses.
fn decoding(setting: Option<f64>, temperature: Option<f64>) -> Option<f64> {
    match temperature {
        Some(temperature) if temperature > 0.0 => Some(temperature),
        _ => setting.or(temperature),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_replaces_zero_temperature_only() {
        assert_eq!(decoding(None, Some(0.0)), Some(0.0));
        assert_eq!(decoding(Some(1.0), Some(0.0)), Some(1.0));
        assert_eq!(decoding(Some(1.0), None), Some(1.0));
        assert_eq!(decoding(Some(0.0), Some(0.7)), Some(0.7));
        assert_eq!(decoding(None, Some(0.7)), Some(0.7));
    }
}
