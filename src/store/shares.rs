//! Which run a worker takes next: owners share the workers evenly, and so do the batches of one owner, however many runs
//! each has waiting.

use std::collections::BTreeMap;

use sqlx::Row;
use sqlx::any::AnyRow;

use super::runs::{RunId, RunStatus, now, status_of};
use super::{Store, failure};
use crate::error::Result;

/// Others may take the same run at the same time; so often another is looked for.
const TRIES: usize = 100;

/// A run that a worker has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attempt {
    pub run: RunId,
    /// What it writes counts for as long as no other attempt has begun.
    pub number: i64,
}

/// Runs of one owner that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Share {
    owner: String,
    batch: String,
    /// The oldest that waits.
    first: RunId,
    running: i64,
    /// Of all batches of the owner.
    owner_running: i64,
    turn: i64,
}

impl Store {
    /// A worker takes a run by a message of the queue: the one that it was given by this ticket before, where its worker
    /// died; otherwise the next in turn. `None` where nothing waits.
    pub async fn take_run(&self, ticket: &RunId) -> Result<Option<Attempt>> {
        if let Some(lost) = self.lost_run(ticket).await? {
            return Ok(Some(lost));
        }
        for _ in 0..TRIES {
            let waiting = self.waiting_shares().await?;
            let Some(share) = next(&waiting) else {
                return Ok(None);
            };
            if let Some(attempt) = self.begin_attempt(&share.first, ticket).await? {
                self.end_turn(share).await?;
                return Ok(Some(attempt));
            }
        }
        Err(failure("take a run", &"other workers take them all"))
    }

    /// The run of a ticket whose worker is gone.
    async fn lost_run(&self, ticket: &RunId) -> Result<Option<Attempt>> {
        let failed = |e: &sqlx::Error| failure("take up a run", e);
        // One that is to end has nobody who ends it.
        sqlx::query(
            "UPDATE runs SET status = 'cancelled', ended_at = $2 WHERE ticket = $1 AND status = 'running' AND cancel = 1",
        )
        .bind(ticket.as_str())
        .bind(now())
        .execute(&self.pool)
        .await
        .map_err(|e| failed(&e))?;
        let row = sqlx::query(
            "UPDATE runs SET attempt = attempt + 1 WHERE ticket = $1 AND status = 'running' RETURNING id, attempt",
        )
        .bind(ticket.as_str())
        .fetch_optional(&self.pool)
        .await
        .map_err(|e| failed(&e))?;
        row.as_ref().map(read).transpose().map_err(|e| failed(&e))
    }

    /// The end of an attempt, and what the run is then: one that is given back and is to end is cancelled. `None` where another
    /// worker has taken the run since.
    pub async fn end_attempt(
        &self,
        taken: &Attempt,
        status: RunStatus,
        patch: Option<&str>,
        record: Option<&str>,
    ) -> Result<Option<RunStatus>> {
        let ended_at = status.has_ended().then(now);
        let ended = sqlx::query(
            "UPDATE runs SET status = CASE WHEN cancel = 1 AND $3 = 'queued' THEN 'cancelled' ELSE $3 END, \
             ended_at = CASE WHEN cancel = 1 AND $3 = 'queued' THEN $7 ELSE $4 END, patch = $5, record = $6 \
             WHERE id = $1 AND attempt = $2 AND status = 'running' RETURNING status",
        )
        .bind(taken.run.as_str())
        .bind(taken.number)
        .bind(status.as_str())
        .bind(ended_at)
        .bind(patch.map(str::to_owned))
        .bind(record.map(str::to_owned))
        .bind(now())
        .fetch_optional(&self.pool)
        .await
        .map_err(|e| failure("store the end of the run", &e))?;
        let status = ended.as_ref().map(status_of).transpose();
        status.map_err(|e| failure("store the end of the run", &e))
    }

    /// The runs that workers have.
    pub async fn running_attempts(&self) -> Result<Vec<Attempt>> {
        let failed = |e: &sqlx::Error| failure("list the runs that are worked on", e);
        let rows = sqlx::query("SELECT id, attempt FROM runs WHERE status = 'running'")
            .fetch_all(&self.pool)
            .await
            .map_err(|e| failed(&e))?;
        let attempts: std::result::Result<_, sqlx::Error> = rows.iter().map(read).collect();
        attempts.map_err(|e| failed(&e))
    }

    /// Lets another worker take a run whose worker is gone; ends it where it is to end. `false` where it is no longer so.
    pub async fn give_back(&self, lost: &Attempt) -> Result<bool> {
        let given = sqlx::query(
            "UPDATE runs SET status = CASE WHEN cancel = 1 THEN 'cancelled' ELSE 'queued' END, \
             ended_at = CASE WHEN cancel = 1 THEN $3 ELSE ended_at END \
             WHERE id = $1 AND attempt = $2 AND status = 'running'",
        )
        .bind(lost.run.as_str())
        .bind(lost.number)
        .bind(now())
        .execute(&self.pool)
        .await
        .map_err(|e| failure("give back a run", &e))?;
        Ok(given.rows_affected() > 0)
    }

    pub async fn oldest_queued(&self) -> Result<Option<RunId>> {
        let oldest: Option<String> =
            sqlx::query_scalar("SELECT MIN(id) FROM runs WHERE status = 'queued'")
                .fetch_one(&self.pool)
                .await
                .map_err(|e| failure("see what waits", &e))?;
        Ok(oldest.map(RunId::stored))
    }

    async fn begin_attempt(&self, run: &RunId, ticket: &RunId) -> Result<Option<Attempt>> {
        let failed = |e: &sqlx::Error| failure("take a run", e);
        let row = sqlx::query(
            "UPDATE runs SET attempt = attempt + 1, status = $2, started_at = COALESCE(started_at, $3), ticket = $4 \
             WHERE id = $1 AND status = 'queued' RETURNING id, attempt",
        )
        .bind(run.as_str())
        .bind(RunStatus::Running.as_str())
        .bind(now())
        .bind(ticket.as_str())
        .fetch_optional(&self.pool)
        .await
        .map_err(|e| failed(&e))?;
        row.as_ref().map(read).transpose().map_err(|e| failed(&e))
    }

    async fn waiting_shares(&self) -> Result<Vec<Share>> {
        let rows = sqlx::query(
            "SELECT w.owner AS owner, w.batch AS batch, w.first AS first, \
                 (SELECT COUNT(*) FROM runs r WHERE r.status = 'running' AND r.owner = w.owner AND r.batch = w.batch) AS running, \
                 (SELECT COUNT(*) FROM runs r WHERE r.status = 'running' AND r.owner = w.owner) AS owner_running, \
                 COALESCE(s.turn, 0) AS turn \
             FROM (SELECT owner, batch, MIN(id) AS first FROM runs WHERE status = 'queued' GROUP BY owner, batch) w \
             LEFT JOIN shares s ON s.owner = w.owner AND s.batch = w.batch",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|e| failure("see what waits", &e))?;
        let read_share = |row: &AnyRow| {
            Ok(Share {
                owner: row.try_get("owner")?,
                batch: row.try_get("batch")?,
                first: RunId::stored(row.try_get("first")?),
                running: row.try_get("running")?,
                owner_running: row.try_get("owner_running")?,
                turn: row.try_get("turn")?,
            })
        };
        let shares: std::result::Result<Vec<Share>, sqlx::Error> =
            rows.iter().map(read_share).collect();
        shares.map_err(|e| failure("see what waits", &e))
    }

    async fn end_turn(&self, share: &Share) -> Result<()> {
        sqlx::query(
            "INSERT INTO shares (owner, batch, turn) SELECT $1, $2, COALESCE(MAX(turn), 0) + 1 FROM shares WHERE true \
             ON CONFLICT (owner, batch) DO UPDATE SET turn = excluded.turn",
        )
        .bind(&share.owner)
        .bind(&share.batch)
        .execute(&self.pool)
        .await
        .map(drop)
        .map_err(|e| failure("store whose turn it was", &e))
    }
}

fn read(row: &AnyRow) -> std::result::Result<Attempt, sqlx::Error> {
    Ok(Attempt {
        run: RunId::stored(row.try_get("id")?),
        number: row.try_get("attempt")?,
    })
}

/// Of the owner that has the fewest running and was served longest ago, the batch of which the same holds.
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
mod tests {
    use super::*;

    fn share(owner: &str, batch: &str, running: i64, turn: i64) -> Share {
        Share {
            owner: owner.to_owned(),
            batch: batch.to_owned(),
            first: RunId::new(0),
            running,
            owner_running: running,
            turn,
        }
    }

    #[test]
    fn owners_take_turns_and_then_their_batches() {
        let chosen = |waiting: &[Share]| next(waiting).map(|s| (s.owner.clone(), s.batch.clone()));
        let of = |owner: &str, batch: &str| Some((owner.to_owned(), batch.to_owned()));
        assert_eq!(chosen(&[]), None);
        // Who has fewer at work comes first, whoever was served last.
        let waiting = [share("a", "", 2, 1), share("b", "", 1, 9)];
        assert_eq!(chosen(&waiting), of("b", ""));
        // Two batches do not make one owner's share larger.
        let mut waiting = [
            share("a", "x", 1, 1),
            share("a", "y", 0, 2),
            share("b", "", 0, 3),
        ];
        waiting[1].owner_running = 1;
        assert_eq!(chosen(&waiting), of("b", ""));
        assert_eq!(chosen(&waiting[..2]), of("a", "y"));
        // As many at work: who was served longer ago.
        let waiting = [
            share("a", "x", 0, 1),
            share("a", "y", 0, 5),
            share("b", "", 0, 3),
        ];
        assert_eq!(chosen(&waiting), of("b", ""));
    }
}
