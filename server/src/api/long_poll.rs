//! Long polls: requests that are answered once a job has ended, or after some seconds.

use std::time::Duration;

use tokio::time::Instant;

use super::{ApiResult, ApiState, Problem};
use crate::telemetry::Listener;
use testwright_config::stop_signal::stopped;

/// Maximum seconds of a long poll. Proxies often close connections that stay silent for longer.
const MAX_SECONDS: u32 = 60;
/// Interval for polling the store, because workers in other processes send no notifications.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Loads a value repeatedly until it is complete, and returns the last one. Stops after `seconds` and at shutdown.
/// Between two polls it holds no connection to the database.
///
/// # Errors
///
/// Fails with 400 if `seconds` is above the maximum, or if the value cannot be loaded.
pub(super) async fn poll<T, F: Future<Output = ApiResult<T>>>(
    state: &ApiState,
    seconds: Option<u32>,
    load: impl Fn() -> F,
    is_complete: impl Fn(&T) -> bool,
) -> ApiResult<T> {
    let seconds = seconds.unwrap_or_default();
    if seconds > MAX_SECONDS {
        let detail = format!("wait is more than {MAX_SECONDS} seconds");
        return Err(Problem::bad_request(detail));
    }
    let _listener = (seconds > 0).then(|| Listener::new(state.telemetry.clone()));
    let ends_at = Instant::now() + Duration::from_secs(seconds.into());
    loop {
        let value = load().await?;
        let now = Instant::now();
        if is_complete(&value) || now >= ends_at {
            return Ok(value);
        }
        tokio::select! {
            () = tokio::time::sleep_until(ends_at.min(now + POLL_INTERVAL)) => {}
            () = stopped(state.stop.clone()) => return Ok(value),
        }
    }
}
