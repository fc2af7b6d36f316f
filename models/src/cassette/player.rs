//! Replays recorded answers.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use testwright_sandboxes::plain_file::LineReader;

use super::digest::{as_value, difference};
use super::{Exchange, Setting, digest};
use crate::{Message, Model, ModelError, Reply, Request};

/// Maximum size of a recording in bytes.
const MAX_FILE: u64 = 512 << 20;
const MAX_LINE: usize = 64 << 20;

/// Replays a cassette in order, and checks each request against the recorded one.
#[derive(Debug)]
pub struct Replayer {
    name: String,
    path: PathBuf,
    /// Whether to answer in order without checking requests.
    lenient: bool,
    tape: Vec<RecordedExchange>,
    used: Mutex<Vec<bool>>,
}

#[derive(Debug)]
struct RecordedExchange {
    digest: String,
    /// Number of messages shared with the previous request.
    kept: usize,
    messages: Vec<Message>,
    setting: Arc<Setting>,
    outcome: Result<Reply, ModelError>,
}

impl RecordedExchange {
    /// Returns the number of messages of the request.
    fn len(&self) -> usize {
        self.kept + self.messages.len()
    }
}

impl Replayer {
    /// Opens a cassette. An incomplete last line, left by a killed recording, is ignored.
    ///
    /// # Errors
    ///
    /// Fails with `InvalidData` if the file is not a cassette. The error names the line and never quotes its
    /// content, because clients read it.
    pub fn open(path: &Path, lenient: bool) -> io::Result<Self> {
        let mut lines = LineReader::open(path, MAX_FILE)?.with_max_line(MAX_LINE);
        let mut name = String::new();
        let mut tape: Vec<RecordedExchange> = Vec::new();
        let mut setting: Option<Arc<Setting>> = None;
        let wrong = |number: usize, what: &str| {
            let text = format!("line {number}: {what}");
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        while let Some(line) = lines.next_line()? {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let exchange = serde_json::from_slice::<Exchange>(line);
            let wrong = |what: &str| wrong(lines.number(), what);
            let exchange = exchange.map_err(|_| wrong("it is not an exchange with a model"))?;
            setting = exchange.setting.map(Arc::new).or(setting);
            let Some(setting) = &setting else {
                return Err(wrong("the beginning of the recording is missing"));
            };
            if exchange.kept > tape.last().map_or(0, RecordedExchange::len) {
                return Err(wrong("it refers to messages that are not recorded"));
            }
            let outcome = match (exchange.reply, exchange.error) {
                (Some(reply), None) => Ok(reply),
                (None, Some(error)) => Err(error),
                _ => return Err(wrong("it must have either a reply or an error")),
            };
            name = exchange.model;
            tape.push(RecordedExchange {
                digest: exchange.digest,
                kept: exchange.kept,
                messages: exchange.messages,
                setting: setting.clone(),
                outcome,
            });
        }
        Ok(Replayer {
            name,
            path: path.to_owned(),
            lenient,
            used: Mutex::new(vec![false; tape.len()]),
            tape,
        })
    }

    /// Returns the request of an exchange. Only the messages that each line adds are in memory, because a
    /// short line may keep many.
    fn request(&self, at: usize) -> Request {
        let mut parts: Vec<&[Message]> = Vec::new();
        let mut message_count = self.tape[at].len();
        for exchange in self.tape[..=at].iter().rev() {
            if message_count > exchange.kept {
                parts.push(&exchange.messages[..message_count - exchange.kept]);
                message_count = exchange.kept;
            }
        }
        parts.reverse();
        let setting = &self.tape[at].setting;
        Request {
            messages: parts.concat(),
            tools: setting.tools.clone(),
            parallel_calls: setting.parallel_calls,
            temperature: setting.temperature,
            max_tokens: setting.max_tokens,
        }
    }

    /// Returns the number of exchanges that were not used yet.
    pub fn left(&self) -> usize {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.iter().filter(|used| !**used).count()
    }
}

#[async_trait]
impl Model for Replayer {
    fn name(&self) -> &str {
        &self.name
    }

    async fn complete(&self, request: &Request) -> Result<Reply, ModelError> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(next) = used.iter().position(|used| !used) else {
            return Err(ModelError::NotRecorded(format!(
                "{} holds {} exchanges, and the run needs one more",
                self.path.display(),
                self.tape.len()
            )));
        };
        let request_digest = digest(request);
        // Concurrent requests may arrive in another order than they were recorded.
        let index = if self.lenient {
            Some(next)
        } else {
            (next..self.tape.len()).find(|&i| !used[i] && self.tape[i].digest == request_digest)
        };
        let Some(index) = index else {
            let recorded = self.request(next);
            let place = difference(&as_value(&recorded), &as_value(request), "")
                .unwrap_or_else(|| "its digest".to_owned());
            return Err(ModelError::NotRecorded(format!(
                "request {} differs from the one recorded in {}, at {place}",
                next + 1,
                self.path.display()
            )));
        };
        used[index] = true;
        self.tape[index].outcome.clone()
    }
}
