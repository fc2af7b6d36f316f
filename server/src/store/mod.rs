//! Stores runs and their trajectories in SQLite (embedded) or Postgres, with the same SQL statements.
//!
//! The store is also the queue: processes claim jobs in it ([`crate::jobs`]).

mod artifacts;
mod comparisons;
mod events;
mod failure;
mod github;
mod gradings;
mod job_id;
mod job_status;
mod jobs;
mod matrices;
mod migration_lock;
mod model_usage;
mod pool;
mod queries;
mod queue_state;
mod retention;
mod returns;
mod runs;
mod shares;
mod stored_job;
mod tokens;
mod workers;

use std::borrow::Cow;
use std::path::Path;
use std::str::FromStr;

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AnyPool, ConnectOptions as _, Connection as _, SqlStr};
use tokio::sync::watch;

use failure::failure;
use testwright_config::error::{Error, Result};

pub use artifacts::StoredArtifact;
pub use comparisons::{ComparisonReport, NewComparison, RequestedComparison, StoredComparison};
pub use events::StoredEvent;
pub use github::{GitHubTask, GitHubTaskKind, NewGitHubTask};
pub use gradings::{GradingBatch, NewGrading, StoredGrading};
pub use job_id::{JobId, now, timestamp};
pub use job_status::JobStatus;
pub use jobs::{Attempt, AttemptResults, JobKind};
pub use matrices::{MatrixProgress, NewMatrix, StoredMatrix};
pub use model_usage::{BatchBudget, StoreQuota};
pub use queue_state::QueueState;
pub use retention::{JobFiles, RemovalCounts};
pub use runs::{NewRun, StoredRun};
pub use stored_job::JobFilter;
pub use tokens::{Scope, Token};
pub use workers::{StoredWorker, WorkerProcess};

/// Bytes of the test write that shows whether the database is writable.
const WRITE_PROBE_BYTES: usize = 8 << 10;

/// A database with all jobs, their results and their quotas: SQLite or PostgreSQL. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    pool: AnyPool,
    is_postgres: bool,
    /// Wakes the job loops of this process.
    added_jobs: watch::Sender<()>,
}

impl Store {
    /// Opens `sqlite:PATH` (created if missing) or `postgres://…`, and applies migrations.
    ///
    /// # Errors
    ///
    /// Fails if the URL is invalid, the database cannot be opened, or a migration fails.
    pub async fn open(url: &str) -> Result<Self> {
        let failed =
            |error: sqlx::Error| failure(&format!("open the database {}", redacted(url)), &error);
        sqlx::any::install_default_drivers();
        let (is_postgres, _lock) = match url.split_once(':').map(|(scheme, _)| scheme) {
            Some("sqlite") => {
                let options = SqliteConnectOptions::from_str(url)
                    .map_err(failed)?
                    .create_if_missing(true)
                    .journal_mode(SqliteJournalMode::Wal)
                    .synchronous(SqliteSynchronous::Full)
                    .busy_timeout(std::time::Duration::from_secs(30));
                let lock = migration_lock::lock(options.get_filename()).await?;
                // Creates the file and its write-ahead log.
                let connection = options.connect().await.map_err(failed)?;
                connection.close().await.map_err(failed)?;
                (false, lock)
            }
            Some("postgres" | "postgresql") => (true, None),
            _ => {
                return Err(Error::usage(format!("open the database {}", redacted(url)))
                    .cause("the URL is neither SQLite nor Postgres")
                    .hint("use sqlite:FILE or postgres://USER@HOST/NAME"));
            }
        };
        let pool = pool::options()
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    if !is_postgres {
                        let pragmas = "PRAGMA busy_timeout = 30000; PRAGMA synchronous = FULL";
                        sqlx::raw_sql(pragmas).execute(connection).await?;
                    }
                    Ok(())
                })
            })
            .connect(url)
            .await
            .map_err(failed)?;
        let store = Store {
            pool,
            is_postgres,
            added_jobs: watch::Sender::new(()),
        };
        let migrated = migrations().run(&store.pool).await;
        migrated.map_err(|error| failure("migrate the database", &error))?;
        Ok(store)
    }

    /// Returns the URL of the embedded database in a folder.
    pub fn url_in(folder: &Path) -> String {
        let file = folder.join("testwright.db").display().to_string();
        // These characters have a meaning in URLs.
        let file = file.replace('%', "%25");
        format!("sqlite:{}", file.replace('?', "%3F").replace('#', "%23"))
    }

    /// Returns a receiver that changes when this process may have made a job due.
    pub fn added_jobs(&self) -> watch::Receiver<()> {
        self.added_jobs.subscribe()
    }

    fn announce_job(&self) {
        self.added_jobs.send_replace(());
    }

    /// Checks that the database responds.
    ///
    /// # Errors
    ///
    /// Fails if the database does not respond.
    pub async fn health(&self) -> Result<()> {
        let probe = sqlx::query("SELECT 1");
        self.execute("reach the database", probe).await
    }

    /// Checks that the database is writable, with a write the size of a few rows.
    ///
    /// # Errors
    ///
    /// Fails if the database does not respond or cannot be written to.
    pub async fn check_write(&self) -> Result<()> {
        let probe = sqlx::query(
            "INSERT INTO write_probes (name, content) VALUES ('readiness', $1) \
             ON CONFLICT (name) DO UPDATE SET content = excluded.content",
        )
        // SQLite skips the write if the content is unchanged.
        .bind(format!("{:016}", now()).repeat(WRITE_PROBE_BYTES / 16));
        self.execute("write to the database", probe).await
    }
}

/// Migrations in order; new ones are appended. sqlx's macro for this would add an SQL parser and 16 packages.
const MIGRATIONS: [&str; 2] = [
    include_str!("migrations/0001_schema.sql"),
    include_str!("migrations/0002_base_commit.sql"),
];

fn migrations() -> Migrator {
    let migration = |(version, sql)| {
        let (name, kind) = (Cow::Borrowed("schema"), MigrationType::Simple);
        Migration::new(version, name, kind, SqlStr::from_static(sql), false)
    };
    let all = (1..).zip(MIGRATIONS).map(migration);
    let mut migrations = Migrator::with_migrations(all.collect());
    // Older versions of testwright can use the database of a newer one.
    migrations.set_ignore_missing(true);
    migrations
}

/// Returns the location of the database, without user, password and options.
fn redacted(url: &str) -> String {
    let hidden = "…";
    let Some((scheme, rest)) = url.split_once(':') else {
        return hidden.to_owned();
    };
    let (rest, _) = rest.split_once('?').unwrap_or((rest, ""));
    match scheme {
        "sqlite" => format!("sqlite:{rest}"),
        "postgres" | "postgresql" => {
            // An unescaped password may contain any character, so the last @ ends it.
            let place = rest.trim_start_matches('/');
            let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
            let port = place
                .split('/')
                .next()
                .and_then(|host| host.rsplit_once(':'));
            let is_place = port.is_none_or(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
            format!("{scheme}://{}", if is_place { place } else { hidden })
        }
        _ => hidden.to_owned(),
    }
}

#[cfg(test)]
mod tests;
