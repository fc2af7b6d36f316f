//! Tells what goes on that it is to end.

use tokio::sync::watch;

/// Says `true` once it is.
pub type StopSignal = watch::Receiver<bool>;

/// Says `true` from the end of `stop` on.
pub fn stop_signal(stop: impl Future<Output = ()> + Send + 'static) -> StopSignal {
    let (stopping, stopped) = watch::channel(false);
    tokio::spawn(async move {
        stop.await;
        let _ = stopping.send(true);
        stopping.closed().await;
    });
    stopped
}

/// Ends once the signal says so, and never where nobody can give it any more.
pub async fn stopped(mut signal: StopSignal) {
    if signal.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}
