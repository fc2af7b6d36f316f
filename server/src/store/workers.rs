//! Processes that work on runs, as they last told of themselves.

use sqlx::Row;
use sqlx::any::AnyRow;

use super::{RunId, Store, failure};
use testwright_config::error::Result;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredWorker {
    pub name: String,
    pub host: String,
    /// Of testwright.
    pub version: String,
    /// Runs and tasks that it works on at one time.
    pub slots: i64,
    /// Milliseconds since 1970, UTC, here and below.
    pub started_at: i64,
    pub last_seen: i64,
    pub runs: Vec<RunId>,
    /// Matrices and gradings that it works on.
    pub tasks: Vec<RunId>,
}

impl Store {
    /// What a worker says of itself, in place of what it said before.
    pub async fn put_worker(&self, worker: &StoredWorker) -> Result<()> {
        let what = "register the worker";
        let ids = |ids: &[RunId]| serde_json::to_string(ids).map_err(|e| failure(what, &e));
        let (runs, tasks) = (ids(&worker.runs)?, ids(&worker.tasks)?);
        sqlx::query(
            "INSERT INTO worker_processes (name, host, version, slots, started_at, last_seen, runs, tasks) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
             ON CONFLICT (name) DO UPDATE SET last_seen = excluded.last_seen, runs = excluded.runs, tasks = excluded.tasks",
        )
        .bind(&worker.name)
        .bind(&worker.host)
        .bind(&worker.version)
        .bind(worker.slots)
        .bind(worker.started_at)
        .bind(worker.last_seen)
        .bind(runs)
        .bind(tasks)
        .execute(&self.pool)
        .await
        .map(drop)
        .map_err(|e| failure(what, &e))
    }

    /// A worker that ends in order.
    pub async fn remove_worker(&self, name: &str) -> Result<()> {
        sqlx::query("DELETE FROM worker_processes WHERE name = $1")
            .bind(name)
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(|e| failure("remove the worker", &e))
    }

    /// Forgets those that were last seen before a time.
    pub async fn forget_workers(&self, before: i64) -> Result<()> {
        sqlx::query("DELETE FROM worker_processes WHERE last_seen < $1")
            .bind(before)
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(|e| failure("forget dead workers", &e))
    }

    /// By the time at which they started.
    pub async fn workers(&self) -> Result<Vec<StoredWorker>> {
        let rows = sqlx::query(
            "SELECT name, host, version, slots, started_at, last_seen, runs, tasks FROM worker_processes ORDER BY started_at, name",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|e| failure("list the workers", &e))?;
        let read: std::result::Result<Vec<_>, sqlx::Error> = rows.iter().map(read).collect();
        read.map_err(|e| failure("list the workers", &e))
    }
}

fn read(row: &AnyRow) -> std::result::Result<StoredWorker, sqlx::Error> {
    let ids = |column: &str| {
        let ids: String = row.try_get(column)?;
        serde_json::from_str(&ids).map_err(|e| sqlx::Error::Decode(e.into()))
    };
    Ok(StoredWorker {
        name: row.try_get("name")?,
        host: row.try_get("host")?,
        version: row.try_get("version")?,
        slots: row.try_get("slots")?,
        started_at: row.try_get("started_at")?,
        last_seen: row.try_get("last_seen")?,
        runs: ids("runs")?,
        tasks: ids("tasks")?,
    })
}
