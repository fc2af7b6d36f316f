//! Trajectories of runs: lines numbered from 1 without gaps.

use super::job_id::JobId;
use super::queries::from_row;
use super::{Store, failure};
use testwright_config::error::{Error, Result};

/// Number of events of a trajectory read at a time.
const PAGE: u32 = 500;

/// An event of a run in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Number in the trajectory, counted from 1.
    pub number: i64,
    /// The event, as JSON.
    pub line: String,
}

from_row! { StoredEvent { number, line } }

impl Store {
    /// Adds the next event of an attempt. Each number can be used only once, so that no step is recorded twice.
    ///
    /// # Errors
    ///
    /// Fails if another worker has claimed the run, the number is already used, or the database query fails.
    pub async fn add_event(&self, run: &JobId, attempt: i64, event: StoredEvent) -> Result<()> {
        let what = "store an event";
        match insert(&self.pool, run, attempt, &event).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                Err(Error::infrastructure(what).cause("another worker has claimed the run"))
            }
            Err(error) => Err(failure(what, &error)),
        }
    }

    /// Lists up to `most` events after a number.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn events(&self, run: &JobId, after: i64, most: u32) -> Result<Vec<StoredEvent>> {
        let query = sqlx::query(
            "SELECT number, line FROM events WHERE run = $1 AND number > $2 ORDER BY number LIMIT $3",
        )
        .bind(run.as_str())
        .bind(after)
        .bind(i64::from(most));
        self.list("read the events", query).await
    }

    /// Returns the trajectory of a run in the format of `trajectory.jsonl`.
    ///
    /// # Errors
    ///
    /// Fails if a database query fails.
    pub async fn trajectory(&self, run: &JobId) -> Result<String> {
        let mut lines = String::new();
        let mut last = 0;
        loop {
            let page = self.events(run, last, PAGE).await?;
            let Some(end) = page.last() else {
                return Ok(lines);
            };
            last = end.number;
            for event in &page {
                lines.push_str(&event.line);
                lines.push('\n');
            }
        }
    }
}

/// Inserts an event; `false` if another worker has claimed the run.
pub(super) async fn insert(
    executor: impl sqlx::Executor<'_, Database = sqlx::Any>,
    run: &JobId,
    attempt: i64,
    event: &StoredEvent,
) -> std::result::Result<bool, sqlx::Error> {
    let added = sqlx::query(
        "INSERT INTO events (run, number, line) SELECT id, $3, $4 FROM runs WHERE id = $1 AND attempt = $2 \
         AND status = 'running'",
    )
    .bind(run.as_str().to_owned())
    .bind(attempt)
    .bind(event.number)
    .bind(event.line.clone())
    .execute(executor)
    .await?;
    Ok(added.rows_affected() > 0)
}
