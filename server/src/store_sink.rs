//! Writes the events of a run to the store as they happen.

use std::sync::{Arc, Mutex};

use tokio::runtime::Handle;
use tokio::sync::broadcast;

use super::telemetry::RunObserver;
use crate::store::{JobId, Store, StoredEvent};
use testwright_agent::trajectory::{Event, EventSink};
use testwright_config::error::Result;
use testwright_config::lock::lock;

pub(crate) struct StoreSink {
    pub store: Store,
    pub run: JobId,
    pub attempt: i64,
    pub changes: broadcast::Sender<JobId>,
    pub runtime: Handle,
    pub observer: Arc<RunObserver>,
    pub last_event: LastEvent,
}

/// The event that ends a run. It is stored together with the run's record. If a worker dies before that, the run has
/// not ended, and the next worker ends it with its record.
pub(crate) type LastEvent = Arc<Mutex<Option<StoredEvent>>>;

impl EventSink for StoreSink {
    fn add(&self, number: u64, line: &str) -> Result<()> {
        let stored = StoredEvent {
            number: i64::try_from(number).unwrap_or(i64::MAX),
            line: line.to_owned(),
        };
        let event = serde_json::from_str(line);
        if matches!(event, Ok(Event::Ended { .. })) {
            *lock(&self.last_event) = Some(stored);
            return Ok(());
        }
        let added = self.store.add_event(&self.run, self.attempt, stored);
        let added = tokio::task::block_in_place(|| self.runtime.block_on(added));
        let _ = self.changes.send(self.run.clone());
        if let (Ok(()), Ok(event)) = (&added, event) {
            self.observer.stored(&event);
        }
        added
    }
}
