//! Jobs: runs, matrices, gradings, comparisons and GitHub tasks. Each kind has its own table, with the same columns for
//! claiming jobs.

use std::path::{Path, PathBuf};

use sqlx::AssertSqlSafe;

use super::events::{self, StoredEvent};
use super::job_id::{JobId, now};
use super::job_status::JobStatus;
use super::queries::{Statement, from_row, returned_row, text_column};
use super::{Store, failure};
use testwright_config::error::Result;

/// Maximum number of times a job is queued again after its process died: the job itself may kill processes.
const MAX_LOSSES: i64 = 25;

/// The kind of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobKind {
    /// A run, which writes a test for an issue.
    Run,
    /// A matrix, which runs tests on candidate patches.
    Matrix,
    /// A grading of predictions on one instance.
    Grading,
    /// A comparison of approaches and models.
    Comparison,
    /// A task that an event on GitHub caused.
    GitHubTask,
}

impl JobKind {
    pub(super) const ALL: [JobKind; 5] = [
        JobKind::Run,
        JobKind::Matrix,
        JobKind::Grading,
        JobKind::Comparison,
        JobKind::GitHubTask,
    ];
    /// Kinds of jobs for which owners share the workers.
    pub(super) const SHARED: [JobKind; 3] = [JobKind::Run, JobKind::Matrix, JobKind::Grading];

    pub(super) fn table(self) -> &'static str {
        match self {
            JobKind::Run => "runs",
            JobKind::Matrix => "matrices",
            JobKind::Grading => "gradings",
            JobKind::Comparison => "comparisons",
            JobKind::GitHubTask => "github_tasks",
        }
    }

    /// Returns the column with the reason why the job has no result.
    fn explanation(self) -> &'static str {
        match self {
            JobKind::Run => "record",
            JobKind::Matrix | JobKind::Grading | JobKind::Comparison => "message",
            JobKind::GitHubTask => "result",
        }
    }

    /// Returns the name of the kind, for messages.
    pub fn name(self) -> &'static str {
        match self {
            JobKind::Run => "run",
            JobKind::Matrix => "matrix",
            JobKind::Grading => "grading",
            JobKind::Comparison => "comparison",
            JobKind::GitHubTask => "GitHub task",
        }
    }
}

// A row names its kind by the table.
text_column!(JobKind, |table| JobKind::ALL
    .into_iter()
    .find(|kind| kind.table() == table));

/// The results of an attempt.
#[derive(Debug, Default)]
pub struct AttemptResults {
    /// Patch of a run.
    pub patch: Option<String>,
    /// Record of a run (JSON); for other jobs, the reason for the lack of a result; for a GitHub task, also what it
    /// did.
    pub explanation: Option<String>,
    /// Last event of a run. It is stored together with the end of the run, because no worker may resume an ended run.
    pub last_event: Option<StoredEvent>,
}

impl AttemptResults {
    /// Creates results without a patch and a last event, only with an explanation.
    pub fn explained(explanation: impl Into<String>) -> Self {
        AttemptResults {
            explanation: Some(explanation.into()),
            ..AttemptResults::default()
        }
    }
}

/// A job that a process has claimed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attempt {
    /// Kind of the job.
    pub kind: JobKind,
    /// Id of the job.
    pub id: JobId,
    /// Number of the attempt. Its writes are rejected once a later attempt has started.
    pub number: i64,
}

from_row! { Attempt { kind, id, number } }

impl Attempt {
    /// Returns the folder of the attempt in the folder for jobs in progress. It is not shared with other attempts, because
    /// one that was taken for dead may still write.
    pub(crate) fn folder_in(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.{}", self.id, self.number))
    }
}

impl Store {
    /// Claims a job for a process; `None` if it is not due or another process was faster.
    pub(super) async fn claim(
        &self,
        kind: JobKind,
        id: &JobId,
        worker: &str,
    ) -> Result<Option<Attempt>> {
        let table = kind.table();
        let statement = format!(
            "UPDATE {table} SET attempt = attempt + 1, status = 'running', started_at = COALESCE(started_at, $2), worker = $3 \
             WHERE id = $1 AND status = 'queued' AND not_before <= $2 RETURNING '{table}' AS kind, id, attempt AS number"
        );
        let claim = sqlx::query(AssertSqlSafe(statement))
            .bind(id.as_str())
            .bind(now())
            .bind(worker);
        let attempt = returned_row(claim, &self.pool).await;
        attempt.map_err(|e| failure("claim a job", &e))
    }

    /// Claims the job whose id a query selects.
    pub(super) async fn claim_selected(
        &self,
        kind: JobKind,
        query: Statement<'_>,
        worker: &str,
    ) -> Result<Option<Attempt>> {
        let selected: Option<(JobId,)> = self.find("select a job", query).await?;
        match selected {
            Some((id,)) => self.claim(kind, &id, worker).await,
            None => Ok(None),
        }
    }

    /// Returns whether this attempt still holds its job and the job was not cancelled.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn is_wanted(&self, attempt: &Attempt) -> Result<bool> {
        let statement = format!(
            "SELECT id FROM {} WHERE id = $1 AND attempt = $2 AND status = 'running' AND cancel = 0",
            attempt.kind.table()
        );
        let query = sqlx::query(AssertSqlSafe(statement))
            .bind(attempt.id.as_str())
            .bind(attempt.number);
        let held: Option<(JobId,)> = self
            .find("check whether the job was cancelled", query)
            .await?;
        Ok(held.is_some())
    }

    /// Stores the end of an attempt and returns the resulting status: a cancelled job that returns to the queue becomes
    /// cancelled. `None` if another process has claimed the job since.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails; the end is then not stored.
    pub async fn end_attempt(
        &self,
        attempt: &Attempt,
        status: JobStatus,
        results: AttemptResults,
    ) -> Result<Option<JobStatus>> {
        let failed = |e: sqlx::Error| failure("store the end of a job", &e);
        let mut transaction = self.pool.begin().await.map_err(failed)?;
        if let Some(event) = &results.last_event {
            let added = events::insert(&mut *transaction, &attempt.id, attempt.number, event);
            added.await.map_err(failed)?;
        }
        let patch = match attempt.kind {
            JobKind::Run => ", patch = $7",
            _ => "",
        };
        let statement = format!(
            "UPDATE {} SET status = CASE WHEN cancel = 1 AND $3 = 'queued' THEN 'cancelled' ELSE $3 END, \
             ended_at = CASE WHEN cancel = 1 AND $3 = 'queued' THEN $4 ELSE $5 END, {} = $6{patch} \
             WHERE id = $1 AND attempt = $2 AND status = 'running' RETURNING status",
            attempt.kind.table(),
            attempt.kind.explanation(),
        );
        let mut query = sqlx::query(AssertSqlSafe(statement))
            .bind(attempt.id.as_str())
            .bind(attempt.number)
            .bind(status.as_str())
            .bind(now())
            .bind(status.has_ended().then(now))
            .bind(results.explanation);
        if attempt.kind == JobKind::Run {
            query = query.bind(results.patch);
        }
        let ended = returned_row(query, &mut *transaction).await;
        let Some((ended,)): Option<(JobStatus,)> = ended.map_err(failed)? else {
            // Dropping the transaction rolls the event back.
            return Ok(None);
        };
        transaction.commit().await.map_err(failed)?;
        // A GitHub task may be waiting for the end of the run.
        self.announce_job();
        Ok(Some(ended))
    }

    /// Queues an orphaned job again, or ends it if it was cancelled or orphaned too often. `false` if it is no longer
    /// an orphan.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn return_orphan(&self, orphan: &Attempt) -> Result<bool> {
        let explanation = orphan.kind.explanation();
        let statement = format!(
            "UPDATE {} SET losses = losses + 1, \
             status = CASE WHEN cancel = 1 THEN 'cancelled' WHEN losses < $4 THEN 'queued' ELSE 'infrastructure' END, \
             ended_at = CASE WHEN cancel = 1 OR losses >= $4 THEN $3 ELSE ended_at END, \
             {explanation} = CASE WHEN cancel = 1 OR losses < $4 THEN {explanation} ELSE $5 END \
             WHERE id = $1 AND attempt = $2 AND status = 'running'",
            orphan.kind.table()
        );
        let message = format!("its process died {} times", MAX_LOSSES + 1);
        let message = match orphan.kind {
            // This replaces the record, in the same format.
            JobKind::Run => {
                serde_json::json!({"outcome": "infrastructure", "message": message}).to_string()
            }
            _ => message,
        };
        let update = sqlx::query(AssertSqlSafe(statement))
            .bind(orphan.id.as_str())
            .bind(orphan.number)
            .bind(now())
            .bind(MAX_LOSSES)
            .bind(message);
        let returned = self
            .changed_rows("return an orphaned job to the queue", update)
            .await?;
        self.announce_job();
        Ok(returned > 0)
    }

    /// Queues a job again that has no result, and resets its counts of losses and returns. `false` if it is queued or
    /// running, or has a result.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn requeue(&self, kind: JobKind, id: &JobId) -> Result<bool> {
        let statement = format!(
            "UPDATE {} SET status = 'queued', cancel = 0, ended_at = NULL, not_before = 0, {} = NULL, losses = 0, \
             earlier_returns = earlier_returns + returns, returns = 0, return_reason = NULL \
             WHERE id = $1 AND status IN ('infrastructure', 'cancelled')",
            kind.table(),
            kind.explanation()
        );
        let update = sqlx::query(AssertSqlSafe(statement)).bind(id.as_str());
        let what = format!("queue the {} again", kind.name());
        let queued = self.changed_rows(&what, update).await?;
        self.announce_job();
        Ok(queued > 0)
    }

    /// Cancels a job; a queued one ends immediately. `false` if it had already ended.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn cancel(&self, kind: JobKind, id: &JobId) -> Result<bool> {
        let what = format!("cancel the {}", kind.name());
        Ok(self.cancel_all(&what, kind, "id", id.as_str()).await? > 0)
    }

    /// Cancels all jobs with a value in a column, and returns the number that had not ended.
    pub(super) async fn cancel_all(
        &self,
        what: &str,
        kind: JobKind,
        column: &'static str,
        value: &str,
    ) -> Result<u64> {
        let statement = format!(
            "UPDATE {} SET cancel = 1, \
             ended_at = CASE WHEN status = 'queued' THEN $2 ELSE ended_at END, \
             status = CASE WHEN status = 'queued' THEN 'cancelled' ELSE status END \
             WHERE {column} = $1 AND status IN ('queued', 'running')",
            kind.table()
        );
        let update = sqlx::query(AssertSqlSafe(statement))
            .bind(value)
            .bind(now());
        self.changed_rows(what, update).await
    }
}
