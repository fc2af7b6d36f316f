//! Adding, finding and listing jobs, the same for all kinds.

use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, FromRow};

use super::Store;
use super::job_id::JobId;
use super::jobs::{Attempt, JobKind};
use super::queries::{Condition, Statement};
use testwright_config::error::{Error, Result};

/// A kind of job that the store can show and list.
pub(super) trait StoredJob: for<'r> FromRow<'r, AnyRow> {
    const KIND: JobKind;
    /// Columns to read, without the status.
    const COLUMNS: &'static str;
    /// Expression for the status.
    const STATUS: &'static str = "status";

    /// Returns the statement that selects all jobs of this kind.
    fn selection() -> String {
        let (columns, status, table) = (Self::COLUMNS, Self::STATUS, Self::KIND.table());
        format!("SELECT {columns}, {status} AS status FROM {table}")
    }
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
        let is_new = self.execute(&what, insertion).await? > 0;
        self.announce_job();
        let stored = match idempotency_key {
            Some(key) if !is_new => self.find_job("idempotency_key", key).await?,
            _ => self.find_job("id", id.as_str()).await?,
        };
        let missing = || Error::infrastructure(what).cause(format!("the new {name} is missing"));
        Ok((stored.ok_or_else(missing)?, is_new))
    }

    /// Finds the job with a value in a unique column.
    pub(super) async fn find_job<J: StoredJob>(
        &self,
        column: &'static str,
        value: &str,
    ) -> Result<Option<J>> {
        let statement = format!("{} WHERE {column} = $1", J::selection());
        let query = sqlx::query(AssertSqlSafe(statement)).bind(value);
        let what = format!("read the {}", J::KIND.name());
        self.find(&what, query).await
    }

    /// Lists jobs that meet all conditions, newest first.
    pub(super) async fn list_jobs<J: StoredJob>(
        &self,
        conditions: &[Condition<'_>],
        limit: u32,
    ) -> Result<Vec<J>> {
        let what = format!("list the {}", J::KIND.table());
        self.list_newest(&what, &J::selection(), conditions, "id", limit)
            .await
    }

    /// Runs a statement of an attempt that changes no row if another worker has claimed the job since.
    pub(super) async fn execute_for(
        &self,
        attempt: &Attempt,
        what: &str,
        statement: Statement<'_>,
    ) -> Result<()> {
        match self.execute(what, statement).await? {
            0 => {
                let cause = format!("another worker has claimed the {}", attempt.kind.name());
                Err(Error::infrastructure(what).cause(cause))
            }
            _ => Ok(()),
        }
    }
}
