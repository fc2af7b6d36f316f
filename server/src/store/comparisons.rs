//! Comparisons, whose runs are in the store too.

use std::collections::BTreeMap;

use sqlx::AssertSqlSafe;

use super::Store;
use super::job_id::{JobId, now};
use super::job_status::JobStatus;
use super::jobs::{Attempt, JobKind};
use super::queries::from_row;
use super::stored_job::{JobFilter, StoredJob};
use testwright_config::error::Result;

/// A comparison in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredComparison {
    /// Id of the comparison and of the batch of its runs.
    pub id: JobId,
    /// Creation time, in milliseconds since 1970, UTC.
    pub created_at: i64,
    /// Owner of the token that requested it, or a reserved owner.
    pub owner: String,
    /// Name of the dataset.
    pub name: String,
    /// Content of `comparison.json`.
    pub plan: String,
    /// Whether the comparison was graded.
    pub has_report: bool,
    /// Budget for all runs together, in US dollars.
    pub max_dollars: Option<f64>,
    /// Request of a client; `None` if a command makes the comparison.
    pub request: Option<String>,
    /// Status of the comparison.
    pub status: JobStatus,
    /// Time at which it ended, in milliseconds since 1970, UTC.
    pub ended_at: Option<i64>,
    /// Reason why it has no result, or why it returned to the queue.
    pub message: Option<String>,
    /// Span of the request, in the format of the `traceparent` header.
    pub traceparent: Option<String>,
}

/// A comparison to store.
#[derive(Debug, Clone)]
pub struct NewComparison<'n> {
    /// Id of the comparison and of the batch of its runs.
    pub id: &'n JobId,
    /// Owner of the comparison and its jobs.
    pub owner: &'n str,
    /// Name of the dataset.
    pub name: &'n str,
    /// Content of `comparison.json`.
    pub plan: &'n str,
    /// Budget for all runs together, in US dollars; `None` for no limit.
    pub max_dollars: Option<f64>,
}

/// A comparison that a client requests from a server.
#[derive(Debug, Clone)]
pub struct RequestedComparison<'n> {
    /// The comparison.
    pub comparison: NewComparison<'n>,
    /// The request, as JSON.
    pub request: &'n str,
    /// Key that identifies repetitions of the request; it includes the owner.
    pub idempotency_key: Option<String>,
    /// Span of the request, in the format of the `traceparent` header.
    pub traceparent: Option<String>,
}

/// The report on a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonReport {
    /// Content of `report.json`.
    pub report: String,
    /// Content of `report.html`.
    pub page: String,
}

impl StoredJob for StoredComparison {
    const KIND: JobKind = JobKind::Comparison;
    const COLUMNS: &'static str = "id, created_at, owner, name, plan, max_dollars, request, ended_at, \
                                   traceparent, CASE WHEN status IN ('queued', 'running') THEN return_reason ELSE message END AS message, \
                                   CASE WHEN report IS NULL THEN 0 ELSE 1 END AS has_report";
    // A comparison of a command runs until it is graded or cancelled. An index covers this expression.
    const STATUS: &'static str = "COALESCE(status, CASE WHEN cancel = 1 THEN 'cancelled' WHEN report IS NOT NULL THEN 'done' ELSE 'running' END)";

    fn id(&self) -> &JobId {
        &self.id
    }
}

from_row! {
    StoredComparison {
        id, created_at, owner, name, plan, max_dollars, request, status, ended_at, message, traceparent,
    } flags { has_report }
}

from_row! { ComparisonReport { report, page } }

impl Store {
    /// Stores a comparison, or updates it; a cancelled one resumes.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn put_comparison(&self, new: &NewComparison<'_>) -> Result<()> {
        let insertion = sqlx::query(
            "INSERT INTO comparisons (id, created_at, owner, name, plan, max_dollars) VALUES ($1, $2, $3, $4, $5, $6) \
             ON CONFLICT (id) DO UPDATE SET plan = excluded.plan, max_dollars = excluded.max_dollars, cancel = 0, ended_at = NULL",
        )
        .bind(new.id.as_str())
        .bind(now())
        .bind(new.owner)
        .bind(new.name)
        .bind(new.plan)
        .bind(new.max_dollars);
        self.execute("store the comparison", insertion).await
    }

    /// Stores the report on a comparison.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn put_comparison_report(&self, id: &JobId, report: &ComparisonReport) -> Result<()> {
        // A comparison of a command ends with its report; a server stores the end of its own comparisons.
        let update = sqlx::query(
            "UPDATE comparisons SET report = $2, page = $3, ended_at = CASE WHEN status IS NULL THEN $4 ELSE ended_at END \
             WHERE id = $1",
        )
        .bind(id.as_str())
        .bind(&report.report)
        .bind(&report.page)
        .bind(now());
        self.execute("store the report", update).await
    }

    /// Lists comparisons, newest first, each converted soon after it is read.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn comparisons<R>(
        &self,
        filter: &JobFilter,
        convert: impl Fn(StoredComparison) -> R,
    ) -> Result<Vec<R>> {
        self.list_jobs(filter, convert).await
    }

    /// Returns a comparison; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn comparison(&self, id: impl AsRef<str>) -> Result<Option<StoredComparison>> {
        self.find_by_id(id).await
    }

    /// Adds a comparison for a server. If the idempotency key is already in use, returns that comparison and `false`.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn add_comparison(
        &self,
        requested_comparison: &RequestedComparison<'_>,
    ) -> Result<(StoredComparison, bool)> {
        let new = &requested_comparison.comparison;
        let key = requested_comparison.idempotency_key.as_deref();
        let insertion = sqlx::query(
            "INSERT INTO comparisons (id, created_at, owner, name, plan, max_dollars, request, idempotency_key, status, traceparent) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'queued', $9) ON CONFLICT (idempotency_key) DO NOTHING",
        )
        .bind(new.id.as_str())
        .bind(now())
        .bind(new.owner)
        .bind(new.name)
        .bind(new.plan)
        .bind(new.max_dollars)
        .bind(requested_comparison.request)
        .bind(requested_comparison.idempotency_key.clone())
        .bind(requested_comparison.traceparent.clone());
        self.add_job(new.id, key, insertion).await
    }

    /// Claims the oldest comparison that is due.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn claim_comparison(&self, worker: &str) -> Result<Option<Attempt>> {
        let oldest = sqlx::query(
            "SELECT id FROM comparisons WHERE status = 'queued' AND not_before <= $1 ORDER BY id LIMIT 1",
        );
        let oldest = oldest.bind(now());
        self.claim_selected(JobKind::Comparison, oldest, worker)
            .await
    }

    /// Returns the report on a comparison; `None` if it has not been graded.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn comparison_report(&self, id: &JobId) -> Result<Option<ComparisonReport>> {
        let query = sqlx::query(
            "SELECT report, page FROM comparisons WHERE id = $1 AND report IS NOT NULL",
        )
        .bind(id.as_str());
        self.find("read the report", query).await
    }

    /// Counts the runs of comparisons by status.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn batch_statuses(
        &self,
        batches: &[&str],
    ) -> Result<BTreeMap<String, BTreeMap<String, i64>>> {
        let counts = "SELECT batch, status, COUNT(*) AS runs FROM runs WHERE batch IN";
        let groups = "GROUP BY batch, status";
        let rows: Vec<(String, String, i64)> = self
            .list_in("count the runs", counts, batches, groups)
            .await?;
        let mut counted: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
        for (batch, status, runs) in rows {
            counted.entry(batch).or_default().insert(status, runs);
        }
        Ok(counted)
    }

    /// Cancels a comparison with all its runs and gradings, including later ones. Returns the number that had not
    /// ended.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn cancel_comparison(&self, id: &JobId) -> Result<u64> {
        let open = "status IN ('queued', 'running')";
        let statement = format!(
            "UPDATE comparisons SET cancel = 1, \
             ended_at = CASE WHEN {open} OR (status IS NULL AND ended_at IS NULL) THEN $2 ELSE ended_at END, \
             status = CASE WHEN {open} THEN 'cancelled' ELSE status END WHERE id = $1"
        );
        let update = sqlx::query(AssertSqlSafe(statement))
            .bind(id.as_str())
            .bind(now());
        self.execute("cancel the comparison", update).await?;
        self.cancel_jobs(id).await
    }

    async fn cancel_jobs(&self, id: &JobId) -> Result<u64> {
        let what = "cancel the jobs of the comparison";
        let mut job_count = 0;
        for kind in [JobKind::Run, JobKind::Grading] {
            job_count += self.cancel_all(what, kind, "batch", id.as_str()).await?;
        }
        Ok(job_count)
    }

    /// Cancels the runs and gradings that a comparison added during its cancellation. Returns whether the comparison is
    /// cancelled.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn cancel_late_jobs(&self, id: &JobId) -> Result<bool> {
        let query = sqlx::query("SELECT id FROM comparisons WHERE id = $1 AND cancel = 1");
        let what = "check whether the comparison was cancelled";
        let cancelled: Option<(JobId,)> = self.find(what, query.bind(id.as_str())).await?;
        if cancelled.is_some() {
            self.cancel_jobs(id).await?;
        }
        Ok(cancelled.is_some())
    }
}

#[cfg(test)]
mod tests;
