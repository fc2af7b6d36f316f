//! Records how a grading spends its time, and limits concurrent runs.

use std::future::Future;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use testwright_sandboxes::mutex::lock;
use tokio::sync::Semaphore;

use crate::result::Seconds;

/// Limits concurrent runs to the number of workers, across all instances.
pub(super) struct RunSlots(Semaphore);

impl RunSlots {
    pub(super) fn new(number: usize) -> RunSlots {
        RunSlots(Semaphore::new(number.max(1)))
    }
}

/// Activity during a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// Building the environment and fetching the code from git.
    Build,
    /// Running the golden tests with coverage.
    Golden,
    /// Running the suite without the prediction.
    Base,
    /// Running with the prediction on the old code.
    Old,
    /// Running with the prediction on the new code.
    New,
    /// Repeating runs under other conditions.
    Repeats,
    /// Waiting for a free slot.
    Waiting,
}

/// Record of one grading from start to end.
pub(super) struct Timeline<'a> {
    slots: &'a RunSlots,
    begun: Instant,
    spans: Mutex<Vec<Span>>,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    part: Activity,
    from: Duration,
    to: Duration,
}

impl<'a> Timeline<'a> {
    pub(super) fn new(slots: &'a RunSlots) -> Timeline<'a> {
        Timeline {
            slots,
            begun: Instant::now(),
            spans: Mutex::default(),
        }
    }

    /// Does some work and records its duration.
    pub(super) async fn spend<T>(&self, part: Activity, work: impl Future<Output = T>) -> T {
        let from = self.begun.elapsed();
        let done = work.await;
        let to = self.begun.elapsed();
        lock(&self.spans).push(Span { part, from, to });
        done
    }

    /// Waits for a slot, then does some work and records both durations.
    pub(super) async fn run<T>(&self, part: Activity, work: impl Future<Output = T>) -> T {
        let slot = self.spend(Activity::Waiting, self.slots.0.acquire()).await;
        let done = self.spend(part, work).await;
        drop(slot);
        done
    }

    /// Returns how the time until now was spent.
    pub(super) fn seconds(&self) -> Seconds {
        attributed(&lock(&self.spans), self.begun.elapsed())
    }
}

/// Attributes each moment to the activities at that time, in equal parts. Waiting counts only if nothing else was done.
/// The parts therefore add up to the total.
fn attributed(spans: &[Span], total: Duration) -> Seconds {
    let ends = spans.iter().flat_map(|span| [span.from, span.to]);
    let mut moments: Vec<Duration> = ends.chain([Duration::ZERO, total]).collect();
    moments.sort_unstable();
    let mut seconds = Seconds {
        total: total.as_secs_f64(),
        ..Seconds::default()
    };
    for pair in moments.windows(2) {
        let &[from, to] = pair else { continue };
        let now: Vec<Activity> = (spans.iter())
            .filter(|span| span.from <= from && to <= span.to)
            .map(|span| span.part)
            .collect();
        let length = (to - from).as_secs_f64();
        let busy = now
            .iter()
            .filter(|part| **part != Activity::Waiting)
            .count();
        if busy == 0 {
            *match now.first() {
                Some(_) => &mut seconds.waiting,
                None => &mut seconds.other,
            } += length;
            continue;
        }
        for part in now {
            *match part {
                Activity::Build => &mut seconds.build,
                Activity::Golden => &mut seconds.golden,
                Activity::Base => &mut seconds.base,
                Activity::Old => &mut seconds.old,
                Activity::New => &mut seconds.new,
                Activity::Repeats => &mut seconds.repeats,
                Activity::Waiting => continue,
            } += length / busy as f64;
        }
    }
    seconds
}

#[cfg(test)]
mod tests;
