//! Predictions that workers grade: requests, statuses and results.

use std::collections::BTreeMap;

use sqlx::AssertSqlSafe;

use super::job_id::{JobId, now};
use super::job_status::JobStatus;
use super::jobs::{Attempt, JobKind};
use super::queries::from_row;
use super::stored_job::{JobFilter, StoredJob};
use super::{Store, failure};
use testwright_config::error::Result;

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

impl StoredJob for StoredGrading {
    const KIND: JobKind = JobKind::Grading;
    const COLUMNS: &'static str = "id, batch, message";

    fn id(&self) -> &JobId {
        &self.id
    }
}

from_row! { StoredGrading { id, status, batch, message } }

impl Store {
    /// Adds a grading, or returns the one with the same idempotency key.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn add_grading(&self, new: &NewGrading) -> Result<StoredGrading> {
        let id = JobId::new(now());
        let insertion = sqlx::query(
            "INSERT INTO gradings (id, created_at, status, request, owner, batch, idempotency_key) \
             VALUES ($1, $2, 'queued', $3, $4, $5, $6) ON CONFLICT (idempotency_key) DO NOTHING",
        )
        .bind(id.as_str())
        .bind(now())
        .bind(&new.request)
        .bind(&new.owner)
        .bind(&new.batch)
        .bind(&new.idempotency_key);
        let added = self.add_job(&id, Some(&new.idempotency_key), insertion);
        added.await.map(|(stored, _)| stored)
    }

    /// Lists the gradings of a batch, oldest first.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn gradings(&self, batch: &str) -> Result<Vec<StoredGrading>> {
        let statement = format!(
            "{} WHERE batch = $1 ORDER BY id",
            StoredGrading::selection()
        );
        let query = sqlx::query(AssertSqlSafe(statement)).bind(batch);
        self.list("list the gradings", query).await
    }

    /// Lists the batches that have gradings, newest first. A status selects batches that have a grading with it.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn grading_batches(&self, filter: &JobFilter) -> Result<Vec<GradingBatch>> {
        let conditions = [
            ("status", '=', filter.status.map(JobStatus::as_str)),
            ("owner", '=', filter.owner.as_deref()),
            ("batch", '=', filter.batch.as_ref().map(JobId::as_str)),
            ("batch", '<', filter.before.as_ref().map(JobId::as_str)),
        ];
        let what = "list the gradings";
        let query = "SELECT DISTINCT batch FROM gradings";
        let selection = self.list_newest(what, query, &conditions, "batch", filter.limit);
        let selected: Vec<(String,)> = selection.await?;
        let selected: Vec<&str> = selected.iter().map(|(batch,)| batch.as_str()).collect();
        let counts = "SELECT batch, MIN(owner), MIN(created_at), status, COUNT(*) FROM gradings WHERE batch IN";
        let order = "GROUP BY batch, status ORDER BY batch DESC";
        let rows: Vec<(String, String, i64, String, i64)> =
            self.list_in(what, counts, &selected, order).await?;
        let mut batches: Vec<GradingBatch> = Vec::new();
        for (batch, owner, created_at, status, count) in rows {
            let by_status = BTreeMap::from([(status, count)]);
            match batches.last_mut() {
                Some(last) if last.batch == batch => {
                    last.created_at = last.created_at.min(created_at);
                    last.by_status.extend(by_status);
                }
                _ => batches.push(GradingBatch {
                    batch,
                    owner,
                    created_at,
                    by_status,
                }),
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
        self.cancel_all("cancel the gradings", JobKind::Grading, "batch", batch)
            .await
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
        let insertion = sqlx::query(
            "INSERT INTO graded_predictions (grading, prediction, result) SELECT id, $3, $4 FROM gradings \
             WHERE id = $1 AND attempt = $2 AND status = 'running' \
             ON CONFLICT (grading, prediction) DO UPDATE SET result = excluded.result",
        )
        .bind(attempt.id.as_str())
        .bind(attempt.number)
        .bind(prediction)
        .bind(result);
        self.execute_for(attempt, "store a result of the grading", insertion)
            .await
    }

    /// Returns the results of a grading.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn graded(&self, id: &JobId) -> Result<Vec<String>> {
        let query = sqlx::query(
            "SELECT result FROM graded_predictions WHERE grading = $1 ORDER BY prediction",
        )
        .bind(id.as_str());
        self.list_texts("read the results of the grading", query)
            .await
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
            // An evaluation has no other jobs, and the runs of a comparison have ended.
            "DELETE FROM shares WHERE batch = $1",
        ] {
            let deletion = sqlx::query(statement).bind(batch);
            self.execute("delete the gradings", deletion).await?;
        }
        Ok(())
    }
}
