//! Deliveries from GitHub and the tasks they cause. The store prevents duplicates, even across restarts.

use sqlx::any::AnyRow;
use sqlx::{FromRow, Row};

use super::job_id::{JobId, now};
use super::jobs::{Attempt, JobKind};
use super::{Store, failure};
use testwright_config::error::Result;

/// The kind of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitHubTaskKind {
    /// Answer an issue with a test.
    Answer,
    /// Report what the issue's test does on a pull request.
    Confirm,
}

impl GitHubTaskKind {
    fn as_str(self) -> &'static str {
        match self {
            GitHubTaskKind::Answer => "answer",
            GitHubTaskKind::Confirm => "confirm",
        }
    }
}

/// A task to store.
#[derive(Debug, Clone, PartialEq)]
pub struct NewGitHubTask {
    /// Deterministic id, so that a task is done only once.
    pub id: String,
    /// Kind of the task.
    pub kind: GitHubTaskKind,
    /// Repository, as `OWNER/NAME`.
    pub repository: String,
    /// Number of the issue.
    pub issue: u64,
    /// Details of the task, as JSON.
    pub details: String,
}

/// A task in progress.
#[derive(Debug, Clone, PartialEq)]
pub struct GitHubTask {
    /// Id, deterministic for the cause of the task.
    pub id: String,
    /// Creation time, in milliseconds since 1970, UTC.
    pub created_at: i64,
    /// Repository, as `OWNER/NAME`.
    pub repository: String,
    /// Number of the issue.
    pub issue: u64,
    /// Details of the task, as JSON.
    pub details: String,
    /// The run that writes the test.
    pub run: Option<JobId>,
    /// Number of times the task was claimed, including this one.
    pub attempts: i64,
    /// Number of failures.
    pub failures: i64,
}

impl Store {
    /// Stores a delivery and its tasks in one transaction; `false` if this delivery was already received.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn add_github_delivery(
        &self,
        id: &str,
        digest: &str,
        tasks: &[NewGitHubTask],
    ) -> Result<bool> {
        let added = async {
            let mut transaction = self.pool.begin().await?;
            let added = sqlx::query(
                "INSERT INTO github_deliveries (id, digest, received_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
            )
            .bind(id)
            .bind(digest)
            .bind(now())
            .execute(&mut *transaction)
            .await?;
            if added.rows_affected() == 0 {
                return Ok(false);
            }
            for task in tasks {
                sqlx::query(
                    "INSERT INTO github_tasks (id, kind, created_at, repository, issue, details, status) \
                     VALUES ($1, $2, $3, $4, $5, $6, 'queued') ON CONFLICT DO NOTHING",
                )
                .bind(&task.id)
                .bind(task.kind.as_str())
                .bind(now())
                .bind(&task.repository)
                .bind(number(task.issue))
                .bind(&task.details)
                .execute(&mut *transaction)
                .await?;
            }
            transaction.commit().await?;
            self.announce_job();
            Ok::<bool, sqlx::Error>(true)
        };
        added.await.map_err(|e| failure("store a delivery", &e))
    }

    /// Claims the oldest task that is due. A task whose run has not ended is not due; one whose run was removed is.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn claim_github_task(
        &self,
        kind: GitHubTaskKind,
        worker: &str,
    ) -> Result<Option<Attempt>> {
        let oldest = sqlx::query(
            "SELECT t.id AS id FROM github_tasks t LEFT JOIN runs r ON r.id = t.run WHERE t.kind = $1 AND t.status = 'queued' \
             AND t.not_before <= $2 AND (r.id IS NULL OR r.status NOT IN ('queued', 'running')) \
             ORDER BY t.created_at, t.id LIMIT 1",
        );
        let oldest = oldest.bind(kind.as_str()).bind(now());
        self.claim_selected(JobKind::GitHubTask, oldest, worker)
            .await
    }

    /// Returns a task; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn github_task(&self, id: &str) -> Result<Option<GitHubTask>> {
        let query = sqlx::query(
            "SELECT id, created_at, repository, issue, details, run, attempt, failures FROM github_tasks WHERE id = $1",
        )
        .bind(id);
        self.find("read a GitHub task", query).await
    }

    /// Returns a task to the queue until a time, unless another process has claimed it since. `why` is the reason, if
    /// it failed.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn postpone_github_task(
        &self,
        attempt: &Attempt,
        not_before: i64,
        why: Option<&str>,
    ) -> Result<()> {
        let update = sqlx::query(
            "UPDATE github_tasks SET status = 'queued', not_before = $3, failures = failures + $4, result = $5 \
             WHERE id = $1 AND attempt = $2 AND status = 'running'",
        )
        .bind(attempt.id.as_str())
        .bind(attempt.number)
        .bind(not_before)
        .bind(i64::from(why.is_some()))
        .bind(why.map(str::to_owned));
        self.execute("postpone a GitHub task", update).await
    }

    /// Links a task with the run that writes its test.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn link_github_run(&self, id: &str, run: &JobId) -> Result<()> {
        let update = sqlx::query("UPDATE github_tasks SET run = $2 WHERE id = $1")
            .bind(id)
            .bind(run.as_str());
        self.execute("link a GitHub task with its run", update)
            .await
    }

    /// Lists the runs for an issue, latest request first; `None` for a run that does not exist yet.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn github_runs(&self, repository: &str, issue: u64) -> Result<Vec<Option<JobId>>> {
        let query = sqlx::query(
            "SELECT run FROM github_tasks WHERE kind = 'answer' AND (run IS NOT NULL OR status IN ('queued', 'running')) AND repository = $1 AND issue = $2 \
             ORDER BY created_at DESC, id DESC",
        )
        .bind(repository)
        .bind(number(issue));
        let runs: Vec<(Option<JobId>,)> = self.list("find the runs for an issue", query).await?;
        Ok(runs.into_iter().map(|(run,)| run).collect())
    }
}

/// Converts the number of an issue, which is always small enough.
fn number(issue: u64) -> i64 {
    i64::try_from(issue).unwrap_or(i64::MAX)
}

impl<'r> FromRow<'r, AnyRow> for GitHubTask {
    fn from_row(row: &'r AnyRow) -> std::result::Result<Self, sqlx::Error> {
        Ok(GitHubTask {
            id: row.try_get("id")?,
            created_at: row.try_get("created_at")?,
            repository: row.try_get("repository")?,
            issue: row.try_get::<i64, _>("issue")?.unsigned_abs(),
            details: row.try_get("details")?,
            run: row.try_get("run")?,
            attempts: row.try_get("attempt")?,
            failures: row.try_get("failures")?,
        })
    }
}

#[cfg(test)]
mod tests;
