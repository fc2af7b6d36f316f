//! Tests × patches: what was asked for, where each matrix is, and its cells.

use std::fmt;

use serde::{Deserialize, Serialize};
use sqlx::Row;
use sqlx::any::AnyRow;

use super::runs::{RunId, now};
use super::{Store, failure};
use crate::error::{Error, Result};

/// Sorts by the time at which the matrix was made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MatrixId(RunId);

impl MatrixId {
    /// One that came in from outside: what is no id names no matrix.
    pub fn parse(text: &str) -> Option<Self> {
        RunId::parse(text).map(MatrixId)
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for MatrixId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

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
pub enum MatrixStatus {
    /// It waits for a worker.
    Queued,
    Running,
    /// Every cell is there.
    Done,
    /// The machine failed, in some cell or before the first: it says nothing of tests or patches.
    Infrastructure,
    Cancelled,
}

impl MatrixStatus {
    const ALL: [MatrixStatus; 5] = [
        MatrixStatus::Queued,
        MatrixStatus::Running,
        MatrixStatus::Done,
        MatrixStatus::Infrastructure,
        MatrixStatus::Cancelled,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            MatrixStatus::Queued => "queued",
            MatrixStatus::Running => "running",
            MatrixStatus::Done => "done",
            MatrixStatus::Infrastructure => "infrastructure",
            MatrixStatus::Cancelled => "cancelled",
        }
    }

    pub fn has_ended(self) -> bool {
        !matches!(self, MatrixStatus::Queued | MatrixStatus::Running)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredMatrix {
    pub id: MatrixId,
    /// Milliseconds since 1970, UTC, here and below.
    pub created_at: i64,
    pub started_at: Option<i64>,
    pub ended_at: Option<i64>,
    pub status: MatrixStatus,
    pub request: String,
    pub repository: String,
    pub attempt: i64,
    pub cancel: bool,
    pub message: Option<String>,
}

const COLUMNS: &str =
    "id, created_at, started_at, ended_at, status, request, repository, attempt, cancel, message";

impl Store {
    /// `request` is what was asked for, as JSON.
    pub async fn add_matrix(&self, request: &str, repository: &str) -> Result<StoredMatrix> {
        let what = "store the matrix";
        let id = MatrixId(RunId::new(now()));
        sqlx::query(
            "INSERT INTO matrices (id, created_at, status, request, repository, attempt, cancel) \
             VALUES ($1, $2, 'queued', $3, $4, 0, 0)",
        )
        .bind(id.as_str())
        .bind(now())
        .bind(request)
        .bind(repository)
        .execute(&self.pool)
        .await
        .map_err(|e| failure(what, &e))?;
        let stored = self.matrix(&id).await?;
        stored.ok_or_else(|| failure(what, &"it is not there"))
    }

    pub async fn matrix(&self, id: &MatrixId) -> Result<Option<StoredMatrix>> {
        let statement = format!("SELECT {COLUMNS} FROM matrices WHERE id = $1");
        let row = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(id.as_str())
            .fetch_optional(&self.pool)
            .await
            .map_err(|e| failure("read the matrix", &e))?;
        row.as_ref().map(read).transpose()
    }

    /// The newest first: those that were made before one, or all.
    pub async fn matrices(
        &self,
        before: Option<&MatrixId>,
        limit: u32,
    ) -> Result<Vec<StoredMatrix>> {
        // After every id.
        let before = before.map_or("~", MatrixId::as_str);
        let statement =
            format!("SELECT {COLUMNS} FROM matrices WHERE id < $1 ORDER BY id DESC LIMIT $2");
        let rows = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(before)
            .bind(i64::from(limit))
            .fetch_all(&self.pool)
            .await
            .map_err(|e| failure("list the matrices", &e))?;
        rows.iter().map(read).collect()
    }

    /// A worker takes a matrix that has not ended: the attempt that it makes, or `None` where nothing is to be done.
    pub async fn begin_matrix_attempt(&self, id: &MatrixId) -> Result<Option<i64>> {
        let what = "take the matrix";
        let row = sqlx::query(
            "UPDATE matrices SET attempt = attempt + 1, status = 'running', started_at = COALESCE(started_at, $2) \
             WHERE id = $1 AND status IN ('queued', 'running') AND cancel = 0 RETURNING attempt",
        )
        .bind(id.as_str())
        .bind(now())
        .fetch_optional(&self.pool)
        .await
        .map_err(|e| failure(what, &e))?;
        row.map(|row| row.try_get("attempt"))
            .transpose()
            .map_err(|e| failure(what, &e))
    }

    /// The end of an attempt: `false` where another worker has taken the matrix since.
    pub async fn end_matrix_attempt(
        &self,
        id: &MatrixId,
        attempt: i64,
        status: MatrixStatus,
        message: Option<&str>,
    ) -> Result<bool> {
        let ended = sqlx::query(
            "UPDATE matrices SET status = $3, ended_at = $4, message = $5 WHERE id = $1 AND attempt = $2 \
             AND status = 'running'",
        )
        .bind(id.as_str())
        .bind(attempt)
        .bind(status.as_str())
        .bind(status.has_ended().then(now))
        .bind(message.map(str::to_owned))
        .execute(&self.pool)
        .await
        .map_err(|e| failure("store the end of the matrix", &e))?;
        Ok(ended.rows_affected() > 0)
    }

    /// Asks for the end of a matrix; one that waits ends at once. `false` where it had ended.
    pub async fn cancel_matrix(&self, id: &MatrixId) -> Result<bool> {
        let asked = self.cancel_all("matrices", "id", id.as_str()).await;
        Ok(asked.map_err(|e| failure("cancel the matrix", &e))? > 0)
    }

    /// Ends a matrix that is to end and that no worker goes on with.
    pub async fn end_matrix_if_cancelled(&self, id: &MatrixId) -> Result<()> {
        sqlx::query(
            "UPDATE matrices SET status = 'cancelled', ended_at = $2 WHERE id = $1 AND cancel = 1 \
             AND status IN ('queued', 'running')",
        )
        .bind(id.as_str())
        .bind(now())
        .execute(&self.pool)
        .await
        .map(drop)
        .map_err(|e| failure("cancel the matrix", &e))
    }

    /// Forgets a matrix that has ended; `false` where it has not.
    pub async fn delete_matrix(&self, id: &MatrixId) -> Result<bool> {
        let what = "delete the matrix";
        let deleted = sqlx::query(
            "DELETE FROM matrices WHERE id = $1 AND status NOT IN ('queued', 'running')",
        )
        .bind(id.as_str())
        .execute(&self.pool)
        .await
        .map_err(|e| failure(what, &e))?;
        if deleted.rows_affected() == 0 {
            return Ok(false);
        }
        sqlx::query("DELETE FROM matrix_cells WHERE matrix = $1")
            .bind(id.as_str())
            .execute(&self.pool)
            .await
            .map_err(|e| failure(what, &e))?;
        Ok(true)
    }

    /// Adds a cell of the attempt that a worker makes; refused where another worker has taken the matrix since. A cell that is
    /// there stays.
    pub async fn add_cell(
        &self,
        id: &MatrixId,
        attempt: i64,
        [tests, patch]: [&str; 2],
        result: &str,
    ) -> Result<()> {
        let what = "store a cell of the matrix";
        let added = sqlx::query(
            "INSERT INTO matrix_cells (matrix, tests, patch, result) SELECT id, $3, $4, $5 FROM matrices \
             WHERE id = $1 AND attempt = $2 AND status = 'running' ON CONFLICT (matrix, tests, patch) DO NOTHING",
        )
        .bind(id.as_str())
        .bind(attempt)
        .bind(tests)
        .bind(patch)
        .bind(result)
        .execute(&self.pool)
        .await
        .map_err(|e| failure(what, &e))?;
        match added.rows_affected() {
            0 => Err(Error::infrastructure(what).cause("another worker has taken the matrix")),
            _ => Ok(()),
        }
    }

    /// The results of all cells that are known.
    pub async fn cells(&self, id: &MatrixId) -> Result<Vec<String>> {
        let what = "read the cells of the matrix";
        let rows =
            sqlx::query("SELECT result FROM matrix_cells WHERE matrix = $1 ORDER BY tests, patch")
                .bind(id.as_str())
                .fetch_all(&self.pool)
                .await
                .map_err(|e| failure(what, &e))?;
        let results = rows.iter().map(|row| row.try_get("result"));
        let results: std::result::Result<Vec<String>, sqlx::Error> = results.collect();
        results.map_err(|e| failure(what, &e))
    }
}

fn read(row: &AnyRow) -> Result<StoredMatrix> {
    let read = || -> std::result::Result<StoredMatrix, sqlx::Error> {
        let (id, status): (String, String) = (row.try_get("id")?, row.try_get("status")?);
        let unknown = |what: String| sqlx::Error::Decode(what.into());
        let known = MatrixStatus::ALL
            .into_iter()
            .find(|known| known.as_str() == status);
        Ok(StoredMatrix {
            id: MatrixId::parse(&id).ok_or_else(|| unknown(format!("{id} is no id")))?,
            created_at: row.try_get("created_at")?,
            started_at: row.try_get("started_at")?,
            ended_at: row.try_get("ended_at")?,
            status: known.ok_or_else(|| unknown(format!("there is no status {status}")))?,
            request: row.try_get("request")?,
            repository: row.try_get("repository")?,
            attempt: row.try_get("attempt")?,
            cancel: row.try_get::<i64, _>("cancel")? != 0,
            message: row.try_get("message")?,
        })
    };
    read().map_err(|e| failure("read a matrix", &e))
}
