//! Matrices of tests and patches: requests, statuses and cells.

use std::collections::BTreeMap;

use super::Store;
use super::job_id::{JobId, now};
use super::job_status::JobStatus;
use super::jobs::{Attempt, JobKind};
use super::queries::from_row;
use super::stored_job::{JobFilter, StoredJob};
use testwright_config::error::Result;

/// A matrix to store.
#[derive(Debug, Clone)]
pub struct NewMatrix {
    /// The request, as JSON.
    pub request: String,
    /// Repository: a URL, or a folder on the server.
    pub repository: String,
    /// Owner of the request.
    pub owner: String,
    /// Key that identifies repetitions of the request; it includes the owner.
    pub idempotency_key: Option<String>,
}

/// A matrix in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredMatrix {
    /// Id of the matrix.
    pub id: JobId,
    /// Creation time, in milliseconds since 1970, UTC; the other times use the same format.
    pub created_at: i64,
    /// Time at which a worker started it.
    pub started_at: Option<i64>,
    /// Time at which it ended.
    pub ended_at: Option<i64>,
    /// Status of the matrix.
    pub status: JobStatus,
    /// The request, as JSON.
    pub request: String,
    /// Repository: a URL, or a folder on the server.
    pub repository: String,
    /// Owner of the request.
    pub owner: String,
    /// Number of times a worker has claimed it.
    pub attempt: i64,
    /// Whether cancellation was requested.
    pub cancel: bool,
    /// Reason why it has no result.
    pub message: Option<String>,
    /// Full hash of the old code's commit, once an attempt has resolved it.
    pub base_commit: Option<String>,
}

/// The progress of a matrix, without its request and results.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MatrixProgress {
    /// Status of the matrix.
    pub status: JobStatus,
    /// Number of stored cells.
    pub cells: i64,
}

impl StoredJob for StoredMatrix {
    const KIND: JobKind = JobKind::Matrix;
    const COLUMNS: &'static str = "id, created_at, started_at, ended_at, request, repository, owner, attempt, cancel, message, \
                                   base_commit";

    fn id(&self) -> &JobId {
        &self.id
    }
}

from_row! {
    StoredMatrix {
        id, created_at, started_at, ended_at, status, request, repository, owner, attempt, message, base_commit,
    } flags { cancel }
}

from_row! { MatrixProgress { status, cells } }

impl Store {
    /// Adds a matrix. If the idempotency key is already in use, returns that matrix and `false`.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn add_matrix(&self, new: &NewMatrix) -> Result<(StoredMatrix, bool)> {
        let id = JobId::new(now());
        let insertion = sqlx::query(
            "INSERT INTO matrices (id, created_at, status, request, repository, owner, idempotency_key) \
             VALUES ($1, $2, 'queued', $3, $4, $5, $6) ON CONFLICT (idempotency_key) DO NOTHING",
        )
        .bind(id.as_str())
        .bind(now())
        .bind(&new.request)
        .bind(&new.repository)
        .bind(&new.owner)
        .bind(new.idempotency_key.clone());
        self.add_job(&id, new.idempotency_key.as_deref(), insertion)
            .await
    }

    /// Returns a matrix; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn matrix(&self, id: impl AsRef<str>) -> Result<Option<StoredMatrix>> {
        self.find_by_id(id).await
    }

    /// Returns the progress of a matrix; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn matrix_progress(&self, id: &JobId) -> Result<Option<MatrixProgress>> {
        let query = sqlx::query(
            "SELECT status, (SELECT COUNT(*) FROM matrix_cells WHERE matrix = matrices.id) AS cells FROM matrices \
             WHERE id = $1",
        )
        .bind(id.as_str());
        self.find("read the progress of the matrix", query).await
    }

    /// Lists matrices, newest first, each converted soon after it is read.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn matrices<R>(
        &self,
        filter: &JobFilter,
        convert: impl Fn(StoredMatrix) -> R,
    ) -> Result<Vec<R>> {
        self.list_jobs(filter, convert).await
    }

    /// Counts the stored cells of all matrices from the oldest to the newest.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn cell_counts(
        &self,
        oldest: &JobId,
        newest: &JobId,
    ) -> Result<BTreeMap<String, i64>> {
        let query = sqlx::query(
            "SELECT matrix, COUNT(*) AS cells FROM matrix_cells WHERE matrix >= $1 AND matrix <= $2 GROUP BY matrix",
        )
        .bind(oldest.as_str())
        .bind(newest.as_str());
        let counts: Vec<(String, i64)> =
            self.list("count the cells of the matrices", query).await?;
        Ok(counts.into_iter().collect())
    }

    /// Deletes a matrix; `false` if it has not ended.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn delete_matrix(&self, id: &JobId) -> Result<bool> {
        let what = "delete the matrix";
        let deletion = sqlx::query(
            "DELETE FROM matrices WHERE id = $1 AND status NOT IN ('queued', 'running')",
        )
        .bind(id.as_str());
        if self.changed_rows(what, deletion).await? == 0 {
            return Ok(false);
        }
        let cells = sqlx::query("DELETE FROM matrix_cells WHERE matrix = $1").bind(id.as_str());
        self.execute(what, cells).await?;
        Ok(true)
    }

    /// Stores the commit of the old code for later attempts.
    ///
    /// # Errors
    ///
    /// Fails if another worker has claimed the matrix, or the database query fails.
    pub async fn set_base_commit(&self, attempt: &Attempt, commit: &str) -> Result<()> {
        let update = sqlx::query(
            "UPDATE matrices SET base_commit = $3 WHERE id = $1 AND attempt = $2 AND status = 'running'",
        )
        .bind(attempt.id.as_str())
        .bind(attempt.number)
        .bind(commit);
        self.execute_for(attempt, "store the commit of the matrix", update)
            .await
    }

    /// Adds a cell of an attempt; replaces a cell that failed.
    ///
    /// # Errors
    ///
    /// Fails if another worker has claimed the matrix, or the database query fails.
    pub async fn add_cell(
        &self,
        attempt: &Attempt,
        [tests, patch]: [&str; 2],
        result: &str,
    ) -> Result<()> {
        let insertion = sqlx::query(
            "INSERT INTO matrix_cells (matrix, tests, patch, result) SELECT id, $3, $4, $5 FROM matrices \
             WHERE id = $1 AND attempt = $2 AND status = 'running' \
             ON CONFLICT (matrix, tests, patch) DO UPDATE SET result = excluded.result",
        )
        .bind(attempt.id.as_str())
        .bind(attempt.number)
        .bind(tests)
        .bind(patch)
        .bind(result);
        self.execute_for(attempt, "store a cell of the matrix", insertion)
            .await
    }

    /// Returns the results of all stored cells.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn cells(&self, id: &JobId) -> Result<Vec<String>> {
        let query =
            sqlx::query("SELECT result FROM matrix_cells WHERE matrix = $1 ORDER BY tests, patch")
                .bind(id.as_str());
        self.list_texts("read the cells of the matrix", query).await
    }
}
