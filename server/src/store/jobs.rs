//! Jobs: runs, matrices, gradings, comparisons and tasks of GitHub. Each kind has its own table, with the same columns for
//! the process that holds a job.

use serde::{Deserialize, Serialize};
use sqlx::Row;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;

use super::events::{self, StoredEvent};
use super::lists::returned_row;
use super::runs::{RunId, RunStatus, now};
use super::{Store, failure};
use testwright_config::error::Result;

/// How often a job is queued again after its process died: the job itself may be what ends it.
const MAX_LOSSES: i64 = 25;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkKind {
    Run,
    Matrix,
    Grading,
    Comparison,
    GitHubTask,
}

impl WorkKind {
    pub(super) const ALL: [WorkKind; 5] = [
        WorkKind::Run,
        WorkKind::Matrix,
        WorkKind::Grading,
        WorkKind::Comparison,
        WorkKind::GitHubTask,
    ];
    /// Kinds for which owners share the workers.
    pub(super) const SHARED: [WorkKind; 3] = [WorkKind::Run, WorkKind::Matrix, WorkKind::Grading];

    pub(super) fn table(self) -> &'static str {
        match self {
            WorkKind::Run => "runs",
            WorkKind::Matrix => "matrices",
            WorkKind::Grading => "gradings",
            WorkKind::Comparison => "comparisons",
            WorkKind::GitHubTask => "github_tasks",
        }
    }

    /// The column that says why it came to no result.
    fn explanation(self) -> &'static str {
        match self {
            WorkKind::Run => "record",
            WorkKind::Matrix | WorkKind::Grading | WorkKind::Comparison => "message",
            WorkKind::GitHubTask => "result",
        }
    }

    /// For logs.
    pub fn name(self) -> &'static str {
        match self {
            WorkKind::Run => "run",
            WorkKind::Matrix => "matrix",
            WorkKind::Grading => "grading",
            WorkKind::Comparison => "comparison",
            WorkKind::GitHubTask => "task of GitHub",
        }
    }
}

/// What an attempt at a run leaves.
#[derive(Debug, Default)]
pub struct AttemptResults {
    pub patch: Option<String>,
    /// JSON.
    pub record: Option<String>,
    /// The event that says how the run ended. It is stored with its end: no worker goes on with a run that has one.
    pub last_event: Option<StoredEvent>,
}

/// Where work is that is not a run.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum WorkStatus {
    /// It waits for a worker.
    Queued,
    Running,
    /// All of it is there.
    Done,
    /// The machine failed: it says nothing of what was asked for.
    Infrastructure,
    Cancelled,
}

impl WorkStatus {
    const ALL: [WorkStatus; 5] = [
        WorkStatus::Queued,
        WorkStatus::Running,
        WorkStatus::Done,
        WorkStatus::Infrastructure,
        WorkStatus::Cancelled,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            WorkStatus::Queued => "queued",
            WorkStatus::Running => "running",
            WorkStatus::Done => "done",
            WorkStatus::Infrastructure => "infrastructure",
            WorkStatus::Cancelled => "cancelled",
        }
    }

    /// It came to no result, and can go on.
    pub fn may_be_retried(self) -> bool {
        matches!(self, WorkStatus::Infrastructure | WorkStatus::Cancelled)
    }

    pub fn has_ended(self) -> bool {
        !matches!(self, WorkStatus::Queued | WorkStatus::Running)
    }

    pub(super) fn of(row: &AnyRow) -> std::result::Result<Self, sqlx::Error> {
        let status: String = row.try_get("status")?;
        let known = Self::ALL.into_iter().find(|s| s.as_str() == status);
        known.ok_or_else(|| sqlx::Error::Decode(format!("there is no status {status}").into()))
    }
}

/// A job that a process has claimed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attempt {
    pub kind: WorkKind,
    pub id: RunId,
    /// What it writes counts for as long as no other attempt has begun.
    pub number: i64,
}

impl Attempt {
    pub(super) fn read(row: &AnyRow) -> std::result::Result<Self, sqlx::Error> {
        Ok(Attempt {
            kind: kind_of(row)?,
            id: RunId::stored(row.try_get("id")?),
            number: row.try_get("attempt")?,
        })
    }
}

impl Store {
    /// Claims a job for a process; `None` if it is not due, or if another process was faster.
    pub(super) async fn claim(
        &self,
        kind: WorkKind,
        id: &RunId,
        worker: &str,
    ) -> Result<Option<Attempt>> {
        let failed = |e: &sqlx::Error| failure("claim a job", e);
        let table = kind.table();
        let statement = format!(
            "UPDATE {table} SET attempt = attempt + 1, status = 'running', started_at = COALESCE(started_at, $2), worker = $3 \
             WHERE id = $1 AND status = 'queued' AND not_before <= $2 RETURNING '{table}' AS kind, id, attempt"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(id.as_str())
            .bind(now())
            .bind(worker);
        let row = returned_row(query, &self.pool).await;
        let row = row.map_err(|e| failed(&e))?;
        let attempt = row.as_ref().map(Attempt::read).transpose();
        attempt.map_err(|e| failed(&e))
    }

    /// Claims the job whose id a query selects.
    pub(super) async fn claim_selected(
        &self,
        kind: WorkKind,
        query: Query<'_, sqlx::Any, AnyArguments>,
        worker: &str,
    ) -> Result<Option<Attempt>> {
        let failed = |e: &sqlx::Error| failure("select a job", e);
        let row = query.fetch_optional(&self.pool).await;
        let Some(row) = row.map_err(|e| failed(&e))? else {
            return Ok(None);
        };
        let id = RunId::stored(row.try_get("id").map_err(|e| failed(&e))?);
        self.claim(kind, &id, worker).await
    }

    /// Whether this attempt still holds its job, and the job was not cancelled.
    pub async fn is_wanted(&self, taken: &Attempt) -> Result<bool> {
        let statement = format!(
            "SELECT id FROM {} WHERE id = $1 AND attempt = $2 AND status = 'running' AND cancel = 0",
            taken.kind.table()
        );
        let found = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(taken.id.as_str())
            .bind(taken.number)
            .fetch_optional(&self.pool)
            .await;
        let found = found.map_err(|e| failure("see whether it is to end", &e))?;
        Ok(found.is_some())
    }

    /// Stores the end of an attempt at a run, and returns the status of the run then: a cancelled run that is returned to the
    /// queue has ended. `None` if another process has claimed the run since.
    pub async fn end_attempt(
        &self,
        taken: &Attempt,
        status: RunStatus,
        left: AttemptResults,
    ) -> Result<Option<RunStatus>> {
        let failed = |e: sqlx::Error| failure("store the end of the run", &e);
        let mut transaction = self.pool.begin().await.map_err(failed)?;
        if let Some(event) = &left.last_event {
            let added = events::insert(&mut *transaction, &taken.id, taken.number, event);
            added.await.map_err(failed)?;
        }
        let (patch, record) = (left.patch.as_deref(), left.record.as_deref());
        let results = [("patch", patch), ("record", record)];
        let has_ended = status.has_ended();
        let ended = end(
            &mut *transaction,
            taken,
            status.as_str(),
            has_ended,
            &results,
        );
        let Some(ended) = ended.await? else {
            // The transaction rolls the event back.
            return Ok(None);
        };
        transaction.commit().await.map_err(failed)?;
        // A task of GitHub may have waited for the end of the run.
        self.announce_job();
        Ok(RunStatus::parse(&ended))
    }

    /// Stores the end of an attempt at another job, unless another process has claimed the job since.
    pub async fn end_work(
        &self,
        taken: &Attempt,
        status: WorkStatus,
        message: Option<&str>,
    ) -> Result<()> {
        let results = [(taken.kind.explanation(), message)];
        let has_ended = status.has_ended();
        end(&self.pool, taken, status.as_str(), has_ended, &results).await?;
        self.announce_job();
        Ok(())
    }

    /// Queues an orphaned job again; ends it if it was cancelled, or was orphaned too often. `false` if it is no longer an
    /// orphan.
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
            // In place of a record, in its shape.
            WorkKind::Run => {
                serde_json::json!({"outcome": "infrastructure", "message": message}).to_string()
            }
            _ => message,
        };
        let returned = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(orphan.id.as_str())
            .bind(orphan.number)
            .bind(now())
            .bind(MAX_LOSSES)
            .bind(message)
            .execute(&self.pool)
            .await
            .map_err(|e| failure("return an orphaned job to the queue", &e))?;
        self.announce_job();
        Ok(returned.rows_affected() > 0)
    }

    /// Queues a job again that came to no result, and starts its counts of losses and returns over; `false` if it is queued or
    /// running, or has a result.
    pub async fn requeue(&self, kind: WorkKind, id: &RunId) -> Result<bool> {
        let statement = format!(
            "UPDATE {} SET status = 'queued', cancel = 0, ended_at = NULL, not_before = 0, {} = NULL, losses = 0, \
             earlier_returns = earlier_returns + returns, returns = 0, return_reason = NULL \
             WHERE id = $1 AND status IN ('infrastructure', 'cancelled')",
            kind.table(),
            kind.explanation()
        );
        let queued = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(id.as_str())
            .execute(&self.pool)
            .await
            .map_err(|e| failure(&format!("queue the {} again", kind.name()), &e))?;
        self.announce_job();
        Ok(queued.rows_affected() > 0)
    }

    /// Asks for the end of work; what waits ends at once. `false` where it had ended.
    pub async fn cancel(&self, kind: WorkKind, id: &RunId) -> Result<bool> {
        let asked = self.cancel_all(kind, "id", id.as_str()).await;
        let asked = asked.map_err(|e| failure(&format!("cancel the {}", kind.name()), &e))?;
        Ok(asked > 0)
    }

    /// Asks for the end of all that has a value in a column; says how much had not ended.
    pub(super) async fn cancel_all(
        &self,
        kind: WorkKind,
        column: &'static str,
        value: &str,
    ) -> std::result::Result<u64, sqlx::Error> {
        let statement = format!(
            "UPDATE {} SET cancel = 1, \
             ended_at = CASE WHEN status = 'queued' THEN $2 ELSE ended_at END, \
             status = CASE WHEN status = 'queued' THEN 'cancelled' ELSE status END \
             WHERE {column} = $1 AND status IN ('queued', 'running')",
            kind.table()
        );
        let asked = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(value)
            .bind(now())
            .execute(&self.pool)
            .await?;
        Ok(asked.rows_affected())
    }
}

/// Ends an attempt and returns the status of the job then; `None` if another process has claimed it since.
async fn end(
    executor: impl sqlx::Executor<'_, Database = sqlx::Any>,
    taken: &Attempt,
    status: &str,
    has_ended: bool,
    results: &[(&'static str, Option<&str>)],
) -> Result<Option<String>> {
    let failed = |e: &sqlx::Error| failure("store the end of the work", e);
    let columns = results.iter().enumerate();
    let columns: String = columns
        .map(|(n, (column, _))| format!(", {column} = ${}", n + 6))
        .collect();
    let statement = format!(
        "UPDATE {} SET status = CASE WHEN cancel = 1 AND $3 = 'queued' THEN 'cancelled' ELSE $3 END, \
         ended_at = CASE WHEN cancel = 1 AND $3 = 'queued' THEN $4 ELSE $5 END{columns} \
         WHERE id = $1 AND attempt = $2 AND status = 'running' RETURNING status",
        taken.kind.table()
    );
    let mut query = sqlx::query(sqlx::AssertSqlSafe(statement))
        .bind(taken.id.as_str())
        .bind(taken.number)
        .bind(status.to_owned())
        .bind(now())
        .bind(has_ended.then(now));
    for (_, value) in results {
        query = query.bind(value.map(str::to_owned));
    }
    let row = returned_row(query, executor).await;
    let row = row.map_err(|e| failed(&e))?;
    row.map(|row| row.try_get("status"))
        .transpose()
        .map_err(|e| failed(&e))
}

/// The kind that has the table.
pub(super) fn kind_of(row: &AnyRow) -> std::result::Result<WorkKind, sqlx::Error> {
    let table: String = row.try_get("kind")?;
    let known = WorkKind::ALL.into_iter().find(|k| k.table() == table);
    known.ok_or_else(|| sqlx::Error::Decode(format!("there is no kind {table}").into()))
}
