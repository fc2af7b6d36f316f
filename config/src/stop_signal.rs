//! A shutdown signal for running tasks.

use tokio::sync::watch;

/// A receiver whose value becomes `true` when the task should stop.
pub type StopSignal = watch::Receiver<bool>;

/// Returns a signal that becomes `true` when `stop` completes.
pub fn stop_signal(stop: impl Future<Output = ()> + Send + 'static) -> StopSignal {
    let (stopping, stopped) = watch::channel(false);
    tokio::spawn(async move {
        stop.await;
        let _ = stopping.send(true);
        stopping.closed().await;
    });
    stopped
}

/// Completes when the signal is given; never completes if the sender was dropped without giving it.
pub async fn stopped(mut signal: StopSignal) {
    if signal.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}
