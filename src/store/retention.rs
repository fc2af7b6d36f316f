//! Removes what came of runs that ended long ago, and what stood for them in the queue.

use std::time::Duration;

use sqlx::Row;

use super::artifacts::MARK_REMOVED;
use super::{Database, Store, failure};
use crate::error::Result;

/// Runs that are removed in one transaction: others are not kept waiting.
const BATCH: i64 = 100;

impl Store {
    /// Removes runs that ended before a time, with their events and files: how many. What is in the artifact store is marked
    /// for removal. Those that were taken up again meanwhile stay.
    pub async fn remove_runs_ended_before(&self, time: i64) -> Result<u64> {
        let mut removed = 0;
        loop {
            let (found, gone) = self.remove_batch(time).await?;
            removed += gone;
            if found < BATCH as u64 || gone == 0 {
                return Ok(removed);
            }
        }
    }

    /// Removes gradings that ended before a time, with their results: whoever asked for them has not come back for them.
    pub async fn remove_gradings_ended_before(&self, time: i64) -> Result<()> {
        let ended =
            "SELECT id FROM gradings WHERE ended_at < $1 AND status NOT IN ('queued', 'running')";
        for statement in [
            format!("DELETE FROM graded_predictions WHERE grading IN ({ended})"),
            format!("DELETE FROM gradings WHERE id IN ({ended})"),
        ] {
            sqlx::query(sqlx::AssertSqlSafe(statement))
                .bind(time)
                .execute(&self.pool)
                .await
                .map_err(|e| failure("remove old gradings", &e))?;
        }
        Ok(())
    }

    /// Removes the messages of a queue that were done longer ago than this: how many. apalis keeps them for ever.
    pub async fn remove_messages(&self, queue: &str, age: Duration) -> Result<u64> {
        let ended = match self.database() {
            Database::Sqlite(_) => {
                "Jobs WHERE done_at < CAST(strftime('%s', 'now') AS INTEGER) - $2"
            }
            Database::Postgres(_) => "apalis.jobs WHERE done_at < now() - $2 * INTERVAL '1 second'",
        };
        let statement = format!(
            "DELETE FROM {ended} AND job_type = $1 \
             AND (status IN ('Done', 'Killed') OR (status = 'Failed' AND attempts >= max_attempts))"
        );
        let removed = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(queue.to_owned())
            .bind(i64::try_from(age.as_secs()).unwrap_or(i64::MAX))
            .execute(&self.pool)
            .await;
        removed
            .map(|removed| removed.rows_affected())
            .map_err(|e| failure("remove old messages of the queue", &e))
    }

    async fn remove_batch(&self, time: i64) -> Result<(u64, u64)> {
        let failed = |error: sqlx::Error| failure("remove old runs", &error);
        let mut transaction = self.pool.begin().await.map_err(failed)?;
        let rows = sqlx::query(
            "SELECT id FROM runs WHERE ended_at < $1 AND status NOT IN ('queued', 'running') ORDER BY ended_at LIMIT $2",
        )
        .bind(time)
        .bind(BATCH)
        .fetch_all(&mut *transaction)
        .await
        .map_err(failed)?;
        let mut removed = 0;
        for row in &rows {
            let id: String = row.try_get("id").map_err(failed)?;
            let gone = sqlx::query(
                "DELETE FROM runs WHERE id = $1 AND ended_at < $2 AND status NOT IN ('queued', 'running')",
            )
            .bind(&id)
            .bind(time)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
            if gone.rows_affected() > 0 {
                let events = sqlx::query("DELETE FROM events WHERE run = $1").bind(&id);
                events.execute(&mut *transaction).await.map_err(failed)?;
                for statement in [MARK_REMOVED, "DELETE FROM artifacts WHERE run = $1"] {
                    let files = sqlx::query(statement).bind(&id);
                    files.execute(&mut *transaction).await.map_err(failed)?;
                }
                removed += 1;
            }
        }
        transaction.commit().await.map_err(failed)?;
        Ok((rows.len() as u64, removed))
    }
}
