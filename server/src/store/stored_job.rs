//! Adding, finding and listing jobs, the same for all kinds.

use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, FromRow};

use super::Store;
use super::job_id::JobId;
use super::job_status::JobStatus;
use super::jobs::{Attempt, JobKind};
use super::queries::Statement;
use testwright_config::error::{Error, Result};

/// Maximum number of jobs to read at a time. The requests of a whole list may not fit into memory.
const MAX_ROWS: u32 = 4;

/// A kind of job that the store can show and list.
pub(super) trait StoredJob: for<'r> FromRow<'r, AnyRow> {
    const KIND: JobKind;
    /// Columns to read, without the status.
    const COLUMNS: &'static str;
    /// Expression for the status.
    const STATUS: &'static str = "status";

    /// Returns the id of the job.
    fn id(&self) -> &JobId;

    /// Returns the statement that selects all jobs of this kind.
    fn selection() -> String {
        let (columns, status, table) = (Self::COLUMNS, Self::STATUS, Self::KIND.table());
        format!("SELECT {columns}, {status} AS status FROM {table}")
    }
}

/// Filters for listing the jobs of a kind. Filters for columns that the kind lacks must be `None`.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    /// Selects jobs with this status.
    pub status: Option<JobStatus>,
    /// Selects jobs of this owner.
    pub owner: Option<String>,
    /// Selects runs and matrices on this repository.
    pub repository: Option<String>,
    /// Selects runs of this approach.
    pub approach: Option<String>,
    /// Selects runs with this model.
    pub model: Option<String>,
    /// Selects comparisons on the dataset with this name.
    pub name: Option<String>,
    /// Selects the runs of a comparison, or the gradings of a batch.
    pub batch: Option<JobId>,
    /// Selects jobs created before this one.
    pub before: Option<JobId>,
    /// Maximum number of jobs.
    pub limit: u32,
}

impl Store {
    /// Adds a job by an INSERT statement. If the idempotency key is already in use, returns that job and `false`.
    pub(super) async fn add_job<J: StoredJob>(
        &self,
        id: &JobId,
        idempotency_key: Option<&str>,
        insertion: Statement<'_>,
    ) -> Result<(J, bool)> {
        let name = J::KIND.name();
        let what = format!("store the {name}");
        let is_new = self.changed_rows(&what, insertion).await? > 0;
        self.announce_job();
        let stored = match idempotency_key {
            Some(key) if !is_new => self.find_job("idempotency_key", key).await?,
            _ => self.find_job("id", id.as_str()).await?,
        };
        let missing = || Error::infrastructure(what).cause(format!("the new {name} is missing"));
        Ok((stored.ok_or_else(missing)?, is_new))
    }

    /// Finds the job with an id, which may come from a client.
    pub(super) async fn find_by_id<J: StoredJob>(&self, id: impl AsRef<str>) -> Result<Option<J>> {
        match JobId::parse(id.as_ref()) {
            Some(id) => self.find_job("id", id.as_str()).await,
            None => Ok(None),
        }
    }

    /// Finds the job with a value in a unique column.
    pub(super) async fn find_job<J: StoredJob>(
        &self,
        column: &'static str,
        value: &str,
    ) -> Result<Option<J>> {
        // Postgres accepts no text with a NUL, so no job has one.
        if value.contains('\0') {
            return Ok(None);
        }
        let statement = format!("{} WHERE {column} = $1", J::selection());
        let query = sqlx::query(AssertSqlSafe(statement)).bind(value);
        let what = format!("read the {}", J::KIND.name());
        self.find(&what, query).await
    }

    /// Lists jobs, newest first, each converted soon after it is read.
    pub(super) async fn list_jobs<J: StoredJob, R>(
        &self,
        filter: &JobFilter,
        convert: impl Fn(J) -> R,
    ) -> Result<Vec<R>> {
        let what = format!("list the {}", J::KIND.table());
        let selection = J::selection();
        let mut filter = filter.clone();
        let mut converted = Vec::new();
        while filter.limit > 0 {
            let conditions = [
                (J::STATUS, '=', filter.status.map(JobStatus::as_str)),
                ("owner", '=', filter.owner.as_deref()),
                ("repository", '=', filter.repository.as_deref()),
                ("approach", '=', filter.approach.as_deref()),
                ("model", '=', filter.model.as_deref()),
                ("name", '=', filter.name.as_deref()),
                ("batch", '=', filter.batch.as_ref().map(JobId::as_str)),
                ("id", '<', filter.before.as_ref().map(JobId::as_str)),
            ];
            let limit = filter.limit.min(MAX_ROWS);
            let jobs = self.list_newest(&what, &selection, &conditions, "id", limit);
            let jobs: Vec<J> = jobs.await?;
            filter.before = jobs.last().map(|last| last.id().clone());
            // A short read is the last one: another would search the rest of the table without a result.
            filter.limit = match jobs.len() < limit as usize {
                true => 0,
                false => filter.limit - limit,
            };
            converted.extend(jobs.into_iter().map(&convert));
        }
        Ok(converted)
    }

    /// Runs a statement of an attempt that changes no row if another worker has claimed the job since.
    pub(super) async fn execute_for(
        &self,
        attempt: &Attempt,
        what: &str,
        statement: Statement<'_>,
    ) -> Result<()> {
        match self.changed_rows(what, statement).await? {
            0 => {
                let cause = format!("another worker has claimed the {}", attempt.kind.name());
                Err(Error::infrastructure(what).cause(cause))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
