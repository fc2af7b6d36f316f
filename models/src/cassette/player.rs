//! Answers from a record.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use testwright_sandboxes::plain_file::Lines;

use super::digest::{as_value, difference};
use super::{Exchange, Setting, digest};
use crate::{Message, Model, ModelError, Reply, Request};

/// Maximum bytes of a recording, and of one of its lines. A reply alone may have 16 MiB.
const MAX_FILE: u64 = 512 << 20;
const MAX_LINE: usize = 64 << 20;

/// Plays a cassette: by order, each request checked against the recorded one.
#[derive(Debug)]
pub struct Replayer {
    name: String,
    path: PathBuf,
    /// Answer whatever is asked, by order alone.
    lenient: bool,
    tape: Vec<RecordedExchange>,
    used: Mutex<Vec<bool>>,
}

#[derive(Debug)]
struct RecordedExchange {
    digest: String,
    /// How many messages the request has in common with the one before.
    kept: usize,
    messages: Vec<Message>,
    setting: Arc<Setting>,
    outcome: Result<Reply, ModelError>,
}

impl RecordedExchange {
    /// Number of messages of the request.
    fn len(&self) -> usize {
        self.kept + self.messages.len()
    }
}

impl Replayer {
    /// Reads a cassette. Half a line at its end (the recording was killed) is left out.
    ///
    /// # Errors
    /// Of the kind `InvalidData` for a file that is not a cassette. They name the line and never repeat its content, since
    /// clients read them.
    pub fn open(path: &Path, lenient: bool) -> io::Result<Self> {
        let mut lines = Lines::open(path, MAX_FILE)?.with_max_line(MAX_LINE);
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
                return Err(wrong("it goes on from messages that are not recorded"));
            }
            let outcome = match (exchange.reply, exchange.error) {
                (Some(reply), None) => Ok(reply),
                (None, Some(error)) => Err(error),
                _ => return Err(wrong("it has not one of reply and error")),
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

    /// The request of an exchange. Only the messages that each line adds are held: a small line may keep many.
    fn request(&self, at: usize) -> Request {
        let mut parts: Vec<&[Message]> = Vec::new();
        let mut wanted = self.tape[at].len();
        for exchange in self.tape[..=at].iter().rev() {
            if wanted > exchange.kept {
                parts.push(&exchange.messages[..wanted - exchange.kept]);
                wanted = exchange.kept;
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

    /// Exchanges that nobody has asked for yet.
    pub fn left(&self) -> usize {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.iter().filter(|used| !**used).count()
    }

    fn answer(&self, request: &Request) -> Result<Reply, ModelError> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(next) = used.iter().position(|used| !used) else {
            return Err(ModelError::NotRecorded(format!(
                "{} holds {} exchanges, and one more is asked for",
                self.path.display(),
                self.tape.len()
            )));
        };
        let asked = digest(request);
        // Requests that ran side by side may come in another order than they were written down.
        let found = if self.lenient {
            Some(next)
        } else {
            (next..self.tape.len()).find(|&i| !used[i] && self.tape[i].digest == asked)
        };
        let Some(found) = found else {
            let recorded = self.request(next);
            let place = difference(&as_value(&recorded), &as_value(request), "")
                .unwrap_or_else(|| "its digest".to_owned());
            return Err(ModelError::NotRecorded(format!(
                "request {} differs from the one recorded in {}, at {place}",
                next + 1,
                self.path.display()
            )));
        };
        used[found] = true;
        self.tape[found].outcome.clone()
    }
}

#[async_trait]
impl Model for Replayer {
    fn name(&self) -> &str {
        &self.name
    }

    async fn complete(&self, request: &Request) -> Result<Reply, ModelError> {
        self.answer(request)
    }
}
