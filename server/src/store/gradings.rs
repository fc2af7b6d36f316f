//! Predictions that workers grade: requests, statuses and results.

use std::collections::BTreeMap;

use sqlx::Row;
use sqlx::any::AnyRow;

use super::job_status::JobStatus;
use super::jobs::{Attempt, JobKind};
use super::runs::{JobId, now};
use super::{Store, failure};
use testwright_config::error::{Error, Result};

/// A grading to store.
#[derive(Debug, Clone)]
pub struct NewGrading {
    /// The request, as JSON.
    pub request: String,
    /// Owner of the evaluation or comparison.
    pub owner: String,
    /// The evaluation or comparison to which it belongs.
    pub batch: String,
    /// Key that identifies repetitions of the request.
    pub idempotency_key: String,
}

/// A grading in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredGrading {
    /// Id of the grading.
    pub id: JobId,
    /// Status of the grading.
    pub status: JobStatus,
    /// Id of the evaluation or comparison to which it belongs.
    pub batch: String,
    /// Reason why it has no result.
    pub message: Option<String>,
}

/// The gradings of an evaluation or a comparison in the store, counted by status.
#[derive(Debug, Clone, PartialEq)]
pub struct GradingBatch {
    /// Id of the evaluation or comparison.
    pub batch: String,
    /// Owner of the evaluation or comparison.
    pub owner: String,
    /// Creation time of the oldest one.
    pub created_at: i64,
    /// Number of gradings by status.
    pub by_status: BTreeMap<String, i64>,
}

/// Filters for listing gradings.
#[derive(Debug, Clone, Default)]
pub struct GradingFilter {
    /// Selects batches with at least one grading of this status.
    pub status: Option<JobStatus>,
    /// Selects gradings of this owner.
    pub owner: Option<String>,
    /// Selects gradings of this evaluation or comparison.
    pub batch: Option<String>,
    /// Selects batches before this one.
    pub before: Option<String>,
    /// Maximum number of batches to return.
    pub limit: u32,
}

const COLUMNS: &str = "id, status, batch, message";

impl Store {
    /// Adds a grading, or returns the one with the same idempotency key.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn add_grading(&self, new: &NewGrading) -> Result<StoredGrading> {
        let what = "store the grading";
        sqlx::query(
            "INSERT INTO gradings (id, created_at, status, request, owner, batch, idempotency_key) \
             VALUES ($1, $2, 'queued', $3, $4, $5, $6) ON CONFLICT (idempotency_key) DO NOTHING",
        )
        .bind(JobId::new(now()).as_str())
        .bind(now())
        .bind(&new.request)
        .bind(&new.owner)
        .bind(&new.batch)
        .bind(&new.idempotency_key)
        .execute(&self.pool)
        .await
        .map_err(|e| failure(what, &e))?;
        self.announce_job();
        let statement = format!("SELECT {COLUMNS} FROM gradings WHERE idempotency_key = $1");
        let row = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(&new.idempotency_key)
            .fetch_one(&self.pool)
            .await
            .map_err(|e| failure(what, &e))?;
        read(&row)
    }

    /// Lists the gradings of a batch, oldest first.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn gradings(&self, batch: &str) -> Result<Vec<StoredGrading>> {
        let statement = format!("SELECT {COLUMNS} FROM gradings WHERE batch = $1 ORDER BY id");
        let rows = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(batch)
            .fetch_all(&self.pool)
            .await
            .map_err(|e| failure("list the gradings", &e))?;
        rows.iter().map(read).collect()
    }

    /// Lists the batches that have gradings, newest first.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn grading_batches(&self, filter: &GradingFilter) -> Result<Vec<GradingBatch>> {
        let conditions = [
            ("status", '=', filter.status.map(JobStatus::as_str)),
            ("owner", '=', filter.owner.as_deref()),
            ("batch", '=', filter.batch.as_deref()),
            ("batch", '<', filter.before.as_deref()),
        ];
        let failed = |e: &sqlx::Error| failure("list the gradings", e);
        let query = "SELECT DISTINCT batch FROM gradings";
        let selection = self.select_newest(query, &conditions, "batch", filter.limit);
        let batch_rows = selection.await.map_err(|e| failed(&e))?;
        let batches = batch_rows.iter().map(|row| row.try_get("batch"));
        let batches: std::result::Result<Vec<&str>, sqlx::Error> = batches.collect();
        let batches = batches.map_err(|e| failed(&e))?;
        let counts = "SELECT batch, status, MIN(owner) AS owner, COUNT(*) AS gradings, MIN(created_at) AS created_at FROM gradings \
                      WHERE batch IN";
        let rows = self.select_in(
            counts,
            &batches,
            "GROUP BY batch, status ORDER BY batch DESC",
        );
        let rows = rows.await.map_err(|e| failed(&e))?;
        let mut batches: Vec<GradingBatch> = Vec::new();
        for row in &rows {
            let read = || -> std::result::Result<GradingBatch, sqlx::Error> {
                Ok(GradingBatch {
                    batch: row.try_get("batch")?,
                    owner: row.try_get("owner")?,
                    created_at: row.try_get("created_at")?,
                    by_status: BTreeMap::from([(row.try_get("status")?, row.try_get("gradings")?)]),
                })
            };
            let read = read().map_err(|e| failed(&e))?;
            match batches.last_mut() {
                Some(last) if last.batch == read.batch => {
                    last.created_at = last.created_at.min(read.created_at);
                    last.by_status.extend(read.by_status);
                }
                _ => batches.push(read),
            }
        }
        Ok(batches)
    }

    /// Cancels all gradings of a batch and returns the number that had not ended.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn cancel_gradings(&self, batch: &str) -> Result<u64> {
        let job_count = self.cancel_all(JobKind::Grading, "batch", batch).await;
        job_count.map_err(|e| failure("cancel the gradings", &e))
    }

    /// Returns the request of a grading.
    ///
    /// # Errors
    ///
    /// Fails if the grading does not exist or the database query fails.
    pub async fn grading_request(&self, id: &JobId) -> Result<String> {
        sqlx::query_scalar("SELECT request FROM gradings WHERE id = $1")
            .bind(id.as_str())
            .fetch_one(&self.pool)
            .await
            .map_err(|e| failure("read the grading", &e))
    }

    /// Adds a result of an attempt.
    ///
    /// # Errors
    ///
    /// Fails if another worker has claimed the grading, or the database query fails.
    pub async fn add_graded(
        &self,
        attempt: &Attempt,
        prediction: &str,
        result: &str,
    ) -> Result<()> {
        let what = "store a result of the grading";
        let added = sqlx::query(
            "INSERT INTO graded_predictions (grading, prediction, result) SELECT id, $3, $4 FROM gradings \
             WHERE id = $1 AND attempt = $2 AND status = 'running' \
             ON CONFLICT (grading, prediction) DO UPDATE SET result = excluded.result",
        )
        .bind(attempt.id.as_str())
        .bind(attempt.number)
        .bind(prediction)
        .bind(result)
        .execute(&self.pool)
        .await
        .map_err(|e| failure(what, &e))?;
        match added.rows_affected() {
            0 => Err(Error::infrastructure(what).cause("another worker has claimed the grading")),
            _ => Ok(()),
        }
    }

    /// Returns the results of a grading.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn graded(&self, id: &JobId) -> Result<Vec<String>> {
        sqlx::query_scalar(
            "SELECT result FROM graded_predictions WHERE grading = $1 ORDER BY prediction",
        )
        .bind(id.as_str())
        .fetch_all(&self.pool)
        .await
        .map_err(|e| failure("read the results of the grading", &e))
    }

    /// Deletes the gradings of a batch, whose results are now stored elsewhere.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn delete_gradings(&self, batch: &str) -> Result<()> {
        for statement in [
            "DELETE FROM graded_predictions WHERE grading IN (SELECT id FROM gradings WHERE batch = $1)",
            "DELETE FROM gradings WHERE batch = $1",
        ] {
            sqlx::query(statement)
                .bind(batch)
                .execute(&self.pool)
                .await
                .map_err(|e| failure("delete the gradings", &e))?;
        }
        Ok(())
    }
}

fn read(row: &AnyRow) -> Result<StoredGrading> {
    let read = || -> std::result::Result<StoredGrading, sqlx::Error> {
        Ok(StoredGrading {
            id: JobId::stored(row.try_get("id")?),
            status: JobStatus::from_row(row)?,
            batch: row.try_get("batch")?,
            message: row.try_get("message")?,
        })
    };
    read().map_err(|e| failure("read a grading", &e))
}
