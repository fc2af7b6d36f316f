//! Replies of models, and what agents left, on disk, a line each, appended when they come: an evaluation that was ended goes on with what is there.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use testwright_evals::clover::Budget;
use testwright_evals::clover::answer::Form;
use testwright_evals::clover::evaluation::{Answer, AnswerKey, End};

use super::REPLIES;
use super::plan::{Ask, SINGLE_CALL, system_name};
use crate::error::{Error, Result};
use crate::formats::code_block;
use crate::model::Usage;

/// A reply to one question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredReply {
    pub problem: String,
    #[serde(default = "single_call")]
    pub approach: String,
    pub model: String,
    pub budget: Budget,
    pub form: Form,
    /// Of the messages of a single call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_sha256: String,
    #[serde(flatten)]
    pub end: End,
    /// Of a single call what it said; of an agent its test file.
    pub text: String,
    /// Model calls.
    #[serde(default = "one")]
    pub calls: u32,
    pub usage: Usage,
    pub seconds: f64,
    /// The same messages were sent for another question; nothing was asked again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

fn single_call() -> String {
    SINGLE_CALL.to_owned()
}

fn one() -> u32 {
    1
}

impl StoredReply {
    pub fn system(&self) -> String {
        system_name(&self.approach, &self.model)
    }

    pub fn key(&self) -> AnswerKey {
        (self.problem.clone(), self.system(), self.budget, self.form)
    }

    /// What of it is judged.
    pub fn answer(&self) -> Answer {
        Answer {
            problem: self.problem.clone(),
            system: self.system(),
            budget: self.budget,
            form: self.form,
            end: self.end.clone(),
            code: match self.approach == SINGLE_CALL {
                true => code_block::code(&self.text).unwrap_or_default(),
                false => self.text.clone(),
            },
        }
    }
}

pub fn key(ask: &Ask<'_>) -> AnswerKey {
    (ask.problem.id.clone(), ask.system(), ask.budget, ask.form)
}

/// The replies of a folder, open for more.
pub struct Replies {
    path: PathBuf,
    content: Mutex<Content>,
}

struct Content {
    file: File,
    replies: BTreeMap<AnswerKey, StoredReply>,
}

impl Replies {
    /// Opens the file, and takes off half a line that a killed process left at its end.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(REPLIES);
        let failed = |error: std::io::Error| Error::io(format!("open {}", path.display()), &error);
        std::fs::create_dir_all(folder).map_err(failed)?;
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::Error(error)) => return Err(failed(error)),
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(Error::usage(format!("use {}", folder.display()))
                    .cause("another process writes into this folder"));
            }
        }
        let (replies, whole) = read(&path)?;
        file.set_len(whole).map_err(failed)?;
        Ok(Replies {
            path,
            content: Mutex::new(Content { file, replies }),
        })
    }

    pub fn get(&self, key: &AnswerKey) -> Option<StoredReply> {
        let content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        content.replies.get(key).cloned()
    }

    /// A reply of the model to the same messages.
    pub fn to_request(&self, model: &str, request: &str) -> Option<StoredReply> {
        let content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        let mut replies = content.replies.values();
        let is_same = |reply: &&StoredReply| {
            reply.approach == SINGLE_CALL
                && reply.model == model
                && reply.request_sha256 == request
                && !matches!(reply.end, End::NoReply { .. })
        };
        replies.find(is_same).cloned()
    }

    /// It is on disk when this returns.
    pub fn add(&self, reply: StoredReply) -> Result<()> {
        let failed =
            |error: std::io::Error| Error::io(format!("write {}", self.path.display()), &error);
        let mut line = serde_json::to_vec(&reply).map_err(|e| failed(e.into()))?;
        line.push(b'\n');
        let mut content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        let before = content.file.metadata().map_err(failed)?.len();
        let written = content.file.write_all(&line);
        if let Err(error) = written.and_then(|()| content.file.sync_data()) {
            // The next line must not be glued to half of this one.
            let _ = content.file.set_len(before);
            return Err(failed(error));
        }
        content.replies.insert(reply.key(), reply);
        Ok(())
    }
}

fn read(path: &Path) -> Result<(BTreeMap<AnswerKey, StoredReply>, u64)> {
    let failed = |error: std::io::Error| Error::io(format!("read {}", path.display()), &error);
    let text = std::fs::read(path).map_err(failed)?;
    let whole = text
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let mut replies = BTreeMap::new();
    let lines = text[..whole].split(|byte| *byte == b'\n').enumerate();
    for (at, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let reply: StoredReply = serde_json::from_slice(line).map_err(|error| {
            Error::usage(format!("read {}", path.display()))
                .cause(format!("line {} is not a reply: {error}", at + 1))
        })?;
        replies.insert(reply.key(), reply);
    }
    Ok((replies, whole as u64))
}

/// The replies of a folder that nothing is added to.
pub fn stored(folder: &Path) -> Result<Vec<StoredReply>> {
    let path = folder.join(REPLIES);
    match path.is_file() {
        true => Ok(read(&path)?.0.into_values().collect()),
        false => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn reply(problem: &str, end: End) -> StoredReply {
        StoredReply {
            problem: problem.to_owned(),
            approach: single_call(),
            model: "m".to_owned(),
            budget: Budget::Tokens(4),
            form: Form::Assertion,
            request_sha256: "r".to_owned(),
            end,
            text: "It is\n```python\nassert x == 1\n```\n".to_owned(),
            calls: 1,
            usage: Usage::default(),
            seconds: 1.5,
            shared: false,
        }
    }

    #[test]
    fn replies_are_there_again_and_half_a_line_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let replies = Replies::open(folder.path()).unwrap();
        assert!(Replies::open(folder.path()).is_err(), "it is locked");
        let failed = End::NoReply {
            reason: "busy".to_owned(),
        };
        replies.add(reply("a", failed)).unwrap();
        assert_eq!(
            replies.to_request("m", "r"),
            None,
            "a failure is shared by nobody"
        );
        replies.add(reply("b", End::Complete)).unwrap();
        assert_eq!(replies.to_request("m", "r").unwrap().problem, "b");
        drop(replies);
        let path = folder.path().join(REPLIES);
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"problem\":");
        std::fs::write(&path, text).unwrap();
        let again = Replies::open(folder.path()).unwrap();
        let found = again.get(&reply("b", End::Complete).key()).unwrap();
        assert_eq!(found.answer().code, "assert x == 1\n");
        again.add(reply("c", End::CutOff)).unwrap();
        assert_eq!(stored(folder.path()).unwrap().len(), 3);
    }
}
