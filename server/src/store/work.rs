//! What workers take: runs, matrices and gradings. Each kind has a table of its own, with the same columns for who has it.

use serde::{Deserialize, Serialize};
use sqlx::Row;
use sqlx::any::AnyRow;

use super::events::{self, StoredEvent};
use super::lists::returned_row;
use super::runs::{RunId, RunStatus, now};
use super::{Store, failure};
use testwright_config::error::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkKind {
    Run,
    Matrix,
    Grading,
}

impl WorkKind {
    pub(super) const ALL: [WorkKind; 3] = [WorkKind::Run, WorkKind::Matrix, WorkKind::Grading];

    pub(super) fn table(self) -> &'static str {
        match self {
            WorkKind::Run => "runs",
            WorkKind::Matrix => "matrices",
            WorkKind::Grading => "gradings",
        }
    }

    /// The column that says why it came to no result.
    fn explanation(self) -> &'static str {
        match self {
            WorkKind::Run => "record",
            WorkKind::Matrix | WorkKind::Grading => "message",
        }
    }

    /// For logs.
    pub fn name(self) -> &'static str {
        match self {
            WorkKind::Run => "run",
            WorkKind::Matrix => "matrix",
            WorkKind::Grading => "grading",
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

/// Work that a worker has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attempt {
    pub kind: WorkKind,
    pub id: RunId,
    /// What it writes counts for as long as no other attempt has begun.
    pub number: i64,
}

impl Attempt {
    fn read(kind: WorkKind, row: &AnyRow) -> std::result::Result<Self, sqlx::Error> {
        Ok(Attempt {
            kind,
            id: RunId::stored(row.try_get("id")?),
            number: row.try_get("attempt")?,
        })
    }
}

impl Store {
    pub(super) async fn begin_attempt(
        &self,
        kind: WorkKind,
        id: &RunId,
        ticket: &RunId,
    ) -> Result<Option<Attempt>> {
        let failed = |e: &sqlx::Error| failure("take what waits", e);
        let statement = format!(
            "UPDATE {} SET attempt = attempt + 1, status = 'running', started_at = COALESCE(started_at, $2), ticket = $3 \
             WHERE id = $1 AND status = 'queued' AND not_before <= $2 RETURNING id, attempt",
            kind.table()
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(id.as_str())
            .bind(now())
            .bind(ticket.as_str());
        let row = returned_row(query, &self.pool).await;
        let row = row.map_err(|e| failed(&e))?;
        let attempt = row.as_ref().map(|row| Attempt::read(kind, row)).transpose();
        attempt.map_err(|e| failed(&e))
    }

    /// What was taken by a ticket whose worker is gone.
    pub(super) async fn lost_attempt(&self, ticket: &RunId) -> Result<Option<Attempt>> {
        let failed = |e: &sqlx::Error| failure("take up what was left behind", e);
        for kind in self.taken_by(ticket).await? {
            // What is to end has nobody who ends it.
            let statement = format!(
                "UPDATE {} SET status = 'cancelled', ended_at = $2 WHERE ticket = $1 AND status = 'running' AND cancel = 1",
                kind.table()
            );
            sqlx::query(sqlx::AssertSqlSafe(statement))
                .bind(ticket.as_str())
                .bind(now())
                .execute(&self.pool)
                .await
                .map_err(|e| failed(&e))?;
            let statement = format!(
                "UPDATE {} SET attempt = attempt + 1 WHERE ticket = $1 AND status = 'running' RETURNING id, attempt",
                kind.table()
            );
            let query = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(ticket.as_str());
            let row = returned_row(query, &self.pool).await;
            if let Some(row) = row.map_err(|e| failed(&e))? {
                return Attempt::read(kind, &row).map(Some).map_err(|e| failed(&e));
            }
        }
        Ok(None)
    }

    /// Kinds of what is still worked on by a ticket.
    async fn taken_by(&self, ticket: &RunId) -> Result<Vec<WorkKind>> {
        let of_kind = |kind: WorkKind| {
            let table = kind.table();
            format!(
                "SELECT '{table}' AS kind FROM {table} WHERE ticket = $1 AND status = 'running'"
            )
        };
        let statement = WorkKind::ALL.map(of_kind).join(" UNION ALL ");
        let failed = |e: &sqlx::Error| failure("look for what was left behind", e);
        let rows = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(ticket.as_str())
            .fetch_all(&self.pool)
            .await
            .map_err(|e| failed(&e))?;
        let kinds: std::result::Result<_, sqlx::Error> = rows.iter().map(kind_of).collect();
        kinds.map_err(|e| failed(&e))
    }

    /// Is this attempt still the last one, of what is not to end?
    pub async fn is_wanted(&self, taken: &Attempt) -> Result<bool> {
        let statement = format!(
            "SELECT id FROM {} WHERE id = $1 AND attempt = $2 AND cancel = 0",
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

    /// The end of an attempt at a run, and what the run is then: one that is given back and is to end is cancelled. `None`
    /// where another worker has taken the run since.
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
            // The event goes as well.
            return Ok(None);
        };
        transaction.commit().await.map_err(failed)?;
        Ok(RunStatus::parse(&ended))
    }

    /// The same of other work: is there anybody who is to go on with it?
    pub async fn end_work(
        &self,
        taken: &Attempt,
        status: WorkStatus,
        message: Option<&str>,
    ) -> Result<bool> {
        let results = [("message", message)];
        let has_ended = status.has_ended();
        let ended = end(&self.pool, taken, status.as_str(), has_ended, &results);
        Ok(ended.await?.as_deref() == Some(WorkStatus::Queued.as_str()))
    }

    /// What workers have.
    pub async fn running_attempts(&self) -> Result<Vec<Attempt>> {
        let failed = |e: &sqlx::Error| failure("list what is worked on", e);
        let mut attempts = Vec::new();
        for kind in WorkKind::ALL {
            let statement = format!(
                "SELECT id, attempt FROM {} WHERE status = 'running'",
                kind.table()
            );
            let rows = sqlx::query(sqlx::AssertSqlSafe(statement))
                .fetch_all(&self.pool)
                .await
                .map_err(|e| failed(&e))?;
            for row in &rows {
                attempts.push(Attempt::read(kind, row).map_err(|e| failed(&e))?);
            }
        }
        Ok(attempts)
    }

    /// Lets another worker take what a worker left behind; ends it where it is to end. `false` where it is no longer so.
    pub async fn give_back(&self, lost: &Attempt) -> Result<bool> {
        let statement = format!(
            "UPDATE {} SET status = CASE WHEN cancel = 1 THEN 'cancelled' ELSE 'queued' END, \
             ended_at = CASE WHEN cancel = 1 THEN $3 ELSE ended_at END \
             WHERE id = $1 AND attempt = $2 AND status = 'running'",
            lost.kind.table()
        );
        let given = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(lost.id.as_str())
            .bind(lost.number)
            .bind(now())
            .execute(&self.pool)
            .await
            .map_err(|e| failure("give back what was left behind", &e))?;
        Ok(given.rows_affected() > 0)
    }

    pub async fn oldest_queued(&self) -> Result<Option<RunId>> {
        let of_kind = |kind: WorkKind| {
            let table = kind.table();
            format!(
                "SELECT MIN(id) AS first FROM {table} WHERE status = 'queued' AND not_before <= $1"
            )
        };
        let statement = format!(
            "SELECT MIN(first) FROM ({}) waiting",
            WorkKind::ALL.map(of_kind).join(" UNION ALL ")
        );
        let oldest: Option<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
            .bind(now())
            .fetch_one(&self.pool)
            .await
            .map_err(|e| failure("see what waits", &e))?;
        Ok(oldest.map(RunId::stored))
    }

    /// Queues work again that came to no result, and starts its count of returns over; `false` if it is queued or running, or
    /// has a result.
    pub async fn requeue(&self, kind: WorkKind, id: &RunId) -> Result<bool> {
        let statement = format!(
            "UPDATE {} SET status = 'queued', cancel = 0, ended_at = NULL, not_before = 0, {} = NULL, \
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

/// Ends an attempt, unless another worker has the work; the status that the work then has.
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

/// By the name of its table.
pub(super) fn kind_of(row: &AnyRow) -> std::result::Result<WorkKind, sqlx::Error> {
    let table: String = row.try_get("kind")?;
    let known = WorkKind::ALL.into_iter().find(|k| k.table() == table);
    known.ok_or_else(|| sqlx::Error::Decode(format!("there is no kind {table}").into()))
}
