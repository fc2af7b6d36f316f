//! Recorded events that are yet to be replayed, to resume after a crash and for `testwright replay`.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::Outcome;
use crate::session::Contents;
use crate::trajectory::{Event, NoReplyCause, Purpose, RecordedAnswer};
use testwright_models::Reply;

/// The remaining events of a recorded run.
#[derive(Debug, Default)]
pub struct Replay {
    events: VecDeque<Event>,
    /// Whether tools run again and their answers are compared; otherwise recorded answers are used.
    live_tools: bool,
    /// Differences between recorded and present answers.
    pub differences: Vec<ReplayDifference>,
    state: Contents,
    /// Number of recorded stage results that were skipped and that no stage has reached again.
    stages: u32,
}

/// A tool's answer that differs from the recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayDifference {
    /// Number of the step, counted from 1.
    pub step: u32,
    /// Name of the tool.
    pub tool: String,
    /// Answer in the recording.
    pub recorded: String,
    /// Answer now.
    pub replayed: String,
}

/// A recorded reply.
pub(super) struct RecordedReply {
    pub request: String,
    pub reply: Reply,
    pub seconds: f64,
}

impl Replay {
    /// Creates a replay that continues where the events end.
    pub fn resume(events: Vec<Event>) -> Self {
        Replay {
            events: events.into(),
            ..Replay::default()
        }
    }

    /// Creates a replay that repeats the model's replies in a fresh sandbox.
    pub fn with_live_tools(events: Vec<Event>) -> Self {
        Replay {
            live_tools: true,
            ..Replay::resume(events)
        }
    }

    /// Returns whether tools run again, so that their answers are compared with the recording.
    pub fn has_live_tools(&self) -> bool {
        self.live_tools
    }

    /// Returns whether no recorded event is left, so that everything from now on is new.
    pub(super) fn is_over(&mut self) -> bool {
        self.skip();
        self.events.is_empty()
    }

    /// Returns the files that differ from the base commit at this point of the recording.
    pub(super) fn state(&mut self) -> &Contents {
        self.skip();
        &self.state
    }

    /// Takes the files that differ from the base commit at this point of the recording.
    pub(super) fn take_state(&mut self) -> Contents {
        self.skip();
        std::mem::take(&mut self.state)
    }

    /// Returns whether the next stage result is recorded.
    pub(super) fn has_stage(&mut self) -> bool {
        self.skip();
        let recorded = self.stages > 0;
        self.stages = self.stages.saturating_sub(1);
        recorded
    }

    /// Drops events without an answer, and keeps track of the files. The same code creates their messages
    /// again.
    fn skip(&mut self) {
        while let Some(event) = self.events.front() {
            match event {
                Event::Reply { .. }
                | Event::Answer(_)
                | Event::Compacted { .. }
                | Event::NoReply { .. }
                | Event::DraftEnded { .. } => return,
                Event::State { files, .. } => {
                    for file in files {
                        if file.base {
                            self.state.remove(&file.path);
                        } else {
                            self.state.insert(file.path.clone(), file.content.clone());
                        }
                    }
                }
                Event::Stage { .. } => self.stages += 1,
                Event::Started(_)
                | Event::Message { .. }
                | Event::Resumed { .. }
                | Event::Ended { .. } => {}
            }
            self.events.pop_front();
        }
    }

    /// Takes the next event if it is the expected one.
    fn take_if(&mut self, is_expected: impl FnOnce(&Event) -> bool) -> Option<Event> {
        self.skip();
        self.events.pop_front_if(|event| is_expected(event))
    }

    /// Returns the recorded reply, if one with this purpose is next.
    pub(super) fn reply(&mut self, expected: Purpose) -> Option<RecordedReply> {
        let is_reply =
            |event: &Event| matches!(event, Event::Reply { purpose, .. } if *purpose == expected);
        match self.take_if(is_reply)? {
            Event::Reply {
                request,
                reply,
                seconds,
                ..
            } => Some(RecordedReply {
                request,
                reply,
                seconds,
            }),
            _ => None,
        }
    }

    /// Returns whether the reply to the request with this digest is next.
    pub(super) fn has_reply(&mut self, digest: &str) -> bool {
        self.skip();
        matches!(self.events.front(), Some(Event::Reply { request, .. }) if request == digest)
    }

    /// Returns whether the answer to a call is next.
    pub(super) fn has_answer(&mut self, call: &str) -> bool {
        self.answer_position(call).is_some()
    }

    /// Drops the remaining events, and returns them. The files stay as they were at this point of the recording.
    pub(super) fn abandon(&mut self) -> VecDeque<Event> {
        self.skip();
        self.stages = 0;
        std::mem::take(&mut self.events)
    }

    fn answer_position(&mut self, call: &str) -> Option<usize> {
        self.skip();
        let at = self.events.iter().position(|event| match event {
            Event::Answer(_) | Event::DraftEnded { .. } => true,
            Event::Reply { purpose, .. } | Event::NoReply { purpose, .. } => purpose.is_step(),
            _ => false,
        })?;
        match self.events.get(at) {
            Some(Event::Answer(answer)) if answer.result.id == call => Some(at),
            _ => None,
        }
    }

    /// Drops the replies requested while a call ran, such as a review, and returns each with its seconds. It returns none
    /// unless the answer to the call is next.
    pub(super) fn take_side_replies(&mut self, call: &str) -> Vec<(Reply, f64)> {
        let at = self.answer_position(call).unwrap_or_default();
        let side_reply = |event: Event| match event {
            Event::Reply { reply, seconds, .. } => Some((reply, seconds)),
            _ => None,
        };
        self.events.drain(..at).filter_map(side_reply).collect()
    }

    /// Returns the recorded answer to a call, if it is next. Replies requested on the way, such as a review,
    /// are skipped.
    pub(super) fn answer(&mut self, call: &str) -> Option<RecordedAnswer> {
        let at = self.answer_position(call)?;
        match self.events.drain(..=at).next_back() {
            Some(Event::Answer(answer)) => Some(answer),
            _ => None,
        }
    }

    /// Returns why a call with this purpose has no reply, if that is recorded next.
    pub(super) fn no_reply(&mut self, expected: Purpose) -> Option<NoReplyCause> {
        let is_cause =
            |event: &Event| matches!(event, Event::NoReply { purpose, .. } if *purpose == expected);
        match self.take_if(is_cause)? {
            Event::NoReply { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// Returns how the draft ended, if its end is next and no other recorded event tells.
    pub(super) fn draft_outcome(&mut self) -> Option<Outcome> {
        self.skip();
        match self.events.front() {
            Some(Event::DraftEnded { limit, reason, .. }) => {
                let nothing = || reason.clone().map(Outcome::nothing);
                limit.map(Outcome::from).or_else(nothing)
            }
            _ => None,
        }
    }

    /// Returns whether the end of a draft is recorded next.
    pub(super) fn draft_ended(&mut self) -> bool {
        let is_end = |event: &Event| matches!(event, Event::DraftEnded { .. });
        self.take_if(is_end).is_some()
    }

    /// Returns the recorded compaction, if it is next.
    pub(super) fn compacted(&mut self) -> Option<usize> {
        match self.take_if(|event| matches!(event, Event::Compacted { .. }))? {
            Event::Compacted { until } => Some(until),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
