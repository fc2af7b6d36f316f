//! Recognizes that a run makes no progress: the same calls with the same answers, also in turn, or calls that
//! cannot be read.

use std::collections::VecDeque;

use testwright_models::{Finish, Reply};
use testwright_sandboxes::Pattern;

/// Number of earlier replies that are compared with a new one.
const WINDOW: usize = 8;
/// Number of replies without progress after which the model is told.
const TELL_AFTER: u32 = 3;
/// Number of replies without progress after which the run ends.
const END_AFTER: u32 = 6;

/// The progress of a conversation so far.
#[derive(Debug, Default)]
pub(super) struct Repetition {
    recent: VecDeque<String>,
    /// Number of replies in a row that repeat earlier ones.
    repeated: u32,
    /// Number of replies whose calls could not be read, since the last one with a new call.
    unreadable: u32,
}

/// The next step after a reply.
#[derive(Debug, PartialEq)]
pub(super) enum Advice {
    GoOn,
    /// Tell the model that `replies` replies made no progress; `left` more of them end the run.
    Tell {
        replies: u32,
        left: u32,
        why: String,
    },
    /// End the run for this reason.
    End(String),
}

impl Repetition {
    /// Forgets earlier replies: after a compaction, the model has reason to repeat a call.
    pub(super) fn forget(&mut self) {
        self.recent.clear();
        self.repeated = 0;
    }

    /// Adds a reply with the answers to its calls. Replies without any call are counted elsewhere.
    pub(super) fn add(&mut self, reply: &Reply, answers: &[&str]) -> Advice {
        if reply.calls.is_empty() && reply.malformed.is_empty() {
            return Advice::GoOn;
        }
        let step = fingerprint(reply, answers);
        let is_repeated = self.recent.contains(&step);
        match is_repeated {
            true => self.repeated += 1,
            false => self.repeated = 0,
        }
        self.recent.push_back(step);
        if self.recent.len() > WINDOW {
            self.recent.pop_front();
        }
        if reply.calls.is_empty() {
            self.unreadable += 1;
        } else if !is_repeated {
            self.unreadable = 0;
        }
        self.advice(reply)
    }

    fn advice(&self, reply: &Reply) -> Advice {
        let replies = (self.repeated + 1).max(self.unreadable);
        let why = self.cause(reply);
        if replies >= END_AFTER {
            let advice = match reply.finish == Finish::Length && self.unreadable >= END_AFTER {
                true => "; raise `max-tokens` in [model]",
                false => "",
            };
            return Advice::End(format!(
                "the last {replies} replies made no progress, although the model was told: {why}{advice}"
            ));
        }
        match replies == TELL_AFTER {
            true => Advice::Tell {
                replies,
                left: END_AFTER - TELL_AFTER,
                why,
            },
            false => Advice::GoOn,
        }
    }

    fn cause(&self, reply: &Reply) -> String {
        if self.unreadable <= self.repeated {
            return "the same calls got the same answers".to_owned();
        }
        if reply.finish == Finish::Length {
            return "each reached its token limit in the middle of a tool call".to_owned();
        }
        match reply.malformed.last() {
            Some(bad) => format!("no tool call could be read ({})", bad.problem),
            None => "no tool call could be read".to_owned(),
        }
    }
}

/// Parts of an answer that differ from run to run: times, addresses and temporary folders.
static CHANGING: Pattern = Pattern::new(
    r"0x[0-9a-fA-F]+|\d+\.\d+ ?s\b|\d\d:\d\d:\d\d(?:[.,]\d+)?|\bpytest-\d+|\btmp[a-z0-9_]{8}\b",
);

fn fingerprint(reply: &Reply, answers: &[&str]) -> String {
    let calls = reply.calls.iter();
    let calls = calls.map(|call| format!("{}({})", call.name, call.arguments.as_str()));
    let malformed = reply.malformed.iter().map(|bad| bad.text.clone());
    let answers = answers.iter();
    let answers = answers.map(|answer| CHANGING.replace_all(answer, "…").into_owned());
    let parts: Vec<String> = calls.chain(malformed).chain(answers).collect();
    parts.join("\n")
}

#[cfg(test)]
mod tests;
