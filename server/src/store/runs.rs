//! Runs: requests, statuses and results.

use serde_json::Value;

use super::Store;
use super::job_id::{JobId, now};
use super::job_status::JobStatus;
use super::jobs::JobKind;
use super::queries::from_row;
use super::stored_job::{JobFilter, StoredJob};
use testwright_config::error::Result;

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

impl StoredJob for StoredRun {
    const KIND: JobKind = JobKind::Run;
    const COLUMNS: &'static str = "id, created_at, started_at, ended_at, request, title, repository, approach, model, \
                                   attempt, cancel, patch, record, owner, batch, traceparent, returns, \
                                   earlier_returns, return_reason, not_before";

    fn id(&self) -> &JobId {
        &self.id
    }
}

from_row! {
    StoredRun {
        id, created_at, started_at, ended_at, status, request, title, repository, approach, model, attempt, patch,
        record, owner, batch, traceparent, returns, earlier_returns, return_reason, not_before,
    } flags { cancel }
}

impl Store {
    /// Adds a run. If the idempotency key is already in use, returns that run and `false`.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn add_run(&self, new: &NewRun) -> Result<(StoredRun, bool)> {
        let now = now();
        let id = JobId::new(now);
        let insertion = sqlx::query(
            "INSERT INTO runs (id, created_at, status, request, title, repository, approach, model, idempotency_key, owner, \
             batch, traceparent) VALUES ($1, $2, 'queued', $3, $4, $5, $6, $7, $8, $9, $10, $11) \
             ON CONFLICT (idempotency_key) DO NOTHING",
        )
        .bind(id.as_str())
        .bind(now)
        .bind(&new.request)
        .bind(&new.title)
        .bind(&new.repository)
        .bind(&new.approach)
        .bind(&new.model)
        .bind(new.idempotency_key.clone())
        .bind(&new.owner)
        .bind(&new.batch)
        .bind(new.traceparent.clone());
        self.add_job(&id, new.idempotency_key.as_deref(), insertion)
            .await
    }

    /// Returns a run; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn run(&self, id: impl AsRef<str>) -> Result<Option<StoredRun>> {
        self.find_by_id(id).await
    }

    /// Returns the run with an idempotency key.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn run_of_key(&self, key: &str) -> Result<Option<StoredRun>> {
        self.find_job("idempotency_key", key).await
    }

    /// Lists runs, newest first, each converted soon after it is read.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn runs<R>(
        &self,
        filter: &JobFilter,
        convert: impl Fn(StoredRun) -> R,
    ) -> Result<Vec<R>> {
        self.list_jobs(filter, convert).await
    }

    /// Replaces the request of a run that has no result.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn set_request(&self, id: &JobId, request: &str) -> Result<()> {
        let update = sqlx::query(
            "UPDATE runs SET request = $2 WHERE id = $1 AND status IN ('infrastructure', 'cancelled')",
        )
        .bind(id.as_str())
        .bind(request);
        self.execute("store the request", update).await
    }

    /// Stores the title of the issue, once it was read.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn set_title(&self, id: &JobId, title: &str) -> Result<()> {
        let update = sqlx::query("UPDATE runs SET title = $2 WHERE id = $1")
            .bind(id.as_str())
            .bind(title);
        self.execute("store the title", update).await
    }
}
