//! Heartbeats of processes that claim jobs, and jobs whose process died.

use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, FromRow, Row};

use super::jobs::{Attempt, JobKind};
use super::queries::from_row;
use super::{JobId, Store};
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

from_row! { WorkerProcess { name, host, version, slots, started_at } }

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

/// Reads a worker without its jobs.
impl<'r> FromRow<'r, AnyRow> for StoredWorker {
    fn from_row(row: &'r AnyRow) -> std::result::Result<Self, sqlx::Error> {
        Ok(StoredWorker {
            process: WorkerProcess::from_row(row)?,
            last_seen: row.try_get("last_seen")?,
            is_alive: row.try_get::<i64, _>("is_alive")? != 0,
            runs: Vec::new(),
            tasks: 0,
        })
    }
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
        let what = "store the heartbeat";
        let clock = self.clock();
        let beat = format!(
            "INSERT INTO worker_processes (name, host, version, slots, started_at, last_seen) \
             VALUES ($1, $2, $3, $4, $5, {clock}) ON CONFLICT (name) DO UPDATE SET last_seen = excluded.last_seen"
        );
        let beat = sqlx::query(AssertSqlSafe(beat))
            .bind(&process.name)
            .bind(&process.host)
            .bind(&process.version)
            .bind(process.slots)
            .bind(process.started_at);
        self.execute(what, beat).await?;
        let forget =
            format!("DELETE FROM worker_processes WHERE last_seen < {clock} - {LISTED_FOR}");
        let forget = sqlx::query(AssertSqlSafe(forget));
        self.execute(what, forget).await
    }

    /// Removes the heartbeat of a process that is shutting down.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn remove_worker(&self, name: &str) -> Result<()> {
        let deletion = sqlx::query("DELETE FROM worker_processes WHERE name = $1").bind(name);
        self.execute("remove the worker", deletion).await
    }

    /// Lists the processes with slots, oldest first.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn workers(&self) -> Result<Vec<StoredWorker>> {
        let what = "list the workers";
        let statement = format!(
            "SELECT name, host, version, slots, started_at, last_seen, \
             CASE WHEN last_seen >= {} - {HEARTBEAT_TIMEOUT_MS} THEN 1 ELSE 0 END AS is_alive \
             FROM worker_processes WHERE slots > 0 ORDER BY started_at, name",
            self.clock()
        );
        let query = sqlx::query(AssertSqlSafe(statement));
        let mut workers: Vec<StoredWorker> = self.list(what, query).await?;
        let running = sqlx::query(AssertSqlSafe(running_jobs()));
        let running: Vec<(JobKind, JobId, i64, String)> = self.list(what, running).await?;
        for (kind, id, _, name) in running {
            let Some(worker) = workers.iter_mut().find(|w| w.process.name == name) else {
                continue;
            };
            match kind {
                JobKind::Run => worker.runs.push(id),
                JobKind::Matrix | JobKind::Grading => worker.tasks += 1,
                JobKind::Comparison | JobKind::GitHubTask => {}
            }
        }
        Ok(workers)
    }

    /// Lists the running jobs of processes that are silent or unknown, and those of this worker.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn orphans(&self, worker: &str) -> Result<Vec<Attempt>> {
        let statement = format!(
            "SELECT kind, id, number FROM ({}) job WHERE worker = $1 OR NOT EXISTS \
             (SELECT 1 FROM worker_processes p WHERE p.name = job.worker AND p.last_seen >= {} - {SUSPECT_TIMEOUT_MS})",
            running_jobs(),
            self.clock()
        );
        let query = sqlx::query(AssertSqlSafe(statement)).bind(worker);
        self.list("list orphaned jobs", query).await
    }
}

/// Returns a statement that selects the running jobs of all kinds.
fn running_jobs() -> String {
    let of_kind = |kind: JobKind| {
        let table = kind.table();
        format!(
            "SELECT '{table}' AS kind, id, attempt AS number, worker FROM {table} WHERE status = 'running'"
        )
    };
    JobKind::ALL.map(of_kind).join(" UNION ALL ")
}
