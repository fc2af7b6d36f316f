//! Sees to it that nothing is left behind, neither runs nor matrices and gradings: the queue may have lost what the store still has, where a process ended between the
//! two, or where a message was given up. Doing so once too often does no harm: a worker that lost its work writes nothing
//! more to it, and a ticket too many finds nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::queue::Queue;
use crate::store::{Attempt, RunId, Store, StoredWorker};
use testwright_config::error::Result;
use testwright_config::stop_signal::{StopSignal, stopped};

const INTERVAL: Duration = Duration::from_secs(5);
/// Who tells nothing for so long is dead: later than the queue takes it for dead, which gives its work back first.
const DEAD: Duration = Duration::from_secs(25);
/// What waits for so long while workers are free is not known to the queue.
const WAITS: Duration = Duration::from_secs(8);

pub struct Recovery {
    store: Store,
    queue: Queue,
    /// What each worker last told of itself, and since when it tells nothing else: by this clock, for those of others may be
    /// wrong.
    told: BTreeMap<String, (i64, Instant)>,
    /// What no worker has, and since when.
    lost: BTreeMap<Attempt, Instant>,
    /// The oldest that waits while workers are free, and since when.
    waiting: Option<(RunId, Instant)>,
}

impl Recovery {
    pub fn new(store: Store, queue: Queue) -> Self {
        Recovery {
            store,
            queue,
            told: BTreeMap::new(),
            lost: BTreeMap::new(),
            waiting: None,
        }
    }

    /// Looks until `end`.
    pub async fn keep(mut self, end: StopSignal) {
        loop {
            tokio::select! {
                () = stopped(end.clone()) => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
            if let Err(error) = self.look().await {
                // A database that does not answer now is asked again.
                self.lost.clear();
                self.waiting = None;
                tracing::warn!(
                    error = error.with_cause(),
                    "work left behind was not looked for"
                );
            }
        }
    }

    async fn look(&mut self) -> Result<()> {
        let workers = self.store.workers().await?;
        let (mut had, mut free) = (BTreeSet::new(), 0);
        for worker in self.alive(&workers) {
            let all = worker.runs.iter().chain(&worker.tasks);
            free += worker.slots - i64::try_from(all.clone().count()).unwrap_or(worker.slots);
            had.extend(all);
        }
        let mut running = self.store.running_attempts().await?;
        running.retain(|attempt| !had.contains(&attempt.id));
        self.give_back(running).await?;
        let oldest = match free > 0 {
            true => self.store.oldest_queued().await?,
            false => None,
        };
        self.waiting = oldest.map(|oldest| match self.waiting.take() {
            Some((run, since)) if run == oldest => (run, since),
            _ => (oldest, Instant::now()),
        });
        if self
            .waiting
            .as_ref()
            .is_some_and(|(_, since)| since.elapsed() > WAITS)
        {
            self.queue.push_ticket().await?;
        }
        Ok(())
    }

    /// Those that told something of themselves lately.
    fn alive<'w>(&mut self, workers: &'w [StoredWorker]) -> Vec<&'w StoredWorker> {
        let mut told = BTreeMap::new();
        for worker in workers {
            let since = match self.told.get(&worker.name) {
                Some((last, since)) if *last == worker.last_seen => *since,
                _ => Instant::now(),
            };
            told.insert(worker.name.clone(), (worker.last_seen, since));
        }
        self.told = told;
        let is_alive = |worker: &&StoredWorker| self.told[&worker.name].1.elapsed() < DEAD;
        workers.iter().filter(is_alive).collect()
    }

    /// Queues again what no worker has had for a while.
    async fn give_back(&mut self, nobodys: Vec<Attempt>) -> Result<()> {
        let since = |attempt: Attempt| {
            let since = self.lost.get(&attempt).copied();
            (attempt, since.unwrap_or_else(Instant::now))
        };
        self.lost = nobodys.into_iter().map(since).collect();
        for (attempt, since) in &self.lost {
            if since.elapsed() > DEAD && self.store.give_back(attempt).await? {
                tracing::warn!(
                    kind = attempt.kind.name(),
                    id = attempt.id.as_str(),
                    "work was left behind, and is queued again"
                );
                self.queue.push_ticket().await?;
            }
        }
        Ok(())
    }
}
