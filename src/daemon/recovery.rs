//! Sees to it that no run is left behind: the queue may have lost what the store still has, where a process ended between the
//! two, or where a message was given up. Doing so once too often does no harm: a worker that lost its run writes nothing
//! more to it, and a ticket too many finds nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::queue::Queue;
use crate::error::Result;
use crate::stop_signal::{StopSignal, stopped};
use crate::store::{Attempt, RunId, Store, StoredWorker};

const INTERVAL: Duration = Duration::from_secs(5);
/// Who tells nothing for so long is dead: later than the queue takes it for dead, which gives its runs back first.
const DEAD: Duration = Duration::from_secs(25);
/// A run that waits for so long while workers are free is not known to the queue.
const WAITS: Duration = Duration::from_secs(8);

pub struct Recovery {
    store: Store,
    queue: Queue,
    /// What each worker last told of itself, and since when it tells nothing else: by this clock, for those of others may be
    /// wrong.
    told: BTreeMap<String, (i64, Instant)>,
    /// Runs that no worker has, and since when.
    lost: BTreeMap<Attempt, Instant>,
    /// The oldest run that waits while workers are free, and since when.
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
                    "runs left behind were not looked for"
                );
            }
        }
    }

    async fn look(&mut self) -> Result<()> {
        let workers = self.store.workers().await?;
        let (mut had, mut free) = (BTreeSet::new(), 0);
        for worker in self.alive(&workers) {
            free += worker.slots - i64::try_from(worker.runs.len()).unwrap_or(worker.slots);
            had.extend(worker.runs.iter());
        }
        let mut running = self.store.running_attempts().await?;
        running.retain(|attempt| !had.contains(&attempt.run));
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
            self.queue.push_run().await?;
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

    /// Queues runs again that no worker has had for a while.
    async fn give_back(&mut self, nobodys: Vec<Attempt>) -> Result<()> {
        let since = |attempt: Attempt| {
            let since = self.lost.get(&attempt).copied();
            (attempt, since.unwrap_or_else(Instant::now))
        };
        self.lost = nobodys.into_iter().map(since).collect();
        for (attempt, since) in &self.lost {
            if since.elapsed() > DEAD && self.store.give_back(attempt).await? {
                tracing::warn!(
                    run = attempt.run.as_str(),
                    "a run was left behind, and is queued again"
                );
                self.queue.push_run().await?;
            }
        }
        Ok(())
    }
}
