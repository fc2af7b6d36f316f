//! Model that replays the replies of a recorded run in order.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Mutex;

use async_trait::async_trait;

use testwright_agent::approaches::extra_inputs::ExtraInputs;
use testwright_agent::trajectory::{Event, NoReplyCause, RunFolder};
use testwright_config::error::{Error, Result};
use testwright_config::lock::lock;
use testwright_models::{Model, ModelError, Reply, Request};

/// Returns the extra inputs of a recorded run.
pub(super) fn recorded_inputs(folder: &Path) -> Result<ExtraInputs> {
    match events(folder)?.first() {
        Some(Event::Started(started)) => ExtraInputs::of_record(&started.settings),
        _ => Ok(ExtraInputs::default()),
    }
}

fn events(folder: &Path) -> Result<Vec<Event>> {
    RunFolder::read(folder).map_err(|error| {
        Error::usage(error.to_string()).hint("pass the folder of a finished comparison")
    })
}

/// A recorded reply, or the reason why there was none.
type Recorded = std::result::Result<Box<Reply>, ModelError>;

pub(super) struct RecordedModel {
    name: String,
    replies: Mutex<VecDeque<Recorded>>,
}

impl RecordedModel {
    pub(super) fn open(folder: &Path, name: &str) -> Result<Self> {
        let replies = events(folder)?.into_iter().filter_map(|event| match event {
            Event::Reply { reply, .. } => Some(Ok(Box::new(reply))),
            // The context was full, so older tool answers were cut.
            Event::Compacted { .. } => Some(Err(ModelError::ContextFull("as recorded".to_owned()))),
            Event::NoReply { cause: why, .. } => Some(Err(match why {
                NoReplyCause::ContextFull { message } => ModelError::ContextFull(message),
                NoReplyCause::TimeUp {
                    call_started: begun,
                } => ModelError::TimeUp { begun },
            })),
            _ => None,
        });
        Ok(RecordedModel {
            name: name.to_owned(),
            replies: Mutex::new(replies.collect()),
        })
    }
}

#[async_trait]
impl Model for RecordedModel {
    fn name(&self) -> &str {
        &self.name
    }

    async fn complete(&self, _: &Request) -> std::result::Result<Reply, ModelError> {
        match lock(&self.replies).pop_front() {
            Some(recorded) => recorded.map(|reply| *reply),
            None => Err(ModelError::NotRecorded(
                "the recorded run has no more replies".to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests;
