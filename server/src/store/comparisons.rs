//! Comparisons, whose runs are in the store too.

use std::collections::BTreeMap;

use sqlx::Row;
use sqlx::any::AnyRow;

use super::job_status::JobStatus;
use super::jobs::{Attempt, JobKind};
use super::runs::{JobId, StoredRun, now};
use super::{Store, failure};
use testwright_config::error::{Error, Result};

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
    /// Whether it was cancelled, so that no more runs may start.
    pub is_cancelled: bool,
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

/// Filters for listing comparisons.
#[derive(Debug, Clone, Default)]
pub struct ComparisonFilter {
    /// Selects comparisons of this status.
    pub status: Option<JobStatus>,
    /// Selects comparisons of this owner.
    pub owner: Option<String>,
    /// Name of the dataset.
    pub name: Option<String>,
    /// Selects comparisons created before this one.
    pub before: Option<JobId>,
    /// Maximum number of comparisons to return.
    pub limit: u32,
}

/// Expression for the status. A comparison of a command runs until it is graded or cancelled. An index covers this
/// expression.
const STATUS: &str = "COALESCE(status, CASE WHEN cancel = 1 THEN 'cancelled' WHEN report IS NOT NULL THEN 'done' ELSE 'running' END)";
const COLUMNS: &str = "id, created_at, owner, name, plan, max_dollars, cancel, request, ended_at, traceparent, \
                       CASE WHEN status IN ('queued', 'running') THEN return_reason ELSE message END AS message, \
                       CASE WHEN report IS NULL THEN 0 ELSE 1 END AS has_report";

impl Store {
    /// Stores a comparison, or updates it; a cancelled one resumes.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn put_comparison(&self, new: &NewComparison<'_>) -> Result<()> {
        sqlx::query(
            "INSERT INTO comparisons (id, created_at, owner, name, plan, max_dollars) VALUES ($1, $2, $3, $4, $5, $6) \
             ON CONFLICT (id) DO UPDATE SET plan = excluded.plan, max_dollars = excluded.max_dollars, cancel = 0, ended_at = NULL",
        )
        .bind(new.id.as_str())
        .bind(now())
        .bind(new.owner)
        .bind(new.name)
        .bind(new.plan)
        .bind(new.max_dollars)
        .execute(&self.pool)
        .await
        .map(drop)
        .map_err(|e| failure("store the comparison", &e))
    }

    /// Stores the report on a comparison.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn put_comparison_report(&self, id: &JobId, report: &ComparisonReport) -> Result<()> {
        // A comparison of a command ends with its report; a server stores the end of its own comparisons.
        sqlx::query(
            "UPDATE comparisons SET report = $2, page = $3, ended_at = CASE WHEN status IS NULL THEN $4 ELSE ended_at END \
             WHERE id = $1",
        )
        .bind(id.as_str())
        .bind(&report.report)
        .bind(&report.page)
        .bind(now())
        .execute(&self.pool)
        .await
        .map(drop)
        .map_err(|e| failure("store the report", &e))
    }

    /// Lists comparisons, newest first.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn comparisons(&self, filter: &ComparisonFilter) -> Result<Vec<StoredComparison>> {
        let conditions = [
            (STATUS, '=', filter.status.map(JobStatus::as_str)),
            ("owner", '=', filter.owner.as_deref()),
            ("name", '=', filter.name.as_deref()),
            ("id", '<', filter.before.as_ref().map(JobId::as_str)),
        ];
        let statement = format!("SELECT {COLUMNS}, {STATUS} AS status FROM comparisons");
        let rows = self.select_newest(&statement, &conditions, "id", filter.limit);
        let rows = rows
            .await
            .map_err(|e| failure("list the comparisons", &e))?;
        rows.iter().map(read).collect()
    }

    /// Returns a comparison; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn comparison(&self, id: &JobId) -> Result<Option<StoredComparison>> {
        self.comparison_where("id", id.as_str()).await
    }

    async fn comparison_where(
        &self,
        column: &'static str,
        value: &str,
    ) -> Result<Option<StoredComparison>> {
        let statement =
            format!("SELECT {COLUMNS}, {STATUS} AS status FROM comparisons WHERE {column} = $1");
        let row = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(value)
            .fetch_optional(&self.pool)
            .await
            .map_err(|e| failure("read the comparison", &e))?;
        row.as_ref().map(read).transpose()
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
        let what = "store the comparison";
        let new = &requested_comparison.comparison;
        let added = sqlx::query(
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
        .bind(requested_comparison.traceparent.clone())
        .execute(&self.pool)
        .await
        .map_err(|e| failure(what, &e))?;
        self.announce_job();
        let comparison = match (added.rows_affected(), &requested_comparison.idempotency_key) {
            (0, Some(key)) => self.comparison_where("idempotency_key", key).await?,
            _ => self.comparison(new.id).await?,
        };
        let stored = comparison
            .ok_or_else(|| Error::infrastructure(what).cause("the new comparison is missing"))?;
        Ok((stored, added.rows_affected() > 0))
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
        let failed = |e: &sqlx::Error| failure("read the report", e);
        let row = sqlx::query(
            "SELECT report, page FROM comparisons WHERE id = $1 AND report IS NOT NULL",
        )
        .bind(id.as_str())
        .fetch_optional(&self.pool)
        .await
        .map_err(|e| failed(&e))?;
        let read = |row: AnyRow| {
            Ok(ComparisonReport {
                report: row.try_get("report")?,
                page: row.try_get("page")?,
            })
        };
        row.map(read)
            .transpose()
            .map_err(|e: sqlx::Error| failed(&e))
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
        let failed = |e: &sqlx::Error| failure("count the runs", e);
        let counts = "SELECT batch, status, COUNT(*) AS runs FROM runs WHERE batch IN";
        let rows = self.select_in(counts, batches, "GROUP BY batch, status");
        let rows = rows.await.map_err(|e| failed(&e))?;
        let mut counted: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
        for row in &rows {
            let read = || -> std::result::Result<(String, String, i64), sqlx::Error> {
                Ok((
                    row.try_get("batch")?,
                    row.try_get("status")?,
                    row.try_get("runs")?,
                ))
            };
            let (batch, status, runs) = read().map_err(|e| failed(&e))?;
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
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(id.as_str())
            .bind(now())
            .execute(&self.pool)
            .await
            .map_err(|e| failure("cancel the comparison", &e))?;
        let mut job_count = 0;
        for kind in [JobKind::Run, JobKind::Grading] {
            let of_kind = self.cancel_all(kind, "batch", id.as_str()).await;
            job_count += of_kind.map_err(|e| failure("cancel the comparison", &e))?;
        }
        Ok(job_count)
    }

    /// Returns the run with an idempotency key.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn run_of_key(&self, key: &str) -> Result<Option<StoredRun>> {
        self.run_where("idempotency_key", key).await
    }
}

fn read(row: &AnyRow) -> Result<StoredComparison> {
    let read = || -> std::result::Result<StoredComparison, sqlx::Error> {
        Ok(StoredComparison {
            id: JobId::stored(row.try_get("id")?),
            created_at: row.try_get("created_at")?,
            owner: row.try_get("owner")?,
            name: row.try_get("name")?,
            plan: row.try_get("plan")?,
            has_report: row.try_get::<i64, _>("has_report")? != 0,
            max_dollars: row.try_get("max_dollars")?,
            is_cancelled: row.try_get::<i64, _>("cancel")? != 0,
            request: row.try_get("request")?,
            status: JobStatus::from_row(row)?,
            ended_at: row.try_get("ended_at")?,
            message: row.try_get("message")?,
            traceparent: row.try_get("traceparent")?,
        })
    };
    read().map_err(|e| failure("read a comparison", &e))
}
