//! What waits for a worker: a queue of apalis in the store's database. A worker shows that it lives by heartbeats; what a
//! dead one had taken is given to others.
//!
//! A message is a ticket: it says that a worker may take something, and not what ([`Store::take`] chooses, so that nobody
//! waits behind another's thousand). What a run, a matrix or a grading is and what became of it is in the [`Store`], so that
//! a message that comes twice does no harm.

use std::time::Duration;

use apalis::layers::WorkerBuilderExt as _;
use apalis::prelude::{
    BoxDynError, IntervalStrategy, PollWith, TaskBuilder, TaskSink, WorkerBuilder,
};
use apalis_postgres::PostgresStorage;
use apalis_sqlite::SqliteStorage;
use serde::{Deserialize, Serialize};

use crate::store::{Database, RunId, Store, now};
use testwright_config::error::{Error, Result};

/// Its name in the tables of apalis.
pub const QUEUE: &str = "runs";
const HEARTBEAT: Duration = Duration::from_secs(3);
/// A worker that has missed so many is dead.
const MISSED: usize = 5;
/// How often a worker with nothing to do looks for a ticket: without this, apalis looks at each heartbeat.
const IDLE_POLL: Duration = Duration::from_millis(500);
/// How often a ticket is taken up again after its worker died or was asked to end.
const ATTEMPTS: usize = 25;

#[derive(Clone)]
pub struct Queue(Backend);

#[derive(Clone)]
enum Backend {
    Sqlite(SqliteStorage<Ticket>),
    Postgres(PostgresStorage<Ticket>),
}

/// A message, as `{"run": ID}`: its id tells one from another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ticket {
    #[serde(rename = "run", alias = "matrix")]
    pub id: RunId,
}

/// What is done with it. An error gives it back to the queue.
#[async_trait::async_trait]
pub trait Consumer: Send + Sync + 'static {
    async fn consume(&self, ticket: &Ticket) -> Result<()>;
}

impl Queue {
    /// Brings the queue's tables up to date.
    pub async fn open(store: &Store) -> Result<Self> {
        let failed =
            |error: &dyn std::fmt::Display| Error::infrastructure("open the queue").cause(error);
        let _lock = store.migration_lock().await?;
        Ok(Queue(match store.database() {
            Database::Sqlite(pool) => {
                let mut migrations = SqliteStorage::<()>::migrations();
                migrations.set_ignore_missing(true);
                migrations.run(pool).await.map_err(|e| failed(&e))?;
                let config = apalis_sqlite::Config::default()
                    .queue(QUEUE)
                    .batch_size(1)
                    .heartbeat_interval(HEARTBEAT)
                    .missed_heartbeats(MISSED);
                Backend::Sqlite(SqliteStorage::new(pool).with_config(config))
            }
            Database::Postgres(pool) => {
                let migrated = PostgresStorage::<()>::setup(pool).await;
                migrated.map_err(|e| failed(&e))?;
                let config = apalis_postgres::Config::default()
                    .queue(QUEUE)
                    .batch_size(1)
                    .heartbeat_interval(HEARTBEAT)
                    .missed_heartbeats(MISSED);
                Backend::Postgres(PostgresStorage::new(pool).with_config(config))
            }
        }))
    }

    /// Lets a worker take one thing more.
    pub async fn push_ticket(&self) -> Result<()> {
        let ticket = Ticket {
            id: RunId::new(now()),
        };
        let task = TaskBuilder::new(ticket).max_attempts(ATTEMPTS).build();
        let pushed: std::result::Result<(), String> = match &self.0 {
            Backend::Sqlite(storage) => {
                let pushed = storage.clone().push_task(task).await;
                pushed.map_err(|e| e.to_string())
            }
            Backend::Postgres(storage) => {
                let pushed = storage.clone().push_task(task).await;
                pushed.map_err(|e| e.to_string())
            }
        };
        pushed.map_err(|error| Error::infrastructure("queue it").cause(error))
    }

    /// Tells a worker that something was stored for it. If that fails, `recovery` does it later, so
    /// what was stored is not reported as a failure.
    pub async fn wake_a_worker(&self) {
        if let Err(error) = self.push_ticket().await {
            let error = error.with_cause();
            tracing::warn!(error, "stored work waits for the next check of the queue");
        }
    }

    /// Takes what waits, so many at a time, until `stop` ends; then waits for those that were taken.
    pub async fn work(
        &self,
        worker: &str,
        at_once: usize,
        consumer: std::sync::Arc<dyn Consumer>,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<()> {
        let handle = move |ticket: Ticket| {
            let consumer = consumer.clone();
            async move {
                let consumed = consumer.consume(&ticket).await;
                consumed.map_err(|error| BoxDynError::from(error.to_string()))
            }
        };
        let stop = async move {
            stop.await;
            Ok::<(), std::io::Error>(())
        };
        let worked = match &self.0 {
            Backend::Sqlite(storage) => {
                let built = WorkerBuilder::new(worker)
                    .backend(PollWith::new(storage.clone(), idle_poll()))
                    .concurrency(at_once)
                    .build(handle);
                built.run_until(stop).await
            }
            Backend::Postgres(storage) => {
                let built = WorkerBuilder::new(worker)
                    .backend(PollWith::new(storage.clone(), idle_poll()))
                    .concurrency(at_once)
                    .build(handle);
                built.run_until(stop).await
            }
        };
        worked.map_err(|error| Error::infrastructure("work on what is queued").cause(error))
    }
}

fn idle_poll() -> IntervalStrategy {
    IntervalStrategy::new(IDLE_POLL)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn messages_of_earlier_versions_are_read() {
        let id = RunId::parse("00000000000aaaaaaaa").unwrap();
        for text in [
            r#"{"run":"00000000000aaaaaaaa"}"#,
            r#"{"matrix":"00000000000aaaaaaaa"}"#,
        ] {
            let ticket: Ticket = serde_json::from_str(text).unwrap();
            assert_eq!(ticket.id, id);
        }
    }
}
