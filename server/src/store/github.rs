//! What GitHub delivered, and what is to be done for it: so that nothing is done twice, across restarts too.

use sqlx::Row;
use sqlx::any::AnyRow;

use super::lists::returned_row;
use super::runs::{RunId, now};
use super::{Store, failure};
use testwright_config::error::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitHubTaskKind {
    /// Answer an issue with a test.
    Answer,
    /// Say what the issue's test does on a pull request.
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

/// One to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewGitHubTask {
    /// The same for what is to be done once.
    pub id: String,
    pub kind: GitHubTaskKind,
    /// `OWNER/NAME`
    pub repository: String,
    pub issue: u64,
    /// As JSON.
    pub details: String,
}

/// One that is being worked on.
#[derive(Debug, Clone, PartialEq)]
pub struct GitHubTask {
    pub id: String,
    pub created_at: i64,
    pub repository: String,
    pub issue: u64,
    pub details: String,
    /// The run that writes the test.
    pub run: Option<RunId>,
    /// How often it was taken, this time included.
    pub attempts: i64,
    /// How often that failed.
    pub failures: i64,
}

const COLUMNS: &str = "id, created_at, repository, issue, details, run, attempts, failures";

impl Store {
    /// Stores a delivery and what it asks for, both or nothing; `false` where it was delivered before.
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
                    "INSERT INTO github_tasks (id, kind, created_at, repository, issue, details, status, attempts, failures, \
                     next_at, claimed_until) VALUES ($1, $2, $3, $4, $5, $6, 'open', 0, 0, 0, 0) ON CONFLICT DO NOTHING",
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
            Ok::<bool, sqlx::Error>(true)
        };
        added.await.map_err(|e| failure("store a delivery", &e))
    }

    /// Takes the oldest task that is due, until a time; one whose run goes on is not due.
    pub async fn claim_github_task(
        &self,
        kind: GitHubTaskKind,
        until: i64,
    ) -> Result<Option<GitHubTask>> {
        let statement = format!(
            "UPDATE github_tasks SET claimed_until = $3, attempts = attempts + 1 WHERE claimed_until <= $2 AND id = \
             (SELECT t.id FROM github_tasks t LEFT JOIN runs r ON r.id = t.run WHERE t.kind = $1 AND t.status = 'open' \
             AND t.next_at <= $2 AND t.claimed_until <= $2 AND (t.run IS NULL OR r.status NOT IN ('queued', 'running')) \
             ORDER BY t.created_at, t.id LIMIT 1) RETURNING {COLUMNS}"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(kind.as_str())
            .bind(now())
            .bind(until);
        let row = returned_row(query, &self.pool).await;
        let row = row.map_err(|e| failure("take a task of GitHub's", &e))?;
        row.as_ref().map(read).transpose()
    }

    /// It is still being worked on: `false` where another server has taken it since.
    pub async fn extend_github_claim(&self, task: &GitHubTask, until: i64) -> Result<bool> {
        let query = "UPDATE github_tasks SET claimed_until = $3 WHERE id = $1 AND attempts = $2";
        let query = sqlx::query(query).bind(task.id.clone()).bind(task.attempts);
        self.change_github_task(query.bind(until)).await
    }

    /// Gives it back, if it is still this server's: it is due again at a time. `why`, where it failed.
    pub async fn postpone_github_task(
        &self,
        task: &GitHubTask,
        next_at: i64,
        why: Option<&str>,
    ) -> Result<()> {
        let query = sqlx::query(
            "UPDATE github_tasks SET next_at = $3, claimed_until = 0, failures = failures + $4, result = $5 WHERE id = $1 \
             AND attempts = $2",
        );
        let query = query.bind(task.id.clone()).bind(task.attempts);
        let query = query.bind(next_at).bind(i64::from(why.is_some()));
        let query = query.bind(why.map(str::to_owned));
        self.change_github_task(query).await.map(drop)
    }

    /// It is worked on no more.
    pub async fn end_github_task(
        &self,
        task: &GitHubTask,
        is_done: bool,
        result: &str,
    ) -> Result<()> {
        let status = if is_done { "done" } else { "failed" };
        let query = sqlx::query(
            "UPDATE github_tasks SET status = $3, result = $4, claimed_until = 0 WHERE id = $1 AND attempts = $2",
        );
        let query = query.bind(task.id.clone()).bind(task.attempts);
        let query = query.bind(status).bind(result.to_owned());
        self.change_github_task(query).await.map(drop)
    }

    /// Links a task with the run that writes its test.
    pub async fn link_github_run(&self, id: &str, run: &RunId) -> Result<()> {
        let query = sqlx::query("UPDATE github_tasks SET run = $2 WHERE id = $1");
        let query = query.bind(id.to_owned()).bind(run.as_str().to_owned());
        self.change_github_task(query).await.map(drop)
    }

    /// The runs for an issue, those that were asked for last first; `None` for one that is not made yet.
    pub async fn github_runs(&self, repository: &str, issue: u64) -> Result<Vec<Option<RunId>>> {
        let rows = sqlx::query(
            "SELECT run FROM github_tasks WHERE kind = 'answer' AND (run IS NOT NULL OR status = 'open') AND repository = $1 AND issue = $2 \
             ORDER BY created_at DESC, id DESC",
        )
        .bind(repository)
        .bind(number(issue))
        .fetch_all(&self.pool)
        .await
        .map_err(|e| failure("find the runs for an issue", &e))?;
        let run = |row: &AnyRow| {
            Ok(row
                .try_get::<Option<String>, _>("run")?
                .as_deref()
                .and_then(RunId::parse))
        };
        let runs: std::result::Result<Vec<_>, sqlx::Error> = rows.iter().map(run).collect();
        runs.map_err(|e| failure("find the runs for an issue", &e))
    }

    /// Was there anything to change?
    async fn change_github_task(
        &self,
        query: sqlx::query::Query<'_, sqlx::Any, sqlx::any::AnyArguments>,
    ) -> Result<bool> {
        let changed = query.execute(&self.pool).await;
        changed
            .map(|changed| changed.rows_affected() > 0)
            .map_err(|e| failure("store what came of a task of GitHub's", &e))
    }
}

/// Numbers of issues are small.
fn number(issue: u64) -> i64 {
    i64::try_from(issue).unwrap_or(i64::MAX)
}

fn read(row: &AnyRow) -> Result<GitHubTask> {
    let read = || -> std::result::Result<GitHubTask, sqlx::Error> {
        Ok(GitHubTask {
            id: row.try_get("id")?,
            created_at: row.try_get("created_at")?,
            repository: row.try_get("repository")?,
            issue: row.try_get::<i64, _>("issue")?.unsigned_abs(),
            details: row.try_get("details")?,
            run: row
                .try_get::<Option<String>, _>("run")?
                .as_deref()
                .and_then(RunId::parse),
            attempts: row.try_get("attempts")?,
            failures: row.try_get("failures")?,
        })
    };
    read().map_err(|e| failure("read a task of GitHub's", &e))
}
