//! Answers from a record.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use super::digest::{as_value, difference};
use super::{Exchange, Setting, digest};
use crate::model::{Message, Model, ModelError, Reply, Request};

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
    request: Request,
    outcome: Result<Reply, ModelError>,
}

impl Replayer {
    /// Reads a cassette. Half a line at its end (the recording was killed) is left out.
    pub fn open(path: &Path, lenient: bool) -> std::io::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        let mut name = String::new();
        let mut tape: Vec<RecordedExchange> = Vec::new();
        let mut setting: Option<Setting> = None;
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for (i, line) in whole.lines().enumerate() {
            let wrong = |what: String| {
                std::io::Error::new(
                    std::io::ErrorKind::InvalidData,
                    format!("{}:{}: {what}", path.display(), i + 1),
                )
            };
            let exchange: Exchange =
                serde_json::from_str(line).map_err(|e| wrong(format!("no exchange: {e}")))?;
            setting = exchange.setting.or(setting);
            let Some(setting) = &setting else {
                return Err(wrong(
                    "the beginning of the recording is missing".to_owned(),
                ));
            };
            let before: &[Message] = tape.last().map_or(&[], |r| &r.request.messages);
            let kept = before.get(..exchange.kept).ok_or_else(|| {
                wrong("it goes on from messages that are not recorded".to_owned())
            })?;
            let request = Request {
                messages: [kept, &exchange.messages].concat(),
                tools: setting.tools.clone(),
                parallel_calls: setting.parallel_calls,
                temperature: setting.temperature,
                max_tokens: setting.max_tokens,
            };
            let outcome = match (exchange.reply, exchange.error) {
                (Some(reply), None) => Ok(reply),
                (None, Some(error)) => Err(error),
                _ => return Err(wrong("it has not one of reply and error".to_owned())),
            };
            name = exchange.model;
            tape.push(RecordedExchange {
                digest: exchange.digest,
                request,
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
            let recorded = &self.tape[next].request;
            let place = difference(&as_value(recorded), &as_value(request), "")
                .unwrap_or_else(|| "the digest alone differs".to_owned());
            return Err(ModelError::NotRecorded(format!(
                "request {} is not the one recorded in {}: {place}",
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
