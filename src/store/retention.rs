//! Removes what came of runs that ended long ago.

use sqlx::Row;

use super::{Store, failure};
use crate::error::Result;

/// Runs that are removed in one transaction: others are not kept waiting.
const BATCH: i64 = 100;

impl Store {
    /// Removes runs that ended before a time, with their events: how many. Those that were taken up again meanwhile stay.
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
                removed += 1;
            }
        }
        transaction.commit().await.map_err(failed)?;
        Ok((rows.len() as u64, removed))
    }
}
