//! Heartbeats of processes that claim jobs, and jobs whose process died.

use std::collections::BTreeMap;

use sqlx::Row;
use sqlx::any::AnyRow;

use super::jobs::{Attempt, JobKind};
use super::{JobId, Store, failure};
use testwright_config::error::Result;

/// Milliseconds without a heartbeat after which a process is considered dead.
const HEARTBEAT_TIMEOUT_MS: i64 = 15_000;
/// Milliseconds without a heartbeat after which the jobs of a process may be orphans. They return to the queue a few
/// seconds later, when the process is considered dead.
const SUSPECT_TIMEOUT_MS: i64 = 11_000;
/// Milliseconds for which a dead process is still listed.
const LISTED_FOR: i64 = 3_600_000;

/// A process that claims jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerProcess {
    /// Unique name of the process.
    pub name: String,
    /// Host name of the machine.
    pub host: String,
    /// Version of testwright.
    pub version: String,
    /// Maximum number of concurrent runs, matrices and gradings.
    pub slots: i64,
    /// Start time, in milliseconds since 1970, UTC.
    pub started_at: i64,
}

/// A process with slots, and its current jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredWorker {
    /// The process.
    pub process: WorkerProcess,
    /// Time of the last heartbeat, in milliseconds since 1970, UTC.
    pub last_seen: i64,
    /// Whether its heartbeat has not timed out.
    pub is_alive: bool,
    /// Ids of its current runs.
    pub runs: Vec<JobId>,
    /// Number of matrices and gradings.
    pub tasks: usize,
}

impl Store {
    /// Returns an expression for the time of the database's clock, which all processes share.
    fn clock(&self) -> &'static str {
        match self.is_postgres {
            true => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
            false => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
        }
    }

    /// Stores the heartbeat of a process, and deletes processes that died long ago.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn put_heartbeat(&self, process: &WorkerProcess) -> Result<()> {
        let failed = |e: sqlx::Error| failure("store the heartbeat", &e);
        let clock = self.clock();
        let beat = format!(
            "INSERT INTO worker_processes (name, host, version, slots, started_at, last_seen) \
             VALUES ($1, $2, $3, $4, $5, {clock}) ON CONFLICT (name) DO UPDATE SET last_seen = excluded.last_seen"
        );
        sqlx::query(sqlx::AssertSqlSafe(beat))
            .bind(&process.name)
            .bind(&process.host)
            .bind(&process.version)
            .bind(process.slots)
            .bind(process.started_at)
            .execute(&self.pool)
            .await
            .map_err(failed)?;
        let forget =
            format!("DELETE FROM worker_processes WHERE last_seen < {clock} - {LISTED_FOR}");
        let forgotten = sqlx::query(sqlx::AssertSqlSafe(forget));
        forgotten
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(failed)
    }

    /// Removes the heartbeat of a process that is shutting down.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn remove_worker(&self, name: &str) -> Result<()> {
        sqlx::query("DELETE FROM worker_processes WHERE name = $1")
            .bind(name)
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(|e| failure("remove the worker", &e))
    }

    /// Lists the processes with slots, oldest first.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn workers(&self) -> Result<Vec<StoredWorker>> {
        let failed = |e: sqlx::Error| failure("list the workers", &e);
        let statement = format!(
            "SELECT name, host, version, slots, started_at, last_seen, \
             CASE WHEN last_seen >= {} - {HEARTBEAT_TIMEOUT_MS} THEN 1 ELSE 0 END AS alive \
             FROM worker_processes WHERE slots > 0 ORDER BY started_at, name",
            self.clock()
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(statement))
            .fetch_all(&self.pool)
            .await
            .map_err(failed)?;
        let mut held: BTreeMap<String, Vec<Attempt>> = BTreeMap::new();
        let running = sqlx::query(sqlx::AssertSqlSafe(running_jobs()));
        for row in running.fetch_all(&self.pool).await.map_err(failed)? {
            let worker = row.try_get("worker").map_err(failed)?;
            let attempt = Attempt::read(&row).map_err(failed)?;
            held.entry(worker).or_default().push(attempt);
        }
        let read = |row: &AnyRow| {
            let name: String = row.try_get("name")?;
            let held = held.remove(&name).unwrap_or_default();
            read_worker(row, name, held)
        };
        let workers: std::result::Result<_, sqlx::Error> = rows.iter().map(read).collect();
        workers.map_err(failed)
    }

    /// Lists the running jobs of processes that are silent or unknown, and those of this worker.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn orphans(&self, worker: &str) -> Result<Vec<Attempt>> {
        let failed = |e: sqlx::Error| failure("list orphaned jobs", &e);
        let statement = format!(
            "SELECT kind, id, attempt FROM ({}) job WHERE worker = $1 OR NOT EXISTS \
             (SELECT 1 FROM worker_processes p WHERE p.name = job.worker AND p.last_seen >= {} - {SUSPECT_TIMEOUT_MS})",
            running_jobs(),
            self.clock()
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(worker);
        let rows = rows.fetch_all(&self.pool).await.map_err(failed)?;
        let orphans: std::result::Result<_, sqlx::Error> = rows.iter().map(Attempt::read).collect();
        orphans.map_err(failed)
    }
}

/// Returns a statement that selects the running jobs of all kinds.
fn running_jobs() -> String {
    let of_kind = |kind: JobKind| {
        let table = kind.table();
        format!(
            "SELECT '{table}' AS kind, id, attempt, worker FROM {table} WHERE status = 'running'"
        )
    };
    JobKind::ALL.map(of_kind).join(" UNION ALL ")
}

fn read_worker(
    row: &AnyRow,
    name: String,
    held: Vec<Attempt>,
) -> std::result::Result<StoredWorker, sqlx::Error> {
    let of_kind = |kind| held.iter().filter(move |attempt| attempt.kind == kind);
    Ok(StoredWorker {
        process: WorkerProcess {
            name,
            host: row.try_get("host")?,
            version: row.try_get("version")?,
            slots: row.try_get("slots")?,
            started_at: row.try_get("started_at")?,
        },
        last_seen: row.try_get("last_seen")?,
        is_alive: row.try_get::<i64, _>("alive")? != 0,
        runs: of_kind(JobKind::Run).map(|run| run.id.clone()).collect(),
        tasks: of_kind(JobKind::Matrix).count() + of_kind(JobKind::Grading).count(),
    })
}
