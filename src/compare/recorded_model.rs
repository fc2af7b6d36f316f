//! A recorded run's model: its replies in their order.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use crate::error::{Error, Result};
use crate::model::{Model, ModelError, Reply, Request};
use crate::trajectory::{Event, RunFolder};

/// What the model did in a recorded run.
enum Recorded {
    Reply(Box<Reply>),
    /// Its context was full, and older tool answers were cut.
    ContextFull,
}

pub struct RecordedModel {
    name: String,
    replies: Mutex<VecDeque<Recorded>>,
}

impl RecordedModel {
    pub fn open(folder: &Path, name: &str) -> Result<Self> {
        let events = RunFolder::read(folder).map_err(|error| {
            Error::usage(error.to_string())
                .hint("replay takes the folder of a comparison that ended")
        })?;
        let replies = events.into_iter().filter_map(|event| match event {
            Event::Reply { reply, .. } => Some(Recorded::Reply(Box::new(reply))),
            Event::Compacted { .. } => Some(Recorded::ContextFull),
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
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        match replies.pop_front() {
            Some(Recorded::Reply(reply)) => Ok(*reply),
            Some(Recorded::ContextFull) => {
                Err(ModelError::ContextFull("as it was recorded".to_owned()))
            }
            None => Err(ModelError::NotRecorded(
                "the recorded run asks its model nothing more".to_owned(),
            )),
        }
    }
}
