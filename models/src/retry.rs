//! Waits and retries; no other code repeats a model call.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use super::{Model, ModelError, Reply, Request};

#[cfg(test)]
mod tests;

/// Maximum calls to an address that has no server. More if it had one before, which may be restarting.
pub(super) const UNREACHABLE_TRIES: u32 = 3;
/// Minimum seconds of a server's hint that is not counted as a try.
const MIN_HINT: f64 = 1.0;

/// Maximum calls for one request, including the first.
const MAX_TRIES: u32 = 8;
/// First delay; each further one is twice as long.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// Maximum delay, unless the server asks for more.
const MAX_DELAY: Duration = Duration::from_secs(60);
/// Maximum total delay for one request.
const MAX_TOTAL_DELAY: Duration = Duration::from_secs(300);

/// A delay that is about to start.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    /// Length of the delay, in seconds.
    pub seconds: f64,
    /// Reason for the delay.
    pub message: String,
}

/// Callback before each delay.
pub type OnWait = Box<dyn Fn(&Wait) + Send + Sync>;

type Sleep = Box<dyn Fn(Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// A model that retries after [`ModelError::Transient`] and [`ModelError::Unreachable`], with exponential
/// backoff and jitter, or after the delay that the server asks for.
pub struct Retry {
    inner: Box<dyn Model>,
    on_wait: Option<OnWait>,
    /// Whether a server answered any call.
    reached: AtomicBool,
    pub(crate) sleep: Sleep,
}

impl Retry {
    /// Wraps a model. `on_wait` reports the progress.
    pub fn new(inner: Box<dyn Model>, on_wait: Option<OnWait>) -> Self {
        Retry {
            inner,
            on_wait,
            reached: AtomicBool::new(false),
            sleep: Box::new(|wait| Box::pin(tokio::time::sleep(wait))),
        }
    }

    /// Returns a delay between half and all of the doubled delay, so that many clients do not retry at once.
    /// It is never shorter than the server asked for.
    fn wait(attempt: u32, after: Option<f64>) -> Duration {
        let doubled = FIRST_DELAY.saturating_mul(2u32.saturating_pow(attempt - 1));
        let doubled = doubled.min(MAX_DELAY);
        let part = fastrand::f64();
        match after.map(Duration::try_from_secs_f64) {
            Some(Ok(retry_after)) => retry_after + doubled.mul_f64(part / 10.0),
            _ => doubled.mul_f64(0.5 + part / 2.0),
        }
    }
}

#[async_trait]
impl Model for Retry {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn complete(&self, request: &Request) -> Result<Reply, ModelError> {
        let mut waited = Duration::ZERO;
        let mut attempt = 1;
        // A wait that the server asked for does not count as a try of its own; the total delay bounds these.
        let mut hinted = 0;
        loop {
            let mut error = match self.inner.complete(request).await {
                Ok(mut reply) => {
                    self.reached.store(true, Ordering::Relaxed);
                    reply.failed_tries += attempt - 1;
                    return Ok(reply);
                }
                Err(error) => error,
            };
            let mut tries = MAX_TRIES;
            let (message, after) = match &mut error {
                ModelError::Transient { message, after, .. } => {
                    self.reached.store(true, Ordering::Relaxed);
                    (message, *after)
                }
                ModelError::Unreachable { message, .. } => {
                    if !self.reached.load(Ordering::Relaxed) {
                        tries = tries.min(UNREACHABLE_TRIES);
                    }
                    (message, None)
                }
                _ => return Err(error),
            };
            if after.is_some_and(|seconds| seconds >= MIN_HINT) {
                hinted += 1;
            }
            if attempt - hinted >= tries {
                *message = given_up(message, attempt, waited, "");
                return Err(error);
            }
            let wait = Retry::wait(attempt - hinted.min(attempt - 1), after);
            if waited + wait > MAX_TOTAL_DELAY {
                let why = format!(
                    "; another wait of {:.0} s would exceed the {:.0} s that are allowed",
                    wait.as_secs_f64(),
                    MAX_TOTAL_DELAY.as_secs_f64()
                );
                *message = given_up(message, attempt, waited, &why);
                return Err(error);
            }
            let notice = Wait {
                seconds: wait.as_secs_f64(),
                message: message.clone(),
            };
            tracing::info!(attempt, seconds = notice.seconds, message = %notice.message, "waiting before asking the model again");
            if let Some(tell) = &self.on_wait {
                tell(&notice);
            }
            (self.sleep)(wait).await;
            waited += wait;
            attempt += 1;
        }
    }
}

fn given_up(message: &str, attempts: u32, waited: Duration, why: &str) -> String {
    if attempts == 1 && why.is_empty() {
        return message.to_owned();
    }
    let calls = if attempts == 1 { "call" } else { "calls" };
    format!(
        "{message} (given up after {attempts} {calls} and {:.0} s of waiting{why})",
        waited.as_secs_f64()
    )
}
