//! Fair scheduling: owners share the workers evenly, and so do the batches of an owner, regardless of how many jobs
//! each has queued.

use std::collections::BTreeMap;

use sqlx::AssertSqlSafe;

use super::Store;
use super::job_id::{JobId, now};
use super::jobs::{Attempt, JobKind};
use super::queries::from_row;
use testwright_config::error::{Error, Result};

/// Number of attempts to claim a job: other workers may claim the same job first.
const MAX_CLAIM_ATTEMPTS: usize = 100;

/// The queued jobs of one kind, owner and batch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Share {
    kind: JobKind,
    owner: String,
    batch: String,
    /// Id of the oldest queued job.
    first: JobId,
    /// Number of running jobs of all kinds in the batch.
    running: i64,
    /// Number of the owner's running jobs in all batches.
    owner_running: i64,
    turn: i64,
}

from_row! { Share { kind, owner, batch, first, running, owner_running, turn } }

impl Store {
    /// Claims the run, matrix or grading that is next in turn; `None` if none is due.
    ///
    /// # Errors
    ///
    /// Fails if a database query fails, or if other workers claim all candidates first.
    pub async fn claim_next(&self, worker: &str) -> Result<Option<Attempt>> {
        for _ in 0..MAX_CLAIM_ATTEMPTS {
            let waiting = self.waiting_shares().await?;
            let Some(share) = next(&waiting) else {
                return Ok(None);
            };
            let attempt = self.claim(share.kind, &share.first, worker).await?;
            if attempt.is_some() {
                self.end_turn(share).await?;
                return Ok(attempt);
            }
        }
        Err(Error::infrastructure("claim a queued job")
            .cause("other workers claimed all candidates"))
    }

    async fn waiting_shares(&self) -> Result<Vec<Share>> {
        let running = JobKind::SHARED.map(|kind| {
            format!(
                "SELECT owner, batch FROM {} WHERE status = 'running'",
                kind.table()
            )
        });
        let waiting = JobKind::SHARED.map(|kind| {
            let table = kind.table();
            format!(
                "SELECT '{table}' AS kind, owner, batch, MIN(id) AS first FROM {table} \
                 WHERE status = 'queued' AND not_before <= $1 GROUP BY owner, batch"
            )
        });
        let statement = format!(
            "WITH running AS ({}), waiting AS ({}) \
             SELECT w.kind AS kind, w.owner AS owner, w.batch AS batch, w.first AS first, \
                 (SELECT COUNT(*) FROM running r WHERE r.owner = w.owner AND r.batch = w.batch) AS running, \
                 (SELECT COUNT(*) FROM running r WHERE r.owner = w.owner) AS owner_running, \
                 COALESCE(s.turn, 0) AS turn \
             FROM waiting w LEFT JOIN shares s ON s.owner = w.owner AND s.batch = w.batch",
            running.join(" UNION ALL "),
            waiting.join(" UNION ALL ")
        );
        let query = sqlx::query(AssertSqlSafe(statement)).bind(now());
        self.list("list the queued jobs", query).await
    }

    async fn end_turn(&self, share: &Share) -> Result<()> {
        let turn = sqlx::query(
            "INSERT INTO shares (owner, batch, turn) SELECT $1, $2, COALESCE(MAX(turn), 0) + 1 FROM shares WHERE true \
             ON CONFLICT (owner, batch) DO UPDATE SET turn = excluded.turn",
        )
        .bind(&share.owner)
        .bind(&share.batch);
        self.execute("store the turn", turn).await
    }
}

/// Chooses the owner with the fewest running jobs, then the least recently served; chooses among its batches in the
/// same way.
fn next(waiting: &[Share]) -> Option<&Share> {
    let mut turns: BTreeMap<&str, i64> = BTreeMap::new();
    for share in waiting {
        let turn = turns.entry(&share.owner).or_default();
        *turn = (*turn).max(share.turn);
    }
    waiting.iter().min_by_key(|share| {
        let of_owner = (share.owner_running, turns[share.owner.as_str()]);
        (of_owner, share.running, share.turn, &share.first)
    })
}

#[cfg(test)]
mod tests;
