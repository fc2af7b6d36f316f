//! Returns jobs to the queue if the machine has a shortage, with an increasing delay.

use sqlx::AssertSqlSafe;

use super::Store;
use super::job_id::now;
use super::jobs::Attempt;
use testwright_config::error::Result;

/// Milliseconds before a returned job can be claimed again; the delay doubles each time.
const FIRST_DELAY: i64 = 5_000;
/// Maximum number of doublings of the delay: up to 640 seconds.
const MAX_DOUBLINGS: i64 = 7;
/// Maximum number of returns by machines that seem healthy: the job itself may be at fault.
const MAX_RETURNS: i64 = 20;

impl Store {
    /// Returns a job to the queue, or ends it if it was cancelled. The attempt does not count. Returns `false` if
    /// another process holds the job, or if it was returned too often and the machine is not `is_sick`.
    ///
    /// # Errors
    ///
    /// Fails if the database query fails.
    pub async fn return_to_queue(
        &self,
        attempt: &Attempt,
        reason: &str,
        is_sick: bool,
    ) -> Result<bool> {
        let statement = format!(
            "UPDATE {} SET status = CASE WHEN cancel = 1 THEN 'cancelled' ELSE 'queued' END, \
             ended_at = CASE WHEN cancel = 1 THEN $3 ELSE ended_at END, returns = returns + 1, return_reason = $4, \
             not_before = $3 + {FIRST_DELAY} * (1 << CAST(CASE WHEN returns < {MAX_DOUBLINGS} THEN returns ELSE {MAX_DOUBLINGS} END AS INTEGER)) \
             WHERE id = $1 AND attempt = $2 AND status = 'running' AND returns < $5",
            attempt.kind.table()
        );
        let update = sqlx::query(AssertSqlSafe(statement))
            .bind(attempt.id.as_str())
            .bind(attempt.number)
            .bind(now())
            .bind(reason)
            .bind(if is_sick { i64::MAX } else { MAX_RETURNS });
        Ok(self
            .changed_rows("return the job to the queue", update)
            .await?
            > 0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{JobKind, NewRun};
    use super::*;

    fn new_run() -> NewRun {
        NewRun {
            request: "{}".to_owned(),
            title: String::new(),
            repository: String::new(),
            approach: "snippet".to_owned(),
            model: "snippet".to_owned(),
            idempotency_key: None,
            owner: "o".to_owned(),
            batch: String::new(),
            traceparent: None,
        }
    }

    #[tokio::test]
    async fn retry_resets_returns() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&Store::url_in(folder.path())).await.unwrap();
        let (run, _) = store.add_run(&new_run()).await.unwrap();
        let read = async || store.run(&run.id).await.unwrap().unwrap();
        let attempt = store.claim_next("w").await.unwrap().unwrap();
        let returned = store.return_to_queue(&attempt, "the disk is full", false);
        assert!(returned.await.unwrap());
        assert!(store.cancel(JobKind::Run, &run.id).await.unwrap());
        assert_eq!(read().await.returns, 1);

        assert!(store.requeue(JobKind::Run, &run.id).await.unwrap());
        let retried = read().await;
        assert_eq!((retried.returns, retried.return_reason), (0, None));
        assert_eq!(store.claim_next("w").await.unwrap().unwrap().number, 2);
        // The returned attempt still does not count.
        assert_eq!(read().await.counted_attempts(), 1);
    }
}
