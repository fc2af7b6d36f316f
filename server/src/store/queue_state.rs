//! The state of the queue, and a check that the database is migrated.

use super::{JobStatus, Store, migrations, now};
use testwright_config::error::{Error, Result};

/// The runs of the queue, by number and age.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Number of runs by status; includes statuses without runs.
    pub by_status: Vec<(JobStatus, i64)>,
    /// Creation time of the oldest queued run, in milliseconds since 1970.
    pub oldest: Option<i64>,
}

impl QueueState {
    /// Returns the number of runs of a status.
    pub fn count(&self, status: JobStatus) -> i64 {
        let entry = self.by_status.iter().find(|(s, _)| *s == status);
        entry.map_or(0, |(_, count)| *count)
    }

    /// Returns the age of the oldest queued run, in milliseconds.
    pub fn oldest_age(&self) -> Option<i64> {
        self.oldest.map(|oldest| (now() - oldest).max(0))
    }
}

impl Store {
    /// Counts the runs by status and finds the oldest queued run.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn queue_state(&self) -> Result<QueueState> {
        let query = sqlx::query(
            "SELECT status, COUNT(*) AS count, MIN(created_at) AS oldest FROM runs GROUP BY status",
        );
        let rows: Vec<(String, i64, i64)> = self.list("count the runs", query).await?;
        let mut state = QueueState {
            by_status: JobStatus::of_runs().map(|status| (status, 0)).collect(),
            oldest: None,
        };
        for (status, count, oldest) in rows {
            let counts = state.by_status.iter_mut();
            for (_, counted) in counts.filter(|(job_status, _)| job_status.as_str() == status) {
                *counted = count;
            }
            if status == JobStatus::Queued.as_str() {
                state.oldest = Some(oldest);
            }
        }
        Ok(state)
    }

    /// Checks that the database has all tables and columns that this program needs.
    ///
    /// # Errors
    ///
    /// Fails if a migration is missing or the database query fails.
    pub async fn check_migrations(&self) -> Result<()> {
        let what = "compare the database with this program";
        let query = sqlx::query("SELECT version FROM _sqlx_migrations WHERE success");
        let applied: Vec<(i64,)> = self.list(what, query).await?;
        match migrations()
            .iter()
            .find(|m| !applied.contains(&(m.version,)))
        {
            None => Ok(()),
            Some(missing) => Err(Error::infrastructure(what)
                .cause(format!("migration {} was not applied", missing.version))
                .hint("restart the server: it applies migrations when it starts")),
        }
    }
}
