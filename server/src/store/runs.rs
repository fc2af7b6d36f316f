//! Runs: requests, statuses and results.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::job_status::JobStatus;
use super::{Store, failure};
use testwright_config::error::{Error, Result};

/// The id of a run. Ids sort by creation time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(String);

impl JobId {
    /// Creates an id from the time (milliseconds, as 11 hexadecimal digits) and 8 random characters.
    pub fn new(now: i64) -> Self {
        let random = std::iter::repeat_with(fastrand::alphanumeric).take(8);
        JobId(format!(
            "{now:011x}{}",
            random.collect::<String>().to_lowercase()
        ))
    }

    /// Parses an id from a client; `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let is_id = text.len() == 19
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        is_id.then(|| JobId(text.to_owned()))
    }

    /// Wraps an id that was read from the database.
    pub(super) fn stored(text: String) -> Self {
        JobId(text)
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A run to store.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// The request, as JSON.
    pub request: String,
    /// Title of the issue, if it is known; a worker that reads the issue may update it.
    pub title: String,
    /// URL or path of the repository.
    pub repository: String,
    /// Name of the approach, with its options.
    pub approach: String,
    /// Name of the model.
    pub model: String,
    /// Key under which a repeated request returns this run; unique for an owner.
    pub idempotency_key: Option<String>,
    /// Owner of the request.
    pub owner: String,
    /// Comparison or other batch that the run belongs to; empty for a single run.
    pub batch: String,
    /// Span of the request, in the format of the `traceparent` header.
    pub traceparent: Option<String>,
}

/// A run as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    /// Id of the run.
    pub id: JobId,
    /// Creation time, in milliseconds since 1970, UTC; the other times use the same format.
    pub created_at: i64,
    /// Time at which the first attempt began; `None` if no worker has claimed the run yet.
    pub started_at: Option<i64>,
    /// Time at which the run ended.
    pub ended_at: Option<i64>,
    /// Status of the run.
    pub status: JobStatus,
    /// The request, as JSON.
    pub request: String,
    /// Title of the issue; empty if it is not known yet.
    pub title: String,
    /// URL or path of the repository.
    pub repository: String,
    /// Name of the approach, with its options.
    pub approach: String,
    /// Name of the model.
    pub model: String,
    /// Number of attempts so far.
    pub attempt: i64,
    /// Whether the run was cancelled.
    pub cancel: bool,
    /// The accepted test, as a patch.
    pub patch: Option<String>,
    /// The record of the run (`run.json`), as JSON.
    pub record: Option<String>,
    /// Owner of the request.
    pub owner: String,
    /// Comparison or other batch that the run belongs to; empty for a single run.
    pub batch: String,
    /// Span of the request, in the format of the `traceparent` header.
    pub traceparent: Option<String>,
    /// Number of returns to the queue because of a shortage, since the last retry.
    pub returns: i64,
    /// Number of returns before the last retry.
    pub earlier_returns: i64,
    /// Reason of the last return.
    pub return_reason: Option<String>,
    /// Time before which no worker claims the run.
    pub not_before: i64,
}

impl StoredRun {
    /// Parses the record (`run.json` or its replacement); null if it is missing.
    pub fn record_value(&self) -> Value {
        let record = self.record.as_deref();
        let value = record.and_then(|record| serde_json::from_str(record).ok());
        value.unwrap_or_default()
    }

    /// Returns the number of attempts, not counting those that went back to the queue.
    pub fn counted_attempts(&self) -> i64 {
        self.attempt - self.returns - self.earlier_returns
    }

    /// Returns the reason of the last return, unless the run has ended.
    pub fn return_reason(&self) -> Option<&str> {
        let reason = self.return_reason.as_deref();
        reason.filter(|_| !self.status.has_ended())
    }

    /// Returns the time before which no worker claims the run, if it is in the future.
    pub fn waits_until(&self) -> Option<i64> {
        let waits = self.status == JobStatus::Queued && self.not_before > now();
        waits.then_some(self.not_before)
    }
}

/// Filters for listing runs.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Selects runs with this status.
    pub status: Option<JobStatus>,
    /// Selects runs of this owner.
    pub owner: Option<String>,
    /// Selects runs on this repository.
    pub repository: Option<String>,
    /// Selects runs of this approach.
    pub approach: Option<String>,
    /// Selects runs with this model.
    pub model: Option<String>,
    /// Selects the runs of a comparison.
    pub batch: Option<JobId>,
    /// Selects runs created before this one.
    pub before: Option<JobId>,
    /// Maximum number of runs.
    pub limit: u32,
}

const COLUMNS: &str = "id, created_at, started_at, ended_at, status, request, title, repository, approach, model, attempt, \
                       cancel, patch, record, owner, batch, traceparent, returns, earlier_returns, return_reason, \
                       not_before";

impl Store {
    /// Adds a run. If the idempotency key is already in use, returns that run and `false`.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn add_run(&self, new: &NewRun) -> Result<(StoredRun, bool)> {
        let now = now();
        let id = JobId::new(now);
        let added = sqlx::query(
            "INSERT INTO runs (id, created_at, status, request, title, repository, approach, model, idempotency_key, owner, \
             batch, traceparent) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (idempotency_key) DO NOTHING",
        )
        .bind(id.as_str())
        .bind(now)
        .bind(JobStatus::Queued.as_str())
        .bind(&new.request)
        .bind(&new.title)
        .bind(&new.repository)
        .bind(&new.approach)
        .bind(&new.model)
        .bind(new.idempotency_key.clone())
        .bind(&new.owner)
        .bind(&new.batch)
        .bind(new.traceparent.clone())
        .execute(&self.pool)
        .await
        .map_err(|e| failure("store the run", &e))?;
        self.announce_job();
        let stored_run = match (added.rows_affected(), &new.idempotency_key) {
            (0, Some(key)) => self.run_where("idempotency_key", key).await?,
            _ => self.run(&id).await?,
        };
        let run = stored_run.ok_or_else(|| {
            Error::infrastructure("store the run").cause("the new run is missing")
        })?;
        Ok((run, added.rows_affected() > 0))
    }

    /// Returns a run; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn run(&self, id: &JobId) -> Result<Option<StoredRun>> {
        self.run_where("id", id.as_str()).await
    }

    pub(super) async fn run_where(
        &self,
        column: &'static str,
        value: &str,
    ) -> Result<Option<StoredRun>> {
        let statement = format!("SELECT {COLUMNS} FROM runs WHERE {column} = $1");
        let row = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(value)
            .fetch_optional(&self.pool)
            .await
            .map_err(|e| failure("read the run", &e))?;
        row.as_ref().map(read).transpose()
    }

    /// Lists runs, newest first.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn runs(&self, filter: &RunFilter) -> Result<Vec<StoredRun>> {
        let conditions = [
            ("status", '=', filter.status.map(JobStatus::as_str)),
            ("owner", '=', filter.owner.as_deref()),
            ("repository", '=', filter.repository.as_deref()),
            ("approach", '=', filter.approach.as_deref()),
            ("model", '=', filter.model.as_deref()),
            ("batch", '=', filter.batch.as_ref().map(JobId::as_str)),
            ("id", '<', filter.before.as_ref().map(JobId::as_str)),
        ];
        let statement = format!("SELECT {COLUMNS} FROM runs");
        let rows = self.select_newest(&statement, &conditions, "id", filter.limit);
        let rows = rows.await.map_err(|e| failure("list the runs", &e))?;
        rows.iter().map(read).collect()
    }

    /// Replaces the request of a run that has no result.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn set_request(&self, id: &JobId, request: &str) -> Result<()> {
        sqlx::query(
            "UPDATE runs SET request = $2 WHERE id = $1 AND status IN ('infrastructure', 'cancelled')",
        )
        .bind(id.as_str())
        .bind(request)
        .execute(&self.pool)
        .await
        .map(drop)
        .map_err(|e| failure("store the request", &e))
    }

    /// Stores the title of the issue, once it was read.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn set_title(&self, id: &JobId, title: &str) -> Result<()> {
        sqlx::query("UPDATE runs SET title = $2 WHERE id = $1")
            .bind(id.as_str())
            .bind(title)
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(|e| failure("store the title", &e))
    }
}

/// Converts a time of the store: milliseconds since 1970, UTC.
pub fn timestamp(milliseconds: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(milliseconds).unwrap_or_default()
}

/// Returns the current time, in milliseconds since 1970, UTC.
pub fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

fn read(row: &AnyRow) -> Result<StoredRun> {
    let read = || -> std::result::Result<StoredRun, sqlx::Error> {
        Ok(StoredRun {
            id: JobId(row.try_get("id")?),
            created_at: row.try_get("created_at")?,
            started_at: row.try_get("started_at")?,
            ended_at: row.try_get("ended_at")?,
            status: JobStatus::from_row(row)?,
            request: row.try_get("request")?,
            title: row.try_get("title")?,
            repository: row.try_get("repository")?,
            approach: row.try_get("approach")?,
            model: row.try_get("model")?,
            attempt: row.try_get("attempt")?,
            cancel: row.try_get::<i64, _>("cancel")? != 0,
            patch: row.try_get("patch")?,
            record: row.try_get("record")?,
            owner: row.try_get("owner")?,
            batch: row.try_get("batch")?,
            traceparent: row.try_get("traceparent")?,
            returns: row.try_get("returns")?,
            earlier_returns: row.try_get("earlier_returns")?,
            return_reason: row.try_get("return_reason")?,
            not_before: row.try_get("not_before")?,
        })
    };
    read().map_err(|e| failure("read a run", &e))
}
