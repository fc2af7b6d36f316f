//! Removes old jobs with all their data, and the files of the oldest jobs to free space.

use sqlx::AssertSqlSafe;

use super::artifacts::MARK_REMOVED;
use super::job_id::JobId;
use super::model_usage::FORGET_BATCH;
use super::{Store, failure};
use testwright_config::error::Result;

/// Number of rows to remove in one transaction, so that other work is not blocked.
const BATCH: i64 = 100;
const REMOVE_FILES: &str = "DELETE FROM artifacts WHERE run = $1";

/// A table of jobs, with SQL expressions for their end.
struct EndedTable {
    table: &'static str,
    has_ended: &'static str,
    /// Time of the end, if the job has ended.
    ended_at: &'static str,
    /// Statements that remove the data of a job; `$1` is its id.
    rest: &'static [&'static str],
}

const RUNS: EndedTable = EndedTable {
    table: "runs",
    // A running comparison would create these runs again.
    has_ended: "status NOT IN ('queued', 'running') AND NOT EXISTS \
                (SELECT 1 FROM comparisons WHERE comparisons.id = runs.batch AND comparisons.status IN ('queued', 'running'))",
    ended_at: "ended_at",
    rest: &[
        "DELETE FROM events WHERE run = $1",
        MARK_REMOVED,
        REMOVE_FILES,
    ],
};
const COMPARISONS: EndedTable = EndedTable {
    table: "comparisons",
    // A comparison of a command has no status.
    has_ended: "COALESCE(status, 'done') NOT IN ('queued', 'running')",
    // A killed command stores no end; the last run's end is used, unless a run is still active.
    ended_at: "COALESCE(ended_at, CASE WHEN status IS NULL AND NOT EXISTS \
               (SELECT 1 FROM runs WHERE runs.batch = comparisons.id AND runs.status IN ('queued', 'running')) \
               THEN (SELECT COALESCE(MAX(runs.ended_at), comparisons.created_at) FROM runs WHERE runs.batch = comparisons.id) END)",
    rest: &[
        MARK_REMOVED,
        REMOVE_FILES,
        FORGET_BATCH,
        "DELETE FROM shares WHERE batch = $1",
    ],
};
const MATRICES: EndedTable = EndedTable {
    table: "matrices",
    has_ended: "status NOT IN ('queued', 'running')",
    ended_at: "ended_at",
    rest: &["DELETE FROM matrix_cells WHERE matrix = $1"],
};
const GRADINGS: EndedTable = EndedTable {
    table: "gradings",
    has_ended: "status NOT IN ('queued', 'running')",
    ended_at: "ended_at",
    rest: &["DELETE FROM graded_predictions WHERE grading = $1"],
};

/// Numbers of removed jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemovalCounts {
    /// Number of removed runs.
    pub runs: u64,
    /// Number of removed comparisons.
    pub comparisons: u64,
    /// Number of removed matrices.
    pub matrices: u64,
    /// Number of removed gradings.
    pub gradings: u64,
}

/// The files of a run or a comparison that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFiles {
    /// Id of the run or comparison.
    pub of: JobId,
    /// Time at which it ended, in milliseconds since 1970, UTC.
    pub ended_at: i64,
    /// Size of all its files, in bytes.
    pub bytes: u64,
}

impl Store {
    /// Removes jobs that ended before a time, with all their data. Content in the artifact store is marked for removal.
    /// Jobs that were retried meanwhile stay.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails; jobs removed before that stay removed.
    pub async fn remove_ended_before(&self, time: i64) -> Result<RemovalCounts> {
        Ok(RemovalCounts {
            runs: self.remove_all(&RUNS, time).await?,
            comparisons: self.remove_all(&COMPARISONS, time).await?,
            matrices: self.remove_all(&MATRICES, time).await?,
            gradings: self.remove_all(&GRADINGS, time).await?,
        })
    }

    async fn remove_all(&self, ending: &EndedTable, time: i64) -> Result<u64> {
        let mut removed = 0;
        loop {
            let batch = self.remove_batch(ending, time).await;
            let (selected_count, removed_count) =
                batch.map_err(|error| failure(&format!("remove old {}", ending.table), &error))?;
            removed += removed_count;
            if selected_count < BATCH as u64 || removed_count == 0 {
                return Ok(removed);
            }
        }
    }

    /// Returns the numbers of selected and of removed jobs.
    async fn remove_batch(
        &self,
        ending: &EndedTable,
        time: i64,
    ) -> std::result::Result<(u64, u64), sqlx::Error> {
        let EndedTable {
            table,
            has_ended,
            ended_at,
            rest,
        } = ending;
        let mut transaction = self.pool.begin().await?;
        let query = format!(
            "SELECT id FROM {table} WHERE {ended_at} < $1 AND {has_ended} ORDER BY {ended_at} LIMIT $2"
        );
        let ids: Vec<String> = sqlx::query_scalar(AssertSqlSafe(query))
            .bind(time)
            .bind(BATCH)
            .fetch_all(&mut *transaction)
            .await?;
        let mut removed = 0;
        for id in &ids {
            let one =
                format!("DELETE FROM {table} WHERE id = $1 AND {ended_at} < $2 AND {has_ended}");
            let deletion = sqlx::query(AssertSqlSafe(one))
                .bind(id)
                .bind(time)
                .execute(&mut *transaction)
                .await?;
            if deletion.rows_affected() > 0 {
                for statement in *rest {
                    let came_of_it = sqlx::query(*statement).bind(id);
                    came_of_it.execute(&mut *transaction).await?;
                }
                removed += 1;
            }
        }
        transaction.commit().await?;
        Ok((ids.len() as u64, removed))
    }

    /// Returns the bytes of all files of runs and comparisons; shared content counts once.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn artifact_bytes(&self) -> Result<u64> {
        let bytes: i64 = sqlx::query_scalar(
            "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM (SELECT DISTINCT digest, bytes FROM artifacts) contents",
        )
        .fetch_one(&self.pool)
        .await
        .map_err(|e| failure("measure the files of runs", &e))?;
        Ok(u64::try_from(bytes).unwrap_or(0))
    }

    /// Lists up to `most` ended runs and comparisons that have files, those that ended first.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn oldest_files(&self, most: i64) -> Result<Vec<JobFiles>> {
        let of = |ended: &EndedTable| {
            let (table, has_ended, ended_at) = (ended.table, ended.has_ended, ended.ended_at);
            format!(
                "SELECT id, {ended_at} AS ended_at FROM {table} WHERE {ended_at} IS NOT NULL AND {has_ended}"
            )
        };
        let statement = format!(
            "SELECT ended.id AS id, MIN(ended.ended_at) AS since, CAST(SUM(artifacts.bytes) AS BIGINT) AS bytes \
             FROM artifacts JOIN ({} UNION ALL {}) ended ON ended.id = artifacts.run \
             GROUP BY ended.id ORDER BY since, id LIMIT $1",
            of(&RUNS),
            of(&COMPARISONS)
        );
        let query = sqlx::query(AssertSqlSafe(statement)).bind(most);
        let what = "list the oldest files of runs";
        let files: Vec<(JobId, i64, i64)> = self.list(what, query).await?;
        let files = files.into_iter().map(|(of, ended_at, bytes)| JobFiles {
            of,
            ended_at,
            bytes: u64::try_from(bytes).unwrap_or(0),
        });
        Ok(files.collect())
    }

    /// Removes the files of a run or a comparison, and marks their content for removal.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn remove_files(&self, of: &JobId) -> Result<()> {
        let failed = |error: sqlx::Error| failure("remove the files of a run", &error);
        let mut transaction = self.pool.begin().await.map_err(failed)?;
        for statement in [MARK_REMOVED, REMOVE_FILES] {
            let files = sqlx::query(statement).bind(of.as_str());
            files.execute(&mut *transaction).await.map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)
    }
}
