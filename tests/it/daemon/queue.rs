//! What the queue keeps of its messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use testwright_config::error::Result;
use testwright_server::queue::{Consumer, QUEUE, Queue, Ticket};
use testwright_server::store::Store;

use super::databases;
use crate::program::Place;

#[derive(Default)]
struct Counter(AtomicUsize);

#[async_trait::async_trait]
impl Consumer for Counter {
    async fn consume(&self, _: &Ticket) -> Result<()> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_what_ended_are_removed_and_others_stay() {
    const ENDED: u64 = 3;
    for database in databases::all() {
        let place = Place::new();
        let embedded = Store::url_in(&place.path("."));
        let url = database.url.as_deref().unwrap_or(&embedded);
        let store = Store::open(url).await.unwrap();
        let queue = Queue::open(&store).await.unwrap();
        for _ in 0..ENDED {
            queue.push_ticket().await.unwrap();
        }
        let counter = Arc::new(Counter::default());
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let working = queue.work("a", 1, counter.clone(), async { drop(stopped.await) });
        let removing = async {
            let hour = Duration::from_secs(3600);
            let (begun, mut removed) = (Instant::now(), 0);
            while removed < ENDED {
                assert!(begun.elapsed() < Duration::from_secs(60), "{removed}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                assert_eq!(store.remove_messages(QUEUE, hour).await.unwrap(), 0);
                removed += store.remove_messages(QUEUE, Duration::ZERO).await.unwrap();
            }
            drop(stop);
        };
        let (worked, ()) = tokio::join!(working, removing);
        worked.unwrap();
        assert_eq!(counter.0.load(Ordering::SeqCst), 3);

        // It waits, and is there for the next worker.
        queue.push_ticket().await.unwrap();
        tokio::time::sleep(Duration::from_millis(1100)).await;
        assert_eq!(
            store.remove_messages(QUEUE, Duration::ZERO).await.unwrap(),
            0
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_with_nothing_to_do_takes_what_comes_before_its_next_heartbeat() {
    const TICKETS: usize = 5;
    for database in databases::all() {
        let place = Place::new();
        let embedded = Store::url_in(&place.path("."));
        let url = database.url.as_deref().unwrap_or(&embedded);
        let store = Store::open(url).await.unwrap();
        let queue = Queue::open(&store).await.unwrap();
        let counter = Arc::new(Counter::default());
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let working = queue.work("a", 1, counter.clone(), async { drop(stopped.await) });
        let taken = || counter.0.load(Ordering::SeqCst);
        let pushing = async {
            let mut waited = Duration::ZERO;
            for n in 0..TICKETS {
                // It has looked in the meantime, and found nothing.
                tokio::time::sleep(Duration::from_millis(200)).await;
                queue.push_ticket().await.unwrap();
                let pushed = Instant::now();
                while taken() == n {
                    assert!(pushed.elapsed() < Duration::from_secs(30));
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                waited += pushed.elapsed();
            }
            drop(stop);
            waited
        };
        let (worked, waited) = tokio::join!(working, pushing);
        worked.unwrap();
        // By heartbeats it would be nearly three seconds each.
        assert!(waited < Duration::from_secs(6), "{waited:?}");
    }
}
